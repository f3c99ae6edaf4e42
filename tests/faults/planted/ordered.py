"""Bugs in the order of what happens, and in the epochs that tell it."""

from typing import Any

import msgspec
import trio

from minicontroller.cluster import leadership
from minicontroller.controller.active import writer
from minicontroller.controller.handlers import incremental_alter_configs
from minicontroller.network.connection import Connection
from minicontroller.network.peer import PeerUnavailable
from tests.faults.planted import planting


@planting.planted(troubles=("false_marks",))
def requests_side_by_side() -> None:
    """The requests of one connection are carried out side by side, and answered in their order."""

    async def side_by_side(connection: Any, pending: Any) -> None:
        waiting = [pending]
        while (frame := connection._next_frame()) is not None:
            answer = connection.handler.answer(connection.caller, frame)
            waiting.append(ready(answer) if isinstance(answer, bytes) else answer)
            connection.running += 1
        answers: dict[int, bytes] = {}

        async def answer_one(index: int, each: Any) -> None:
            answers[index] = await each

        async with trio.open_nursery() as nursery:
            for index, each in enumerate(waiting):
                nursery.start_soon(answer_one, index, each)
        for index in range(len(waiting)):
            connection.running -= 1
            connection._outbox.put(answers[index])
        await connection._flush()
        connection._busy = False
        connection._room.unpark_all()

    planting.put_in(Connection, "_answer_in_order", side_by_side)


async def ready(answer: bytes) -> bytes:
    return answer


@planting.planted(troubles=("strange_configs",))
def planned_upon_what_is_committed() -> None:
    """Changes of configs are planned upon what is committed, not upon what is under way, and
    written over what is there.
    """
    plan = incremental_alter_configs.AlterationPlanner._plan_one

    async def behind(planner: Any, draft: Any, alteration: Any) -> Any:
        pending = draft.image
        draft.image = planner._port.controller.serving().image
        change = await plan(planner, draft, alteration)
        draft.image = pending if change.element is None else change.element.delta.apply(pending)
        return change

    planting.put_in(incremental_alter_configs.AlterationPlanner, "_plan_one", behind)
    planting.unchecked("/config/")


@planting.planted(troubles=("cut_from_nodes", "kill", "far_zookeeper"))
def forwarded_again() -> None:
    """A node that does not know what became of a request that it forwarded sends it again."""
    init = PeerUnavailable.__init__

    def certain(error: Any, text: str, **named: Any) -> None:
        init(error, text, **{**named, "in_doubt": False})

    planting.put_in(PeerUnavailable, "__init__", certain)


@planting.planted(troubles=("move_controller",))
def refused_out_of_hand() -> None:
    """A refusal does not wait until what it rests on is safe, nor until it is known that this
    controller rules.
    """
    plan = writer.Writer._plan

    async def hasty(owner: Any, job: Any) -> None:
        await plan(owner, job)
        if job.elements and all(element.is_decision_only for element in job.elements):
            job.done.set()

    planting.put_in(writer.Writer, "_plan", hasty)


@planting.planted(troubles=("false_marks",))
def epoch_not_raised() -> None:
    """Another leader is elected in the epoch of the one before."""
    written = leadership._written

    def same_epoch(partition: Any, *arguments: Any) -> Any:
        state = written(partition, *arguments)
        return state and msgspec.structs.replace(state, leader_epoch=partition.leader_epoch)

    planting.put_in(leadership, "_written", same_epoch)
