"""The channel to one registered node: the updates that it still needs, and the task that sends
them.

Rule: pending updates are kept as names of topics and partitions, never as requests; requests are
made from the newest image when the node is ready for them. So a slow node costs a bounded amount of
memory, a burst of changes becomes few requests, and a node that comes back gets only the present
state. A response with an error acknowledges nothing: the request is sent again.

The order within one round is that of Kafka's ControllerBrokerRequestBatch: LeaderAndIsr,
UpdateMetadata, StopReplica. A broker of Kafka that has just registered gets UpdateMetadata first,
because it does not start a follower whose leader it does not know. Nodes of this program have no
logs and are not sent LeaderAndIsr.
"""

import logging
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, TypeVar

import trio

from ...cluster.entities import Broker, Topic
from ...cluster.image import Image
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.leader_and_isr import LeaderAndIsrResponse
from ...protocol.messages.stop_replica import StopReplicaResponse
from ...protocol.messages.update_metadata import UpdateMetadataResponse
from . import control_requests

log = logging.getLogger("minicontroller.propagation")

ANSWER_SECONDS = 30.0
"""The time that a node has to respond before the request is sent again on another connection
(Kafka: `controller.socket.timeout.ms`).
"""
RETRY_SECONDS = 0.1  # Kafka: RequestSendThread backs off 100 ms
CONTRADICTED_SECONDS = 1.0
"""The pause before a request is sent again to a broker that follows another controller."""
MIN_INTERVAL_SECONDS = 0.005
"""The pause between two rounds while no request waits for the node, so that under load one round
carries several changes.
"""

MAX_NAMED_ENTITIES = 1_000
"""The most entities that a request to reread names. If there are more, the node reads all that new
notifications name.
"""

T = TypeVar("T")


class Unreachable(Exception):  # noqa: N818
    """The node could not be reached, or did not respond in time."""


class ControlLink(Protocol):
    """The connection to one node. `request` sends a request in the version of the node and returns
    its response; it raises Unreachable.
    """

    versions: control_requests.ControlVersions

    async def request(self, message: control_requests.ControlRequest) -> object: ...

    async def aclose(self) -> None: ...


LinkFactory = Callable[[Broker], ControlLink]


class ChannelOwner(Protocol):
    """The part of `Propagation` that its channels call."""

    image: Callable[[], Image]
    """Returns the newest image."""
    inter_broker_listener: str
    contradicted: Callable[[], None]
    """Called when a broker answers that it follows another controller."""

    def acknowledged(self) -> None: ...

    def leader_and_isr_answered(self, broker: Broker, answer: LeaderAndIsrResponse) -> None: ...

    def replicas_deleted(self, broker: Broker, topics: list[Topic]) -> None: ...

    def encoded_topic(self, topic: Topic, live: frozenset[int], *, version: int) -> bytes: ...


class Channel:
    """Keeps the pending updates of one registered node, and sends them."""

    def __init__(self, broker: Broker, link: ControlLink, owner: ChannelOwner) -> None:
        self.broker = broker
        self.acknowledged = -1
        """The number of the newest update that the node has acknowledged."""
        self.is_reached = True
        """Whether the node responded to the last request; true before the first one."""
        self._updated_to = self._expected = -1
        """Two update numbers: the newest that was sent to the node, and the newest that the
        response to one of its clients has carried.
        """
        self.configured = 0
        """The number of the newest request to reread the configs that the node has completed."""
        self._configs = 0
        """The number of the newest request to reread the configs."""
        self._entities: set[str] | None = None
        """The entities, by path, that the node has to read with the next request to reread the
        configs; None for all that notifications name.
        """
        self.scope = trio.CancelScope()
        self._link = link
        self._owner = owner
        self._fresh = True
        self._update_number = -1
        self._brokers_changed = False
        self._metadata: dict[str, set[int] | None] = {}
        self._never_sent: set[str] = set()
        """The new topics that no request to the node has named yet."""
        self._forgotten: dict[str, Topic] = {}
        self._leaders: dict[str, dict[int, bool]] = {}
        self._stops: dict[str, tuple[Topic, set[int]]] = {}
        self._removals: dict[str, tuple[Topic, set[int]]] = {}
        self._deletions: dict[str, Topic] = {}
        self._wake = trio.Event()
        self._urgent = trio.Event()
        self._last_warning: int = ErrorCode.NONE
        """The last error that was logged; NONE once the node has answered without an error."""

    # ------------------------------------------------------------------ pending updates

    def brokers_changed(self, number: int) -> None:
        self._brokers_changed = True
        self.hurry(number)

    def configs_changed(self, request: int) -> None:
        """Have the node read the configs of brokers from the store again."""
        self._configs = max(request, self._configs)
        self.hurry(self._update_number)

    def entities_changed(self, paths: Iterable[str]) -> None:
        """Have the next request to reread the configs name these entities, too."""
        if self._entities is not None:
            self._entities.update(paths)
            if len(self._entities) > MAX_NAMED_ENTITIES:
                self._entities = None

    def expect_update(self, number: int) -> None:
        """Note that the response to a client of the node carries this update number: the node holds
        reads back until the number is sent to it.
        """
        if number > self._updated_to:
            self._expected = max(number, self._expected)
            self._stir(number)  # reads rarely follow changes, and wait for MIN_INTERVAL_SECONDS at most

    def metadata(self, number: int, topic: str, partitions: Iterable[int] | None, *, is_new: bool = False) -> None:
        """Send these partitions of a topic, or all of them (None), by UpdateMetadata. `is_new` says
        that the topic has just been created.
        """
        if is_new:
            self._never_sent.add(topic)
        known = self._metadata.get(topic, set())
        self._metadata[topic] = None if partitions is None or known is None else known | set(partitions)
        self._stir(number)

    @property
    def takes_leaders(self) -> bool:
        """Whether the node is sent LeaderAndIsr. A node of this program has no logs, and so nothing
        to do when it leads or follows.
        """
        return not self.broker.proves_itself

    def leaders(self, topic: str, partition: int, *, is_new: bool) -> None:
        """Send LeaderAndIsr for a partition with a replica on the node. `is_new` says that the
        partition has just been created.
        """
        partitions = self._leaders.setdefault(topic, {})
        partitions[partition] = partitions.get(partition, False) or is_new

    def forget(self, number: int, topic: Topic) -> None:
        """Send that the topic is being deleted, unless the topic was never sent to the node."""
        self._metadata.pop(topic.name, None)
        self._leaders.pop(topic.name, None)
        if topic.name in self._never_sent:
            self._never_sent.discard(topic.name)
            self._stir(number)
            return
        before = self._forgotten.get(topic.name)
        if before is None or len(before.partitions) <= len(topic.partitions):  # each partition is removed by itself
            self._forgotten[topic.name] = topic
        self._stir(number)

    def stop(self, topic: Topic, partition: int) -> None:
        """Have the node stop following a partition and keep its data (controlled shutdown)."""
        _, known = self._stops.get(topic.name, (topic, set()))
        self._stops[topic.name] = topic, known | {partition}
        self._stir(self._update_number)

    def remove(self, topic: Topic, partition: int) -> None:
        """Have the node stop and delete its replica of a partition that has moved to other nodes,
        unless it gets one again meanwhile.
        """
        _, known = self._removals.get(topic.name, (topic, set()))
        self._removals[topic.name] = topic, known | {partition}
        self._stir(self._update_number)

    def delete(self, topic: Topic) -> None:
        """Have the node stop the replicas of a topic that is being deleted, then delete them."""
        self._deletions[topic.name] = topic
        self.hurry(self._update_number)

    def hurry(self, number: int) -> None:
        """Send all updates up to this number without a pause, because a request waits for them."""
        self._stir(number)
        self._urgent.set()

    def _stir(self, number: int) -> None:
        self._update_number = max(number, self._update_number)
        self._wake.set()

    # ------------------------------------------------------------------ sending them

    async def run(self) -> None:
        with self.scope:
            try:
                while True:
                    await self._wake.wait()
                    self._wake = trio.Event()
                    await self._round()
                    with trio.move_on_after(MIN_INTERVAL_SECONDS):
                        await self._urgent.wait()
            finally:
                with trio.move_on_after(0.5, shield=True):
                    await self._link.aclose()

    async def _round(self) -> None:
        self._urgent = trio.Event()
        image, number, fresh = self._owner.image(), self._update_number, self._fresh
        leaders, self._leaders = self._leaders, {}
        metadata, self._metadata = self._metadata, {}
        forgotten, self._forgotten = self._forgotten, {}
        self._never_sent = set()
        stops, self._stops = self._stops, {}
        removals, self._removals = self._removals, {}
        deletions, self._deletions = self._deletions, {}
        brokers_changed, self._brokers_changed = self._brokers_changed, False

        if fresh:
            await self._update_metadata(image, metadata, forgotten, number, complete=True)
            self._fresh = False
        if leaders:
            await self._leader_and_isr(image, leaders)
        if not fresh and (metadata or forgotten or brokers_changed or self._expected > self._updated_to):
            await self._update_metadata(image, metadata, forgotten, number)
        self.acknowledged = max(self.acknowledged, number)
        self._owner.acknowledged()
        if self.configured < self._configs:
            await self._update_configs(image)
        if stops:
            await self._send(control_requests.stop_replica(image, self.broker, stops, delete=False))
        if removed := control_requests.still_removed(self._owner.image(), self.broker.broker_id, removals):
            await self._send(control_requests.stop_replica(image, self.broker, removed, delete=False))
            await self._send(control_requests.stop_replica(image, self.broker, removed, delete=True))
        if deletions:
            await self._delete_replicas(image, deletions)

    async def _leader_and_isr(self, image: Image, leaders: dict[str, dict[int, bool]]) -> None:
        states = (
            (state, len(state.partition_states))
            for state in control_requests.leader_states(image, self.broker.broker_id, leaders)
        )
        listener = self._owner.inter_broker_listener
        for part in await in_parts(states):
            if part:
                answer = await self._send(control_requests.leader_and_isr(image, self.broker, part, listener))
                assert isinstance(answer, LeaderAndIsrResponse)
                self._owner.leader_and_isr_answered(self.broker, answer)

    async def _update_metadata(
        self,
        image: Image,
        metadata: dict[str, set[int] | None],
        forgotten: dict[str, Topic],
        number: int,
        *,
        complete: bool = False,
    ) -> None:
        encoded = partial(self._owner.encoded_topic, version=self._link.versions.update_metadata)
        states = control_requests.topic_states(image, metadata, forgotten, encoded)
        # A complete update must be one request, because topics that it does not name do not exist.
        parts = await in_parts(states, math.inf if complete else control_requests.MOST_PARTITIONS)
        for part in parts:
            last_number = number if part is parts[-1] else None
            await self._send(
                control_requests.update_metadata(image, self.broker, part, complete=complete, update_number=last_number)
            )
        self._updated_to = number

    async def _update_configs(self, image: Image) -> None:
        """Ask the node once to reread the configs. If it cannot, it is asked again in the next
        round, so that a node without the store still gets the metadata.
        """
        request, is_done = self._configs, False
        entities, self._entities = self._entities, set()
        try:
            reread = None if entities is None else sorted(entities)
            answer = await self._ask(
                control_requests.update_metadata(image, self.broker, [], configs=True, entities=reread)
            )
            assert isinstance(answer, UpdateMetadataResponse)
            is_done = answer.error_code == ErrorCode.NONE
        except Unreachable as error:
            log.debug("broker %d does not answer yet: %s", self.broker.broker_id, error)
        if is_done:
            self.configured = request
            self._owner.acknowledged()
        else:
            self._entities = None if entities is None or self._entities is None else self._entities | entities
            await trio.sleep(RETRY_SECONDS)
            self.hurry(self._update_number)

    async def _delete_replicas(self, image: Image, topics: dict[str, Topic]) -> None:
        for part in await in_parts((topic, len(topic.partitions)) for topic in topics.values()):
            here = control_requests.replicas_on(self.broker.broker_id, part)
            await self._send(control_requests.stop_replica(image, self.broker, here, delete=False))
            answer = await self._send(control_requests.stop_replica(image, self.broker, here, delete=True))
            assert isinstance(answer, StopReplicaResponse)
            failed = {error.topic_name for error in answer.partition_errors if error.error_code != ErrorCode.NONE}
            self._owner.replicas_deleted(self.broker, [topic for topic in part if topic.name not in failed])

    async def _send(self, message: control_requests.ControlRequest) -> object:
        """Send a request until the response has no error, and return the response. The channel
        ends with the node's registration, not with an error.
        """
        while True:
            pause_seconds = RETRY_SECONDS
            try:
                answer = await self._ask(message)
            except Unreachable as error:
                log.debug("broker %d does not answer yet: %s", self.broker.broker_id, error)
            else:
                assert isinstance(answer, LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse)
                if answer.error_code == ErrorCode.NONE:
                    self._last_warning = ErrorCode.NONE
                    return answer
                pause_seconds = self._refused(message, answer.error_code)
            await trio.sleep(pause_seconds)

    async def _ask(self, message: control_requests.ControlRequest) -> object:
        try:
            with trio.fail_after(ANSWER_SECONDS):
                answer = await self._link.request(message)
        except Unreachable:
            self.is_reached = False
            raise
        except trio.TooSlowError:
            self.is_reached = False
            log.warning(
                "broker %d has not answered for %d s: sending the request again", self.broker.broker_id, ANSWER_SECONDS
            )
            await self._link.aclose()
            raise Unreachable("no answer in time") from None
        self.is_reached = True
        return answer

    def _refused(self, message: control_requests.ControlRequest, code: int) -> float:
        """Log a node's error, and return the pause in seconds before the request is sent again. If
        the node follows another controller, have the election check the store.
        """
        if code != self._last_warning:  # a repeated error is logged once
            self._last_warning = code
            log.warning("broker %d answers %s with error %d", self.broker.broker_id, type(message).__name__, code)
        if code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._owner.contradicted()
            return CONTRADICTED_SECONDS
        return RETRY_SECONDS


async def in_parts(states: Iterable[tuple[T, int]], most: float = control_requests.MOST_PARTITIONS) -> list[list[T]]:
    """Divide states, each given with its number of partitions, into lists of up to `most`
    partitions. There is at least one list, and no state is divided.
    """
    time_slice, parts, total = TimeSlice(), list[list[T]]([[]]), 0
    for state, partitions in states:
        if parts[-1] and total + partitions > most:
            parts.append([])
            total = 0
        parts[-1].append(state)
        total += partitions
        await time_slice.pause()
    return parts
