"""One commit on the embedded store's tree of znodes.

Rule: an operation takes effect when it is applied, and leaves behind how it is undone; so a commit
whose last operation fails leaves the tree as it was.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from ..clock import now_ms
from .base import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    NodeExists,
    NodeMissing,
    NodeNotEmpty,
    Result,
    SetData,
    Stat,
    StoreError,
    VersionConflict,
    ZnodeChange,
)


class Znode(msgspec.Struct, gc=False):
    data: bytes | None
    stat: Stat
    children: set[str] | None = None
    """Their full paths, which are the same objects as the keys of the tree: separate names would
    cost as much memory as the znodes.
    """
    born: int = 0
    """How many children were ever created, which is the next sequential suffix."""


class EphemeralOwner(Protocol):
    """A session, as far as ephemeral znodes need it."""

    ephemerals: set[str]

    @property
    def session_id(self) -> int: ...


class Znodes(Protocol):
    """The tree that a commit works on."""

    nodes: dict[str, Znode]
    zxid: int

    def owner(self, node: Znode) -> EphemeralOwner: ...


Undo = tuple[Callable[..., None], tuple[Any, ...]]


class Transaction:
    """A commit under way: what it has changed so far, and how that is undone."""

    __slots__ = ("changes", "owner", "persistent", "time_ms", "tree", "undo", "zxid")

    def __init__(self, tree: "Znodes", owner: "EphemeralOwner") -> None:
        self.tree = tree
        self.owner = owner
        self.zxid = tree.zxid + 1
        self.time_ms = now_ms()
        # Every persistent znode that one commit creates has the same stat: they share one object.
        self.persistent = Stat(0, self.zxid, self.zxid, self.time_ms)
        self.undo: list[Undo] = []
        self.changes: list[tuple[str, ZnodeChange, str]] = []

    def create(self, operation: Create) -> str:
        nodes, path = self.tree.nodes, operation.path
        parent_path = parent_of(path)
        parent = nodes.get(parent_path)
        if parent is None:
            raise NodeMissing(f"{parent_path} does not exist", path=path)
        if parent.stat.ephemeral_owner:
            raise StoreError(f"{parent_path} is ephemeral: it cannot have children", path=path)
        if operation.sequential:
            path = f"{path}{parent.born:010d}"
        if path in nodes:
            raise NodeExists(f"{path} exists", path=path)
        stat = self.persistent
        if operation.ephemeral:
            stat = Stat(0, self.zxid, self.zxid, self.time_ms, self.owner.session_id)
            self.owner.ephemerals.add(path)
        nodes[path] = Znode(operation.data, stat)
        if parent.children is None:
            parent.children = set()
        parent.children.add(path)
        parent.born += 1
        self.undo.append((Transaction._undo_create, (path, parent)))
        self.changes.append((path, ZnodeChange.CREATED, parent_path))
        return path

    def set_data(self, operation: SetData) -> Stat:
        node = self._matching(operation.path, operation.version)
        before = node.data, node.stat
        stat = node.stat
        node.data = operation.data
        node.stat = Stat(stat.version + 1, stat.czxid, self.zxid, stat.ctime_ms, stat.ephemeral_owner)
        self.undo.append((Transaction._undo_set, (node, before)))
        self.changes.append((operation.path, ZnodeChange.DATA, ""))
        return node.stat

    def delete(self, operation: Delete) -> None:
        path = operation.path
        node = self._matching(path, operation.version)
        if node.children:
            raise NodeNotEmpty(f"{path} has children", path=path)
        parent_path = parent_of(path)
        parent = self.tree.nodes[parent_path]
        self._remove(path, parent)
        self.undo.append((Transaction._undo_delete, (path, node, parent)))
        self.changes.append((path, ZnodeChange.DELETED, parent_path))

    def check(self, operation: Check) -> None:
        self._matching(operation.path, operation.version)

    def roll_back(self) -> None:
        for undo, arguments in reversed(self.undo):
            undo(self, *arguments)

    def _matching(self, path: str, version: int) -> Znode:
        node = self.tree.nodes.get(path)
        if node is None:
            raise NodeMissing(f"{path} does not exist", path=path)
        if version not in (ANY_VERSION, node.stat.version):
            raise VersionConflict(f"{path} has version {node.stat.version}, not {version}", path=path)
        return node

    def _remove(self, path: str, parent: Znode) -> None:
        node = self.tree.nodes.pop(path)
        assert parent.children is not None
        parent.children.discard(path)
        if not parent.children:
            parent.children = None
        if node.stat.ephemeral_owner:
            self.tree.owner(node).ephemerals.discard(path)

    def _undo_create(self, path: str, parent: Znode) -> None:
        self._remove(path, parent)
        parent.born -= 1

    def _undo_set(self, node: Znode, before: tuple[bytes | None, Stat]) -> None:
        node.data, node.stat = before

    def _undo_delete(self, path: str, node: Znode, parent: Znode) -> None:
        self.tree.nodes[path] = node
        if parent.children is None:
            parent.children = set()
        parent.children.add(path)
        if node.stat.ephemeral_owner:
            self.tree.owner(node).ephemerals.add(path)


APPLY: dict[type, Callable[[Transaction, Any], Result]] = {
    Create: Transaction.create,
    SetData: Transaction.set_data,
    Delete: Transaction.delete,
    Check: Transaction.check,
}


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"
