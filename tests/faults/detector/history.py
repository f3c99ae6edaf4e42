"""The history of a window: what was asked, when, and what was answered, in memory and in a file.

Rule: a window is whole in itself. It begins with the state of every entity, which was read while
nothing was under way, and ends with the same; so each is checked by itself and then forgotten, and
a file of one can be checked again at any time.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"
"""Outcomes: it was done; it was certainly not done; who knows."""

STRANGER = "stranger"
"""The client that writes to the tree and asks no node."""

CREATE, DELETE, GROW, ALTER, REPLACE, REASSIGN, ELECT, PERMIT, REVOKE, DESCRIBE, CONFIGS, ACLS = (
    "create",
    "delete",
    "grow",
    "alter",
    "replace",
    "reassign",
    "elect",
    "permit",
    "revoke",
    "describe",
    "configs",
    "acls",
)
"""Kinds: the last three read. ALTER is IncrementalAlterConfigs, REPLACE the legacy AlterConfigs,
REASSIGN moves partition 0, ELECT elects its preferred leader, PERMIT and REVOKE are CreateAcls and
DeleteAcls.
"""
READS = frozenset({DESCRIBE, CONFIGS, ACLS})

DEFAULT = "<default>"

Configs = dict[str, str]
Step = tuple[str, int, str | None]
"""A step of ALTER: the key, the operation as Kafka numbers them, and the operand."""


class Topic(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a topic; the id is empty where nobody was told of it. Of a broker and of a
    resource with ACLs the configs alone count: there the principals that may read it.
    """

    topic_id: str = ""
    partitions: int = 0
    configs: Configs = {}
    replicas: tuple[int, ...] = ()
    """The replicas of partition 0."""
    leader: int = -1
    leader_epoch: int = -1
    """The leader epoch of partition 0."""


class Operation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An element of a request."""

    number: int
    client: str
    node: int = 0
    """The node that was asked; 0 for the tree itself."""
    connection: int = 0
    entity: str
    """`topics/<name>` or `brokers/<id>` or `brokers/<default>`, as a path below `/config`, or
    `acls/<topic>`.
    """
    kind: str
    began: float
    ended: float | None = None
    """None: nobody heard of it again."""
    outcome: str = UNKNOWN
    code: int = 0
    message: str | None = None
    partitions: int = 0
    """Asked for, or seen."""
    topic_id: str = ""
    """The id of the topic that was made, or seen."""
    configs: Configs = {}
    """Asked for, or seen; of REVOKE what was removed."""
    steps: list[Step] = []
    """The steps of ALTER; of REVOKE, the principal that loses its ACL, or none for all of them."""
    replicas: tuple[int, ...] = ()
    """The replicas of partition 0 that were asked for, or seen in the tree."""
    leader: int = -1
    leader_epoch: int = -1
    """The leader epoch of partition 0, as DESCRIBE has seen it."""
    only_validated: bool = False
    after: int | None = None
    """The operation before it on the same connection."""
    is_fresh: bool = False
    """Whether a read must have what was acknowledged before it."""
    is_placed: bool = False
    """Whether a read is part of the order. A node's view is not otherwise."""
    is_fresh_of_node: bool = False
    """Whether a read must have what was acknowledged by way of its node before it."""


class Window(msgspec.Struct, kw_only=True):
    """The operations between two quiet moments."""

    seed: str = ""
    number: int = 0
    began: float = 0.0
    ended: float = 0.0
    troubles: list[str] = []
    before: dict[str, Topic] = {}
    """By entity. A topic that is not there is none of the keys."""
    after: dict[str, Topic] = {}
    operations: list[Operation] = []
    findings: list[str] = []
    """The findings that need no history: nodes that died, znodes that contradict each other."""


_encode, _head, _operation = (
    msgspec.json.Encoder().encode,
    msgspec.json.Decoder(Window).decode,
    msgspec.json.Decoder(Operation).decode,
)


def save(window: Window, path: Path) -> None:
    """Write a line for the window, then one for each operation."""
    head = msgspec.structs.replace(window, operations=[])
    path.write_bytes(b"".join(line + b"\n" for line in map(_encode, [head, *window.operations])))


def load(path: Path) -> Window:
    head, *lines = path.read_bytes().splitlines()
    return msgspec.structs.replace(_head(head), operations=[_operation(line) for line in lines])


def by_entity(window: Window) -> Iterator[tuple[str, list[Operation]]]:
    """The operations of each entity, in the order in which they began."""
    parts: dict[str, list[Operation]] = {entity: [] for entity in {**window.before, **window.after}}
    for operation in sorted(window.operations, key=lambda each: each.began):
        parts.setdefault(operation.entity, []).append(operation)
    yield from sorted(parts.items())


def waited(operation: Operation) -> float:
    """Seconds."""
    return 0.0 if operation.ended is None else operation.ended - operation.began


def told(operation: Operation, since: float = 0.0) -> str:
    """The operation in a line for people."""
    what = {
        CREATE: f"create with {operation.partitions} partitions",
        GROW: f"grow to {operation.partitions} partitions",
        REASSIGN: f"reassign to {operation.replicas}",
        ELECT: "elect the preferred leader of",
        REVOKE: "remove all of",
        ACLS: "describe",
    }.get(operation.kind, operation.kind)
    if operation.kind in (CREATE, REPLACE) and operation.configs:
        what += f" and {operation.configs}" if operation.kind == CREATE else f" by {operation.configs}"
    if operation.steps:
        verbs = ("set", "delete", "append", "subtract")
        what = ", ".join(
            f"{verbs[verb]} {key}{'' if value is None else '=' + value}" for key, verb, value in operation.steps
        )
    if operation.only_validated:
        what += " (validate_only)"
    end = "never answered" if operation.ended is None else f"{operation.ended - since:.3f} s"
    seen = ""
    if operation.kind in READS and operation.outcome == OK:
        seen = (
            f", saw {operation.partitions} partitions" if operation.kind == DESCRIBE else f", saw {operation.configs}"
        )
    if operation.kind == REVOKE and operation.outcome == OK:
        seen = f", removed {sorted(operation.configs)}"
    name = f" id {operation.topic_id[:8]}" if operation.topic_id else ""
    where = f"node {operation.node}" if operation.node else "the tree"
    return (
        f"#{operation.number} {operation.client} at {where}: {what} {operation.entity}: {operation.outcome}"
        f"{f' {operation.code}' if operation.code else ''}{name}{seen} [{operation.began - since:.3f} s, {end}]"
    )
