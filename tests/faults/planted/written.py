"""Bugs in what is written to the store."""

from typing import Any

import msgspec

from minicontroller.cluster.znodes import layout
from minicontroller.controller.active.topic_writing import stage_growth
from minicontroller.controller.handlers import create_partitions
from minicontroller.store.base import Create, Delete, Operation, SetData
from tests.faults.planted import planting


@planting.planted(troubles=("move_controller",))
def fence_left_out() -> None:
    """A commit checks neither that its controller still rules nor what it writes over."""
    planting.unchecked("")


@planting.planted(troubles=("strange_configs",))
def version_dropped() -> None:
    """Configs are written over whatever is there."""
    planting.unchecked("/config/")


@planting.planted(troubles=("strange_configs",))
def config_not_written() -> None:
    """One in ten changes of a topic's configs is acknowledged and not written."""
    now = planting.every(10)

    def alter(operation: Operation) -> Operation | None:
        is_it = isinstance(operation, SetData) and operation.path.startswith("/config/topics/")
        return None if is_it and now() else operation

    planting.altering_commits(alter)


@planting.planted(troubles=("false_marks",))
def growth_not_written() -> None:
    """A partition count is answered that the topic's znode does not have."""
    planting.leaving_out(SetData, f"{layout.TOPICS}/")


@planting.planted(troubles=("kill", "terminate", "freeze"))
def deletion_not_marked() -> None:
    """A deletion is acknowledged before it is marked: a controller that dies has forgotten it."""
    planting.leaving_out(Create, f"{layout.DELETE_TOPICS}/")


@planting.planted(troubles=("false_marks",))
def state_not_written() -> None:
    """The second partition of a topic has no state."""
    planting.leaving_out(Create, f"{layout.TOPICS}/", "/partitions/1/state")


@planting.planted(troubles=("false_marks",))
def configs_left_behind() -> None:
    """A topic's configs outlive it."""
    planting.leaving_out(Delete, f"{layout.TOPIC_CONFIGS}/")


@planting.planted(troubles=("false_marks",))
def notification_not_written() -> None:
    """Nobody is told that configs have changed."""
    planting.leaving_out(Create, layout.CONFIG_CHANGE_PREFIX)


@planting.planted(troubles=("false_marks",))
def new_id_by_growth() -> None:
    """A topic that grows is written with another id."""

    def other(draft: Any, after: Any, grown: Any) -> Any:
        return stage_growth(draft, msgspec.structs.replace(after, topic_id=bytes(range(16))), grown)

    planting.put_in(create_partitions, "stage_growth", other)
