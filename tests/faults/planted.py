"""Bugs that are put into the program on purpose, so that it is seen whether the detector finds
them.

`python -m tests.faults.planted NAME serve --config FILE` is `minicontroller serve --config FILE`
with a few methods replaced before it starts. The program itself has no place for this. `make faults
PLANTED=NAME` (or `all`) runs them.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import trio

from minicontroller.controller.active import active_controller, channel, jobs, loading, propagation, writer
from minicontroller.controller.errors import Refusal
from minicontroller.controller.handlers import alter_configs, changes, config_changes, create_partitions, create_topics
from minicontroller.controller.metadata import cache
from minicontroller.controller.network.connection import Connection
from minicontroller.controller.network.peer import PeerUnavailable
from minicontroller.controller.store.base import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    StoreError,
    Watch,
)
from minicontroller.controller.store.zookeeper import ZooKeeperStore
from minicontroller.controller.znodes import layout
from minicontroller.protocol.error_codes import ErrorCode

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
    """What a commit writes is altered on its way to the store, or left out, and nobody is told."""
    send = ZooKeeperStore.send

    def altered(
        store: ZooKeeperStore, operations: Sequence[Operation], answered: Callable[[StoreError | None], None]
    ) -> None:
        kept = [(index, other) for index, each in enumerate(operations) if (other := alter(each)) is not None]

        def answered_to_all(error: StoreError | None) -> None:
            if error is not None and error.index is not None:
                error.index = kept[error.index][0]
            answered(error)

        send(store, [each for _, each in kept], answered_to_all)

    put_in(ZooKeeperStore, "send", altered)


def leaving_out(kind: type, start: str, end: str = "") -> None:
    def alter(operation: Operation) -> Operation | None:
        is_it = isinstance(operation, kind) and operation.path.startswith(start) and operation.path.endswith(end)
        return None if is_it else operation

    altering_commits(alter)


# ---------------------------------------------------------------------- what is written


def unchecked(start: str) -> None:
    """Of what begins with this any version will do."""

    def alter(operation: Operation) -> Operation:
        if isinstance(operation, Check | SetData | Delete) and operation.path.startswith(start):
            return msgspec.structs.replace(operation, version=ANY_VERSION)
        return operation

    altering_commits(alter)


@planted(troubles=("move_controller",))
def fence_left_out() -> None:
    """A commit checks neither that its controller still rules nor what it writes over."""
    unchecked("")


@planted(troubles=("strange_configs",))
def version_dropped() -> None:
    """Configs are written over whatever is there."""
    unchecked("/config/")


@planted(troubles=("strange_configs",))
def config_not_written() -> None:
    """One in ten changes of a topic's configs is acknowledged and not written."""
    now = every(10)

    def alter(operation: Operation) -> Operation | None:
        is_it = isinstance(operation, SetData) and operation.path.startswith("/config/topics/")
        return None if is_it and now() else operation

    altering_commits(alter)


@planted(troubles=("false_marks",))
def growth_not_written() -> None:
    """A partition count is answered that the topic's znode does not have."""
    leaving_out(SetData, f"{layout.TOPICS}/")


@planted(troubles=("kill", "terminate", "freeze"))
def deletion_not_marked() -> None:
    """A deletion is acknowledged before it is marked: a controller that dies has forgotten it."""
    leaving_out(Create, f"{layout.DELETE_TOPICS}/")


@planted(troubles=("false_marks",))
def state_not_written() -> None:
    """The second partition of a topic has no state."""
    leaving_out(Create, f"{layout.TOPICS}/", "/partitions/1/state")


@planted(troubles=("false_marks",))
def configs_left_behind() -> None:
    """A topic's configs outlive it."""
    leaving_out(Delete, f"{layout.TOPIC_CONFIGS}/")


@planted(troubles=("false_marks",))
def notification_not_written() -> None:
    """Nobody is told that configs have changed."""
    leaving_out(Create, layout.CONFIG_CHANGE_PREFIX)


@planted(troubles=("false_marks",))
def new_id_by_growth() -> None:
    """A topic that grows is written with another id."""
    staged = create_partitions.PartitionsPlanner._staged

    async def other(planner: Any, draft: Any, before: Any, after: Any) -> Any:
        return await staged(planner, draft, before, msgspec.structs.replace(after, topic_id=bytes(range(16))))

    put_in(create_partitions.PartitionsPlanner, "_staged", other)


# ---------------------------------------------------------------------- what is answered


@planted(troubles=("unheard_by_zookeeper",))
def doubt_is_success() -> None:
    """What was on its way when the connection broke is answered with success, whatever the tree
    shows then.
    """
    init = jobs.Element.__init__

    def sure(element: Any, *arguments: Any, **named: Any) -> None:
        init(element, *arguments, **named)
        element.holds = lambda _image: True

    put_in(jobs.Element, "__init__", sure)


@planted(troubles=("unheard_by_zookeeper",))
def answered_before_it_is_safe() -> None:
    """A change of configs is answered when it is planned, and its commit travels meanwhile."""
    done = jobs.WriterJob.__dict__["result"]

    def early(job: Any, result: Any) -> None:
        done.__set__(job, result)
        if result is not None:
            job.done.set()

    put_in(jobs.WriterJob, "result", property(done.__get__, early))


@planted(troubles=("false_marks",))
def refused_and_written() -> None:
    """One in twenty requests is written and then refused."""
    committed, now = changes.committed, every(20)

    async def refused(*arguments: Any, **named: Any) -> Any:
        outcome = await committed(*arguments, **named)
        if now() and any(change.element is not None and change.refusal is None for change in outcome):
            raise Refusal(ErrorCode.NOT_CONTROLLER)
        return outcome

    put_in(changes, "committed", refused)


@planted(troubles=("false_marks",))
def validation_writes() -> None:
    """CreateTopics that should only validate creates."""
    init = create_topics.CreationPlanner.__init__

    def writing(planner: Any, node: Any, context: Any, request: Any) -> None:
        init(planner, node, context, msgspec.structs.replace(request, validate_only=False))

    put_in(create_topics.CreationPlanner, "__init__", writing)


@planted(troubles=("false_marks",))
def legacy_keeps_the_rest() -> None:
    """AlterConfigs leaves alone what it does not name."""
    alteration = alter_configs._alteration

    def keeping(*arguments: Any) -> Any:
        whole = alteration(*arguments)
        return msgspec.structs.replace(
            whole, topic_configs=lambda topic: {**topic.configs, **whole.topic_configs(topic)}
        )

    put_in(alter_configs, "_alteration", keeping)


# ---------------------------------------------------------------------- who is told


@planted(troubles=("false_marks",), completion="cluster")
def nobody_is_waited_for() -> None:
    """With `metadata.completion=cluster` an answer does not wait for the other nodes."""

    async def at_once(*_arguments: Any, **_named: Any) -> bool:
        return True

    put_in(propagation.Propagation, "wait_acknowledged", at_once)


@planted(troubles=("false_marks",))
def answered_ahead_of_the_node() -> None:
    """A node answers questions by what it knows, also where its own clients know more by an answer
    of the controller.
    """
    put_in(cache.MetadataCache, "expect_update", lambda *_arguments: None)


@planted(troubles=("false_marks",))
def update_lost() -> None:
    """One in twenty UpdateMetadata is not sent."""
    update, now = channel.Channel._update_metadata, every(20)

    async def losing(*arguments: Any, **named: Any) -> None:
        if not now():
            await update(*arguments, **named)

    put_in(channel.Channel, "_update_metadata", losing)


@planted(troubles=("false_marks",))
def lost_watch() -> None:
    """One in ten looks at the notifications of configs sets no watch."""
    children, now = ZooKeeperStore.children, every(10)

    async def deaf(store: ZooKeeperStore, path: str, watch: Watch | None = None) -> list[str]:
        is_lost = watch is not None and path == layout.CONFIG_CHANGES and now()
        return await children(store, path, None if is_lost else watch)

    put_in(ZooKeeperStore, "children", deaf)


@planted(troubles=("freeze", "cut_from_zookeeper", "kill_leader"))
def stale_image() -> None:
    """A controller that is elected again, or was in doubt, goes on from what it read the first
    time.
    """
    load, first = loading.load, list[Any]()

    async def once(*arguments: Any) -> Any:
        fresh = await load(*arguments)
        first.append(fresh)
        return first[0].with_brokers(fresh.brokers.values())

    put_in(active_controller, "load", once)


# ---------------------------------------------------------------------- in which order


@planted(troubles=("false_marks",))
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

    put_in(Connection, "_answer_in_order", side_by_side)


async def ready(answer: bytes) -> bytes:
    return answer


@planted(troubles=("strange_configs",))
def planned_upon_what_is_committed() -> None:
    """Changes of configs are planned upon what is committed, not upon what is under way, and
    written over what is there.
    """
    plan = config_changes.AlterationPlanner._plan_one

    async def behind(planner: Any, draft: Any, alteration: Any) -> Any:
        pending = draft.image
        draft.image = planner._node.controller.image
        change = await plan(planner, draft, alteration)
        draft.image = pending if change.element is None else change.element.apply(pending)
        return change

    put_in(config_changes.AlterationPlanner, "_plan_one", behind)
    unchecked("/config/")


@planted(troubles=("cut_from_nodes", "kill", "far_zookeeper"))
def forwarded_again() -> None:
    """A node that does not know what became of a request that it forwarded sends it again."""
    init = PeerUnavailable.__init__

    def certain(error: Any, text: str, **named: Any) -> None:
        init(error, text, **{**named, "in_doubt": False})

    put_in(PeerUnavailable, "__init__", certain)


@planted(troubles=("move_controller",))
def refused_out_of_hand() -> None:
    """A refusal does not wait until what it rests on is safe, nor until it is known that this
    controller rules.
    """
    plan = writer.Writer._plan

    async def hasty(owner: Any, job: Any) -> None:
        await plan(owner, job)
        if job.elements and all(element.is_decision_only for element in job.elements):
            job.done.set()

    put_in(writer.Writer, "_plan", hasty)


def main() -> None:
    name = sys.argv.pop(1)
    BUGS[name].plant()
    from minicontroller.controller.command_line.cli import main as run

    run()


if __name__ == "__main__":
    main()
