"""Propagation to brokers that answer as Kafka's do: which requests are sent, in which order, and
which acknowledgements are awaited.
"""

from collections.abc import Callable, Collection

import msgspec
import pytest
import trio
import trio.testing

from minicontroller.cluster.entities import Broker, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.controller.active.channel import ANSWER_SECONDS, Unreachable
from minicontroller.controller.active.control_requests import UPDATE_NUMBER_TAG, ControlRequest, ControlVersions
from minicontroller.controller.active.propagation import Propagation
from minicontroller.protocol.compiler import decoder
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from minicontroller.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from minicontroller.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)


class FarBroker:
    """A broker at the other end of a wire, which keeps what it is sent."""

    def __init__(self) -> None:
        self.versions = ControlVersions()
        self.requests: list[ControlRequest] = []
        self.answers = trio.Event()
        self.answers.set()
        self.swallows = False
        """Whether requests get lost while the connection stays open."""
        self.closed = 0
        self.code = ErrorCode.NONE
        self.undeleted: set[str] = set()

    async def request(self, message: ControlRequest) -> object:
        await trio.lowlevel.checkpoint()
        if not self.answers.is_set():
            raise Unreachable("not now")
        if self.swallows:
            await trio.sleep_forever()
        self.requests.append(message)
        match message:
            case LeaderAndIsrRequest():
                return LeaderAndIsrResponse(error_code=self.code)
            case UpdateMetadataRequest():
                return UpdateMetadataResponse(error_code=self.code)
            case StopReplicaRequest():
                return StopReplicaResponse(
                    error_code=self.code,
                    partition_errors=[
                        StopReplicaPartitionError(
                            topic_name=each.topic_name,
                            error_code=ErrorCode.KAFKA_STORAGE_ERROR if each.topic_name in self.undeleted else 0,
                        )
                        for each in message.topic_states
                    ],
                )

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()

    def take(self) -> list[str]:
        """Return the requests since the last call, each as a line."""
        requests, self.requests = self.requests, []
        return [describe(request) for request in requests]


def describe(request: ControlRequest) -> str:
    """Return a request in a line, its topics by name where their order does not matter."""
    match request:
        case LeaderAndIsrRequest():
            states = [
                (t.topic_name, p.partition_index, p.is_new) for t in request.topic_states for p in t.partition_states
            ]
            return f"LISR {sorted(states)}"
        case StopReplicaRequest():
            stops = [(t.topic_name, p.delete_partition) for t in request.topic_states for p in t.partition_states]
            return f"SR {sorted(stops)}"
        case _:
            names = [name_of(state) for state in request.topic_states]
            return f"UMR {names if any(name.startswith('-') for name in names) else sorted(names)}"


def name_of(state: UpdateMetadataTopicState | bytes) -> str:
    if isinstance(state, bytes):
        state, _ = decoder(UpdateMetadataTopicState, 8)(state, 0)
    assert isinstance(state, UpdateMetadataTopicState)
    gone = any(partition.leader == -2 for partition in state.partition_states)
    return f"-{state.topic_name}" if gone else state.topic_name


def topic(name: str, *replicas: int, epoch: int = 0) -> Topic:
    partition = Partition(
        replicas=replicas, leader=replicas[0], leader_epoch=epoch, isr=replicas, partition_epoch=epoch
    )
    return Topic(name, name.encode().ljust(16, b"\1"), (partition,))


class World:
    """A propagation of controller 1 to the brokers 2 and 3."""

    def __init__(self) -> None:
        self.image = Image(controller_id=1, controller_epoch=7)
        self.brokers = {2: FarBroker(), 3: FarBroker()}
        self.deleted: list[tuple[int, list[str]]] = []
        self.contradictions = 0
        self.propagation = Propagation(
            is_here=lambda broker: broker.broker_id == 1,
            inter_broker_listener="NODES",
            controller_epoch=7,
            image=lambda: self.image,
            link=lambda broker: self.brokers[broker.broker_id],
            on_replicas_lost=lambda _broker, _lost: None,
            on_replicas_deleted=lambda broker_id, topics: self.deleted.append((broker_id, [t.name for t in topics])),
            contradicted=self._contradicted,
        )

    def _contradicted(self) -> None:
        self.contradictions += 1

    async def register(self, *broker_ids: int, ours: Collection[int] = ()) -> None:
        self.image = self.image.with_brokers(
            [Broker(each, epoch=each * 10, proves_itself=each in ours) for each in broker_ids]
        )
        self.propagation.brokers_changed(self.image)
        await self.quiet()

    def change(self, after: Topic) -> None:
        before, self.image = self.image.topics.get(after.name), self.image.with_topic(after)
        self.propagation.topic_changed(before, after)

    def mark(self, name: str) -> Topic:
        marked = msgspec.structs.replace(self.image.topics[name], marked_for_deletion=True)
        self.image = self.image.with_topic(marked)
        self.propagation.topic_forgotten(marked)
        return marked

    async def quiet(self) -> None:
        """Wait until every pending request has been sent, on a mock clock."""
        await trio.sleep(0.25)


@pytest.fixture(name="world")
async def world_fixture(nursery: trio.Nursery) -> World:
    world = World()
    await nursery.start(world.propagation.run)
    return world


async def test_a_new_broker_hears_of_everyone_before_it_leads_anything(world: World, autojump_clock: object) -> None:
    """A new broker gets UpdateMetadata before LeaderAndIsr, since a follower does not start without
    knowing its leader; the other brokers get an UpdateMetadata with the new broker.
    """
    world.change(topic("t", 2, 3))
    world.change(topic("u", 3))
    await world.register(1, 2)
    assert world.brokers[2].take() == ["UMR ['t', 'u']", "LISR [('t', 0, False)]"]
    await world.register(1, 2, 3)
    assert world.brokers[2].take() == ["UMR []"]
    assert world.brokers[3].take() == ["UMR ['t', 'u']", "LISR [('t', 0, False), ('u', 0, False)]"]


async def test_a_new_topic_is_led_before_it_is_shown(world: World, autojump_clock: object) -> None:
    """A new topic is sent by LeaderAndIsr to its replicas, and then by UpdateMetadata to all
    brokers.
    """
    await world.register(1, 2, 3)
    world.brokers[2].take(), world.brokers[3].take()
    world.change(topic("t", 2))
    await world.quiet()
    assert world.brokers[2].take() == ["LISR [('t', 0, True)]", "UMR ['t']"]
    assert world.brokers[3].take() == ["UMR ['t']"]


async def test_a_node_of_this_program_is_not_told_what_it_leads(world: World, autojump_clock: object) -> None:
    """A node without logs gets UpdateMetadata only: when it registers, and when it is elected. It
    is still told to give replicas up, which its controller waits for.
    """
    world.change(topic("t", 2, 3))
    await world.register(1, 2, 3, ours=[2])
    assert world.brokers[2].take() == ["UMR ['t']"]
    assert world.brokers[3].take() == ["UMR ['t']", "LISR [('t', 0, False)]"]
    world.change(topic("t", 2, 3, epoch=1))
    await world.quiet()
    assert world.brokers[2].take() == ["UMR ['t']"]
    assert world.brokers[3].take() == ["LISR [('t', 0, False)]", "UMR ['t']"]
    world.propagation.tell_replicas(2, world.image)
    await world.quiet()
    assert world.brokers[2].take() == []
    world.change(topic("t", 3, epoch=2))
    await world.quiet()
    assert world.brokers[2].take() == ["UMR ['t']", "SR [('t', False)]", "SR [('t', True)]"]


async def test_an_isr_that_its_leader_changed_is_metadata_alone(world: World, autojump_clock: object) -> None:
    """An ISR changed by AlterPartition is sent by UpdateMetadata only, because its leader epoch is
    unchanged, and so is the transaction that created the topic; an election is sent by LeaderAndIsr
    as well.
    """
    await world.register(1, 2)
    world.change(topic("t", 2, 3))
    await world.quiet()
    world.brokers[2].take()
    (partition,) = world.image.topics["t"].partitions
    shrunk = msgspec.structs.replace(partition, isr=(2,), partition_epoch=1)
    world.change(msgspec.structs.replace(world.image.topics["t"], partitions=(shrunk,)))
    await world.quiet()
    assert world.brokers[2].take() == ["UMR ['t']"]
    world.change(msgspec.structs.replace(world.image.topics["t"], czxid=9))
    await world.quiet()
    assert world.brokers[2].take() == ["UMR ['t']"]
    elected = msgspec.structs.replace(shrunk, leader_epoch=1, partition_epoch=2)
    world.change(msgspec.structs.replace(world.image.topics["t"], partitions=(elected,)))
    await world.quiet()
    assert world.brokers[2].take() == ["LISR [('t', 0, False)]", "UMR ['t']"]


async def test_a_broker_hears_how_much_it_knows(world: World, autojump_clock: object) -> None:
    """K4-6a: a broker is sent the number of the change that its clients wait for, even if the topic
    was created and deleted in between.
    """
    await world.register(1, 2)
    world.change(topic("t", 2))
    first = world.propagation.expect_update(2)
    world.mark("t")
    second = world.propagation.expect_update(2)
    await world.quiet()
    assert first < second == heard(world.brokers[2])
    world.brokers[2].take()
    assert world.propagation.expect_update(2) == second
    await world.quiet()
    assert world.brokers[2].take() == []


async def test_a_broker_that_comes_back_hears_how_much_it_knows(world: World, autojump_clock: object) -> None:
    """K4-6a: a broker that lost its registration is sent the number of the awaited change when it
    registers again.
    """
    await world.register(1, 2)
    world.change(topic("t", 2))
    expected = world.propagation.expect_update(3)
    await world.register(1, 2, 3)
    assert heard(world.brokers[3]) >= expected


async def test_what_gets_lost_on_its_way_is_told_again(world: World, autojump_clock: object) -> None:
    """A request without an answer on an open connection times out as in Kafka, and is sent again on
    a new connection.
    """
    await world.register(1, 2)
    world.brokers[2].take()
    world.brokers[2].swallows = True
    world.change(topic("t", 3))
    await world.quiet()
    world.brokers[2].swallows = False
    await trio.sleep(ANSWER_SECONDS)
    await world.quiet()
    assert world.brokers[2].take() == ["UMR ['t']"]
    assert world.brokers[2].closed == 1
    assert world.propagation.reaches(2)


async def test_who_is_reached_is_known_by_the_last_request(world: World, autojump_clock: object) -> None:
    """A broker counts as reachable before its first request and while its last one was answered."""
    await world.register(1, 2)
    assert world.propagation.reaches(2)
    assert world.propagation.reaches(3)
    world.brokers[2].answers = trio.Event()
    world.change(topic("t", 2))
    await world.quiet()
    assert not world.propagation.reaches(2)
    world.brokers[2].answers.set()
    await world.quiet()
    assert world.propagation.reaches(2)


def heard(broker: FarBroker) -> int:
    """Return the number in the newest UpdateMetadata."""
    newest = [request for request in broker.requests if isinstance(request, UpdateMetadataRequest)][-1]
    return int.from_bytes((newest.unknown_tags or {})[UPDATE_NUMBER_TAG], signed=True)


async def test_a_topic_of_the_same_name_is_new(world: World, autojump_clock: object) -> None:
    """Deleted and made again between two words to a broker: the old one is taken away, and the new
    one's replicas are new.
    """
    await world.register(1, 2)
    world.change(topic("t", 2))
    await world.quiet()
    world.brokers[2].take()
    world.mark("t")
    world.change(msgspec.structs.replace(topic("t", 2), topic_id=b"2" * 16))
    await world.quiet()
    assert world.brokers[2].take() == ["LISR [('t', 0, True)]", "UMR ['-t', 't']"]


async def test_replicas_are_stopped_before_they_are_deleted(world: World, autojump_clock: object) -> None:
    """A deletion removes the topic from the metadata, then stops its replicas, then deletes them; a
    replica that could not be deleted is not reported as deleted.
    """
    await world.register(1, 2)
    for name in "ab":
        world.change(topic(name, 2))
    await world.quiet()
    world.brokers[2].take()
    world.brokers[2].undeleted.add("b")
    for name in "ab":
        world.propagation.delete_replicas(world.mark(name), 2)
    await world.quiet()
    assert world.brokers[2].take() == [
        "UMR ['-a', '-b']",
        "SR [('a', False), ('b', False)]",
        "SR [('a', True), ('b', True)]",
    ]
    assert world.deleted == [(2, ["a"])]


async def test_a_burst_of_changes_is_one_word(world: World, autojump_clock: object) -> None:
    """A broker that was unreachable during many changes is sent only the latest state."""
    await world.register(1, 2)
    world.brokers[2].take()
    world.brokers[2].answers = trio.Event()
    for epoch in range(50):
        world.change(topic("t", 2, epoch=epoch))
        if epoch % 10 == 0:
            await world.quiet()
    world.brokers[2].answers.set()
    await world.quiet()
    told = world.brokers[2].requests
    assert len(told) <= 4  # what was under way, and one round
    last = told[-2]
    assert isinstance(last, LeaderAndIsrRequest)
    assert last.topic_states[0].partition_states[0].leader_epoch == 49


async def test_many_partitions_are_told_in_parts(world: World, autojump_clock: object) -> None:
    """Updates of many partitions are split into several requests, except the first update of a new
    broker and the update of a single topic.
    """
    await world.register(1, 2)
    world.brokers[2].take()
    for name, partitions in (("a", 1_500), ("b", 700), ("c", 4_500)):
        world.change(msgspec.structs.replace(topic(name, 2), partitions=topic(name, 2).partitions * partitions))
    await world.quiet()
    led = [
        sum(len(topic.partition_states) for topic in request.topic_states)
        for request in world.brokers[2].requests
        if isinstance(request, LeaderAndIsrRequest)
    ]
    assert led == [1_500, 700, 2_000, 2_000, 500]
    assert world.brokers[2].take()[len(led) :] == ["UMR ['a']", "UMR ['b']", "UMR ['c']"]


async def waiting(world: World, nursery: trio.Nursery) -> Callable[[], list[bool]]:
    """Wait for all nodes in a task, and record the result."""
    told: list[bool] = []

    async def wait() -> None:
        told.append(await world.propagation.wait_acknowledged())

    nursery.start_soon(wait)
    await world.quiet()
    return lambda: told


async def test_whoever_waits_waits_for_everyone(world: World, nursery: trio.Nursery, autojump_clock: object) -> None:
    """K4-6a: until the last registered node has it; one whose registration goes is waited for no
    longer.
    """
    await world.register(1, 2, 3)
    for broker in world.brokers.values():
        broker.answers = trio.Event()
    world.change(topic("t", 2))
    told = await waiting(world, nursery)
    assert told() == []
    world.brokers[2].answers.set()
    await world.quiet()
    assert told() == []
    await world.register(1, 2)
    assert told() == [True]


async def test_whoever_is_cancelled_waits_no_more(world: World, autojump_clock: object) -> None:
    """A request whose time is over leaves nothing behind."""
    await world.register(1, 2)
    world.brokers[2].answers = trio.Event()
    world.change(topic("t", 2))
    with trio.move_on_after(1) as scope:
        await world.propagation.wait_acknowledged()
    assert scope.cancelled_caught
    assert not world.propagation._acknowledgements


async def test_a_resignation_ends_all_waiting(autojump_clock: object) -> None:
    """When a controller resigns, requests that wait for its nodes end without an
    acknowledgement.
    """
    world = World()
    async with trio.open_nursery() as outer, trio.open_nursery() as reign:
        await reign.start(world.propagation.run)
        await world.register(1, 2)
        world.brokers[2].answers = trio.Event()
        world.change(topic("t", 2))
        told = await waiting(world, outer)
        reign.cancel_scope.cancel()
    assert told() == [False]


async def test_a_broker_that_knows_better_is_asked_again(world: World, autojump_clock: object) -> None:
    """STALE_CONTROLLER_EPOCH is no acknowledgement: the controller checks the store at most once a
    second, and sends the request again.
    """
    await world.register(1, 2)
    world.brokers[2].take()
    world.brokers[2].code = ErrorCode.STALE_CONTROLLER_EPOCH
    world.change(topic("t", 3))
    await world.quiet()
    assert world.contradictions == 1
    await trio.sleep(3)
    assert world.contradictions == 4
    assert world.propagation.behind == 1
    world.brokers[2].code = ErrorCode.NONE
    await trio.sleep(1)
    assert world.brokers[2].take() == ["UMR ['t']"] * 5
    assert world.propagation.behind == 0


async def test_what_was_acknowledged_before_the_end_is_known(autojump_clock: object) -> None:
    """If the last acknowledgement and the resignation arrive in one turn of the loop, a request
    that waited only for that acknowledgement succeeds.
    """
    world = World()
    async with trio.open_nursery() as outer, trio.open_nursery() as reign:
        await reign.start(world.propagation.run)
        await world.register(1, 2)
        world.brokers[2].answers = trio.Event()
        world.change(topic("t", 2))
        told = await waiting(world, outer)
        for channel in world.propagation._channels.values():
            channel.acknowledged = world.propagation._update_number
        reign.cancel_scope.cancel()
    assert told() == [True]


async def test_a_broker_born_again_is_told_everything_again(world: World, autojump_clock: object) -> None:
    """A broker that registers its id anew has forgotten everything, and its new epoch is in the
    requests.
    """
    world.change(topic("t", 2))
    await world.register(1, 2)
    world.brokers[2].take()
    world.image = world.image.with_brokers([Broker(1, epoch=10), Broker(2, epoch=99)])
    world.propagation.brokers_changed(world.image)
    await world.quiet()
    assert [request.broker_epoch for request in world.brokers[2].requests] == [99, 99]
    assert world.brokers[2].take() == ["UMR ['t']", "LISR [('t', 0, False)]"]


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
async def test_an_error_is_no_acknowledgement(
    code: ErrorCode, world: World, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6a: an answer with an error is no acknowledgement; the request is sent again and awaited,
    and the error is logged once.
    """
    await world.register(1, 2)
    world.brokers[2].code = code
    world.change(topic("t", 2))
    told = await waiting(world, nursery)
    world.brokers[2].take()
    await trio.sleep(60)
    assert told() == []
    assert len(world.brokers[2].take()) > 100
    world.brokers[2].code = ErrorCode.NONE
    await world.quiet()
    assert told() == [True]
    assert world.brokers[2].take() == ["LISR [('t', 0, True)]", "UMR ['t']"]


async def test_an_error_is_no_end_of_replicas(world: World, autojump_clock: object) -> None:
    """A broker that refuses StopReplica as a whole has deleted nothing."""
    world.change(topic("a", 2))
    await world.register(1, 2)
    world.brokers[2].code = ErrorCode.UNKNOWN_SERVER_ERROR
    world.propagation.delete_replicas(world.mark("a"), 2)
    await world.quiet()
    assert world.deleted == []
    world.brokers[2].code = ErrorCode.NONE
    await world.quiet()
    assert world.deleted == [(2, ["a"])]


async def test_what_was_never_told_is_not_taken_back(world: World, autojump_clock: object) -> None:
    """Topics created and deleted while a broker is unreachable are never sent to it, nor kept for
    it. Topics that it knew are sent as deleted, even if the name was used again.

    What it knew it is told to forget, also if the name was used again.
    """
    world.change(topic("known", 3))
    await world.register(1, 2)
    world.brokers[2].take()
    world.brokers[2].answers = trio.Event()
    world.change(topic("first", 3))  # it is on its way to the broker
    await world.quiet()
    world.mark("first")
    world.mark("known")
    for number in range(100):
        name = f"t{number}"
        for each in (name, "known"):
            world.image = world.image.with_topics((), [each])
            world.change(topic(each, 3))
            world.mark(each)
    world.brokers[2].answers.set()
    await world.quiet()
    assert world.brokers[2].take() == ["UMR ['first']", "UMR ['-first', '-known']"]
