"""Whether a process is ready to serve, and why not."""

import msgspec


class NodeHealth(msgspec.Struct, frozen=True):
    node: int
    ready: bool
    reasons: list[str]
    """Why the node is not ready, or why it is ready and refuses changes."""


class Health(msgspec.Struct, frozen=True):
    ready: bool
    reasons: list[str]
    """Why the process is not ready, beside its nodes."""
    nodes: list[NodeHealth]
