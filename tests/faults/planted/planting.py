"""Plants bugs: a method of the program is replaced, and what is known of it is noted in BUGS."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from minicontroller.store.base import ANY_VERSION, Answered, Check, Delete, Operation, SetData, StoreError
from minicontroller.store.zookeeper import ZooKeeperStore

NODES = ("kill", "terminate", "freeze", "cut_from_nodes", "cut_from_zookeeper")
STRANGERS = ("strange_configs", "leftovers", "false_marks")


class Planted(msgspec.Struct, frozen=True):
    """A bug, what it is, and under which troubles it is looked for."""

    plant: Callable[[], None]
    troubles: Sequence[str] = (*NODES, *STRANGERS)
    completion: str = "local"

    @property
    def sentence(self) -> str:
        return (self.plant.__doc__ or "").strip()


BUGS: dict[str, Planted] = {}


def planted(**options: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(plant: Callable[[], None]) -> Callable[[], None]:
        BUGS[plant.__name__] = Planted(plant, **options)
        return plant

    return note


def put_in(owner: object, name: str, bug: object) -> None:
    """In the place of what has this name now."""
    assert hasattr(owner, name), f"{owner} has no {name} any more"
    setattr(owner, name, bug)


def every(number: int) -> Callable[[], bool]:
    """True once in so many calls."""
    calls = itertools.count(1)
    return lambda: next(calls) % number == 0


def altering_commits(alter: Callable[[Operation], Operation | None]) -> None:
    """Alter what a commit writes on its way to the store, or leave it out, and tell nobody."""
    send = ZooKeeperStore.send

    def altered(store: ZooKeeperStore, operations: Sequence[Operation], answered: Answered) -> None:
        kept = [(index, other) for index, each in enumerate(operations) if (other := alter(each)) is not None]

        def answered_to_all(outcome: StoreError | int) -> None:
            if isinstance(outcome, StoreError) and outcome.index is not None:
                outcome.index = kept[outcome.index][0]
            answered(outcome)

        send(store, [each for _, each in kept], answered_to_all)

    put_in(ZooKeeperStore, "send", altered)


def leaving_out(kind: type, start: str, end: str = "") -> None:
    def alter(operation: Operation) -> Operation | None:
        is_it = isinstance(operation, kind) and operation.path.startswith(start) and operation.path.endswith(end)
        return None if is_it else operation

    altering_commits(alter)


def unchecked(start: str) -> None:
    """Leave out the check of versions of paths that begin with this."""

    def alter(operation: Operation) -> Operation:
        if isinstance(operation, Check | SetData | Delete) and operation.path.startswith(start):
            return msgspec.structs.replace(operation, version=ANY_VERSION)
        return operation

    altering_commits(alter)
