"""The interface of an authorizer, which decides what a caller may do to a resource.

    from minicontroller import policies
    from minicontroller.protocol.acls import AclOperation

    class ReadersOnly(policies.Authorizer):
        def authorize(self, requester, actions):
            return [each.operation is AclOperation.DESCRIBE for each in actions]

An authorizer is asked on the node that holds the client's connection and on the active controller,
always under the client's own principal and address. It answers at once: the node waits for it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ..protocol.acls import AclOperation, AclResourceType


class Requester(msgspec.Struct, frozen=True, kw_only=True):
    """The client that wants something, as the node that holds its connection knows it."""

    principal: str
    """`User:alice`; `User:ANONYMOUS` for a client that has not authenticated."""
    client_host: str
    """The client's address."""
    client_id: str | None = None
    api: str = ""
    """Kafka's name of the client's request: `Metadata`, `CreateTopics`."""


class Action(msgspec.Struct, frozen=True):
    """What the client wants to do, and to which resource."""

    operation: AclOperation
    resource_type: AclResourceType
    resource_name: str


class Authorizer:
    """Decides what callers may do."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Receive the node's configuration, once, before anything else."""

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> Sequence[bool]:
        """Return, for each action in order, whether the requester may do it."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what the authorizer holds. The node has stopped."""
