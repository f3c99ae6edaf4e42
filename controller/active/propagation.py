"""Sends metadata changes to all registered nodes, each by a channel of its own, and knows which
updates each node has acknowledged.

Rule: a channel lasts as long as a registration of its node. A wait for the nodes is a wait for
those that are registered, and ends with the controller.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import trio

from ...cluster.cache import first_update_number
from ...cluster.entities import NO_TOPIC_ID, Broker, Partition, Topic
from ...cluster.image import Image
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.leader_and_isr import LeaderAndIsrResponse
from . import control_requests
from .channel import Channel, LinkFactory

log = logging.getLogger("minicontroller.propagation")


class Propagation:
    """Channels to all registered nodes outside this process; `local_nodes` updates the others."""

    def __init__(
        self,
        *,
        is_here: Callable[[Broker], bool],
        inter_broker_listener: str,
        controller_epoch: int,
        image: Callable[[], Image],
        link: LinkFactory,
        on_replicas_deleted: Callable[[int, list[Topic]], None],
        on_replicas_lost: Callable[[Broker, Mapping[bytes, Collection[int]]], None],
        contradicted: Callable[[], None],
    ) -> None:
        self.image = image
        self.inter_broker_listener = inter_broker_listener
        self._is_here = is_here
        self._link = link
        self._on_replicas_deleted = on_replicas_deleted
        self._on_replicas_lost = on_replicas_lost
        """Called with the partitions, by topic id, whose replica the broker has lost with a
        directory.
        """
        self.contradicted = contradicted
        """Called when a broker answers that it follows another controller."""
        self._channels: dict[int, Channel] = {}
        self._update_number = first_update_number(controller_epoch)
        """The number of the newest update."""
        self._configs = 0
        """The number of requests so far that asked nodes to reread the configs."""
        self._nursery: trio.Nursery | None = None
        self._ended = False
        self._acknowledgements = trio.lowlevel.ParkingLot()
        self._encoded: dict[str, tuple[Topic, int, bytes]] = {}
        """The topics that were encoded last, each with the version."""
        self._encoded_for: frozenset[int] = frozenset()
        """The live brokers at the time when `_encoded` was made, because they determine the offline
        replicas.
        """

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._ended = True
            self.acknowledged()

    # ------------------------------------------------------------------ brokers

    def restart(self, image: Image) -> None:
        """Close all channels and send everything to every node, after the controller has loaded its
        state.
        """
        for channel in self._channels.values():
            channel.scope.cancel()
        self._channels.clear()
        self._encoded.clear()
        self.brokers_changed(image)

    def brokers_changed(self, image: Image) -> None:
        """Open channels to new brokers, close those of brokers that are gone or have another
        registration, and send the live brokers to all nodes.
        """
        assert self._nursery is not None
        self._update_number += 1
        for broker_id, channel in list(self._channels.items()):
            broker = image.brokers.get(broker_id)
            if (
                broker is None
                or broker.epoch != channel.broker.epoch
                or broker.endpoints != channel.broker.endpoints
                or self._is_here(broker)
            ):
                channel.scope.cancel()
                del self._channels[broker_id]
            else:
                channel.broker = broker
                channel.brokers_changed(self._update_number)
        for broker_id, broker in image.brokers.items():
            if broker_id not in self._channels and not self._is_here(broker):
                channel = self._channels[broker_id] = Channel(broker, self._link(broker), self)
                self._tell_everything(channel, image)
                self._nursery.start_soon(channel.run)
        self.acknowledged()

    def _tell_everything(self, channel: Channel, image: Image) -> None:
        channel.brokers_changed(self._update_number)
        channel.configs_changed(self._configs)
        for name, topic in image.topics.items():
            if topic.marked_for_deletion:
                channel.forget(self._update_number, topic)
                continue
            channel.metadata(self._update_number, name, None)
            self._tell_leaders(channel, topic)

    def tell_replicas(self, broker_id: int, image: Image) -> None:
        """Send a broker that has lost a log directory LeaderAndIsr for all its replicas again, to
        learn which of them are lost.
        """
        log.warning("broker %d has lost a log directory", broker_id)
        channel = self._channels.get(broker_id)
        if channel is not None:
            for topic in image.topics.values():
                if not topic.marked_for_deletion:
                    self._tell_leaders(channel, topic)
            channel.hurry(self._update_number)

    def _tell_leaders(self, channel: Channel, topic: Topic) -> None:
        if not channel.takes_leaders:
            return
        for index, partition in enumerate(topic.partitions):
            if partition.has_state and channel.broker.broker_id in partition.replicas:
                channel.leaders(topic.name, index, is_new=channel.broker.broker_id in partition.adding_replicas)

    # ------------------------------------------------------------------ topics

    def topic_changed(self, before: Topic | None, after: Topic) -> None:
        """Send all nodes the partitions whose state differs, LeaderAndIsr to the replicas that take
        it, and StopReplica to those that were replicas before.
        """
        self._update_number += 1
        known: tuple[Partition, ...] = ()
        if before is not None and before.topic_id in (after.topic_id, NO_TOPIC_ID):
            known = before.partitions
        has_new_id = before is not None and before.topic_id != after.topic_id
        has_new_czxid = before is not None and before.czxid != after.czxid
        changed = [
            index
            for index, partition in enumerate(after.partitions)
            if partition.has_state
            and (index >= len(known) or known[index] is not partition or has_new_id or has_new_czxid)
        ]
        if not changed:
            return
        moved = [
            index
            for index in changed
            if index < len(known) and known[index].replicas != after.partitions[index].replicas
        ]
        for broker_id, channel in self._channels.items():
            channel.metadata(self._update_number, after.name, changed, is_new=before is None or not before.was_ever_led)
            if channel.takes_leaders:
                _tell_news(channel, known, after, changed, has_new_id=has_new_id)
            for index in moved:
                if broker_id in known[index].replicas and broker_id not in after.partitions[index].replicas:
                    channel.remove(after, index)

    def liveness_changed(self, topic: Topic, partitions: Iterable[int]) -> None:
        """Send all nodes these partitions, of which only the offline replicas have changed."""
        self._update_number += 1
        for channel in self._channels.values():
            channel.metadata(self._update_number, topic.name, partitions)

    def topic_forgotten(self, topic: Topic) -> None:
        """Send all nodes that the topic is marked for deletion, so that they no longer serve it."""
        self._update_number += 1
        self._encoded.pop(topic.name, None)
        for channel in self._channels.values():
            channel.forget(self._update_number, topic)

    def delete_replicas(self, topic: Topic, broker_id: int) -> None:
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.delete(topic)

    def stop_replica(self, topic: Topic, partition: int, broker_id: int) -> None:
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.stop(topic, partition)

    def entities_changed(self, paths: Iterable[str]) -> None:
        """Note entities that nodes have to read before they acknowledge changed configs."""
        changed = tuple(paths)
        for channel in self._channels.values():
            channel.entities_changed(changed)

    # ------------------------------------------------------------------ acknowledgements

    async def wait_acknowledged(self, broker_id: int | None = None, *, configs: bool = False) -> bool:
        """Wait until every registered node, or this broker, has all updates made before this call.
        A node that loses its registration is not waited for. With `configs`, wait also until they
        have reread what has changed of configs, ACLs and tokens.

        Return False if the controller stopped first, so that it is not known which nodes have them.
        """
        number, request = self._update_number, 0
        if configs:
            request = self._configs = self._configs + 1
        for channel in self._behind(number, request, broker_id):
            channel.configs_changed(request)
            channel.hurry(number)
        while (behind := self._behind(number, request, broker_id)) and not self._ended:
            await self._acknowledgements.park()
        return not behind

    def expect_update(self, broker_id: int) -> int:
        """Return the number of the newest update, and have it sent to this node: now, or when it
        registers again.
        """
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.expect_update(self._update_number)
        return self._update_number

    def reaches(self, broker_id: int) -> bool:
        """Return whether this node answered the last request to it. It is true as long as none was
        sent.
        """
        channel = self._channels.get(broker_id)
        return channel is None or channel.is_reached

    def _behind(self, number: int, request: int, broker_id: int | None) -> list[Channel]:
        """Return the channels, of all nodes or of this one, that have not acknowledged this change
        or this request to read configs.
        """
        channels = self._channels.values() if broker_id is None else filter(None, [self._channels.get(broker_id)])
        return [channel for channel in channels if channel.acknowledged < number or channel.configured < request]

    @property
    def behind(self) -> int:
        """The number of registered nodes that have not acknowledged the newest update."""
        return sum(channel.acknowledged < self._update_number for channel in self._channels.values())

    def acknowledged(self) -> None:
        self._acknowledgements.unpark_all()

    def leader_and_isr_answered(self, broker: Broker, answer: LeaderAndIsrResponse) -> None:
        """Log the errors of partitions in a broker's answer, and report the replicas that it has
        lost with a directory. STALE_CONTROLLER_EPOCH is normal after an election: the broker
        already has this leader epoch.
        """
        rows = [
            (topic.topic_id, row.partition_index, row.error_code)
            for topic in answer.topics
            for row in topic.partition_errors
        ]
        for code, count in Counter(code for _, _, code in rows).items():
            if code not in (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH):
                log.warning("broker %d refuses %d partitions with error %d", broker.broker_id, count, code)
        lost: dict[bytes, set[int]] = {}
        for topic_id, index, code in rows:
            if code == ErrorCode.KAFKA_STORAGE_ERROR:
                lost.setdefault(topic_id, set()).add(index)
        if lost:
            self._on_replicas_lost(broker, lost)

    def replicas_deleted(self, broker: Broker, topics: list[Topic]) -> None:
        self._on_replicas_deleted(broker.broker_id, topics)

    def encoded_topic(self, topic: Topic, live: frozenset[int], *, version: int) -> bytes:
        """Return the whole topic as an element of UpdateMetadata, encoded once for all nodes that
        are sent this version.
        """
        if live != self._encoded_for:
            self._encoded.clear()
            self._encoded_for = live
        cached = self._encoded.get(topic.name)
        if cached is None or cached[0] is not topic or cached[1] != version:
            if len(self._encoded) >= 1024:
                self._encoded.clear()
            encoded = control_requests.encode_topic_state(topic, live, version)
            cached = self._encoded[topic.name] = (topic, version, encoded)
        return cached[2]


def _tell_news(
    channel: Channel, known: Sequence[Partition], topic: Topic, changed: Iterable[int], *, has_new_id: bool
) -> None:
    """Send a broker LeaderAndIsr for those of the changed partitions that it has to hear of. An ISR
    changed by its leader (AlterPartition) keeps its leader epoch, and replicas need not be told.
    """
    broker_id = channel.broker.broker_id
    for index in changed:
        partition, before = topic.partitions[index], known[index] if index < len(known) else None
        if broker_id not in partition.replicas:
            continue
        is_new = before is None or broker_id not in before.replicas or not before.has_state
        if is_new or has_new_id or before is None or before.leader_epoch != partition.leader_epoch:
            channel.leaders(topic.name, index, is_new=is_new)
