"""Carries reassignments on: those that clients have asked for, those that a predecessor left under
way, and those that old tools have written to `/admin/reassign_partitions`.

Rule: all that is known of a reassignment stands in the topic's znode and in the states of its
partitions, so that every controller can go on with it. Each step is one write of both. The leader
brings the adding replicas into the ISR (AlterPartition); every write to a topic that moves is
followed by a look at whether it has arrived.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from ...cluster import reassignment
from ...cluster.delta import NO_CHANGE, PartitionsChanged
from ...cluster.entities import Partition, Topic
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...cluster.znodes.content import MalformedZnodeError
from ...cluster.znodes.requests import SubmittedReassignments, decode_reassignments, encode_reassignments
from ...cluster.znodes.topics import encode_partition_state, encode_topic
from ...store.base import Delete, Operation, SetData, Store
from ...store.signal import Signal
from .jobs import ControllerMoved, Draft, StagedElement
from .partition_states import state_operation
from .writer import Writer

log = logging.getLogger("minicontroller.controller")


class Submitted(msgspec.Struct, frozen=True):
    wanted: SubmittedReassignments = {}
    version: int = -1
    """The version of the znode."""
    below: Sequence[str] = ()
    """The znodes below it, which are deleted with it, as by Kafka; children come first."""

    def by_topic(self) -> dict[str, dict[int, tuple[int, ...]]]:
        """Return the wanted replicas by topic and by partition."""
        rows: dict[str, dict[int, tuple[int, ...]]] = {}
        for (name, index), replicas in self.wanted.items():
            rows.setdefault(name, {})[index] = replicas
        return rows


class Reassignments:
    """The reassignments under way, for the active controller of one epoch."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        epoch: int,
        *,
        elect: Callable[[Draft, Collection[str]], Awaitable[object]],
        stale: Callable[[Iterable[str]], None],
    ) -> None:
        """Prepare to carry reassignments on. `elect` plans elections for topics, and `stale` has
        the states of topics read again.
        """
        self.submitted_changed = Signal()
        """Sent when `/admin/reassign_partitions` may have changed."""
        self._store = store
        self._writer = writer
        self._epoch = epoch
        self._elect = elect
        self._stale = stale
        self._submitted = Submitted()
        self._candidates: dict[str, None] = {}
        """The names of topics that may have arrived."""
        self._moving: set[str] = set()
        """The names of topics whose replicas are being moved."""
        self._changed = Signal()

    def topics_changed(self, image: Image, names: Iterable[str]) -> None:
        """Look, soon, at those of these topics whose replicas are being moved."""
        submitted = {topic for topic, _ in self._submitted.wanted}
        for name in names:
            topic = image.topics.get(name)
            is_moving = topic is not None and topic.is_moving
            (self._moving.add if is_moving else self._moving.discard)(name)
            if is_moving or name in submitted:
                self._candidates[name] = None
        if self._candidates:
            self._changed.send()

    def count_moving(self) -> int:
        """Return the number of partitions whose replicas are being moved."""
        found = (self._writer.image.topics.get(name) for name in self._moving)
        return sum(len(reassignment.moving_partitions(topic)) for topic in found if topic is not None)

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            names, self._candidates = self._candidates, {}
            try:
                await self._write(partial(self._complete, names=names))
            except ControllerMoved:
                return  # the next controller resumes them

    async def _write(self, plan: Callable[[Draft], Awaitable[Submitted]]) -> None:
        """Carry out steps of reassignments. Read again what other processes have written, where
        they kept these steps from being written.
        """

        async def planned(draft: Draft) -> tuple[Submitted, list[StagedElement]]:
            return await plan(draft), draft.elements

        submitted, elements = await self._writer.write(planned, urgent=True)
        refused = [each for each in elements if each.refusal is not None]
        self._stale(each.topic for each in refused if each.topic is not None)
        if any(each.topic is None for each in refused):
            self.submitted_changed.send()
        else:
            self._submitted = submitted

    async def _complete(self, draft: Draft, names: Collection[str]) -> Submitted:
        """Complete the reassignments of these topics whose wanted replicas are in sync."""
        await self._elect(draft, names)  # a partition that nobody could lead may be led by an adding replica
        live = draft.image.live_ids()
        for name in names:
            await draft.time_slice.pause()
            topic = draft.image.topics.get(name)
            if topic is None or topic.marked_for_deletion or not topic.is_readable:
                continue
            arrived = {
                index: partition
                for index in reassignment.moving_partitions(topic)
                if (partition := reassignment.complete(topic.partitions[index], live)) is not None
            }
            if arrived:
                log.info("topic %s: the reassignment of %d partitions is complete", name, len(arrived))
                stage(draft, topic, arrived, self._epoch)
        return _stage_rest(draft, self._submitted)

    async def resume(self, draft: Draft) -> None:
        """Go on with the reassignments that a predecessor has begun: all replicas are sent
        LeaderAndIsr in a new leader epoch, as by Kafka's controllers, since it is not known who got
        it before.
        """
        live = draft.image.live_ids()
        for topic in list(draft.image.topics.values()):
            await draft.time_slice.pause()
            if topic.is_moving:
                self._moving.add(topic.name)
            if topic.marked_for_deletion or not topic.is_readable:
                continue
            resumed = {
                index: partition
                for index in reassignment.moving_partitions(topic)
                if (partition := _resumed(topic.partitions[index], live)) != topic.partitions[index]
            }
            if resumed:
                log.info("topic %s: the reassignment of %d partitions is resumed", topic.name, len(resumed))
                stage(draft, topic, resumed, self._epoch)

    # ------------------------------------------------------------------ /admin/reassign_partitions

    async def read_submitted(self) -> None:
        """Begin what tools before Kafka 2.4 have written to `/admin/reassign_partitions`. What is
        done, or cannot be done, is removed from there.
        """
        entry = await self._store.get(layout.REASSIGN_PARTITIONS, self.submitted_changed.send)
        self._submitted = Submitted()
        if entry is None:
            return
        try:
            wanted = decode_reassignments(entry.data)
        except MalformedZnodeError as error:
            log.warning("%s is ignored: %s", layout.REASSIGN_PARTITIONS, error)
            return
        submitted = Submitted(wanted, entry.stat.version, await self._below(layout.REASSIGN_PARTITIONS))
        await self._write(partial(self._begin_submitted, submitted=submitted))

    async def _below(self, path: str) -> list[str]:
        """Return the znodes below one, children before their parents."""
        found, level = [path], [path]
        while level:
            listed = await self._store.children_many(level)
            level = [f"{parent}/{name}" for parent, names in zip(level, listed, strict=True) for name in names or ()]
            found += level
        return found[:0:-1]

    async def _begin_submitted(self, draft: Draft, submitted: Submitted) -> Submitted:
        live = draft.image.live_ids()
        for name, rows in submitted.by_topic().items():
            await draft.time_slice.pause()
            topic = draft.image.topics.get(name)
            begun: dict[int, Partition] = {}
            for index, replicas in rows.items():
                before = _partition(topic, index)
                if before is None or not _is_possible(before, replicas):
                    log.warning("the reassignment of partition %d of topic %s is impossible and dropped", index, name)
                elif not _is_under_way(before, replicas):
                    begun[index] = reassignment.reassign(before, replicas, live)
            if topic is not None and begun:
                stage(draft, topic, begun, self._epoch)
        return _stage_rest(draft, submitted)


def _stage_rest(draft: Draft, submitted: Submitted) -> Submitted:
    """Leave in `/admin/reassign_partitions` what is still under way, and return it."""
    left = {
        (name, index): replicas
        for (name, index), replicas in submitted.wanted.items()
        if (partition := _partition(draft.image.topics.get(name), index)) is not None
        and _is_under_way(partition, replicas)
    }
    if left == submitted.wanted:
        return submitted
    path, version = layout.REASSIGN_PARTITIONS, submitted.version
    gone = [*map(Delete, submitted.below), Delete(path, version)]
    draft.stage(NO_CHANGE, [SetData(path, encode_reassignments(left), version)] if left else gone)
    return msgspec.structs.replace(submitted, wanted=left, version=version + 1)


def stage(draft: Draft, topic: Topic, changed: Mapping[int, Partition], epoch: int) -> StagedElement:
    """Write the assignments and the states of some partitions of a topic. Raises Refusal.

    The assignments come last: should all of it not fit into one transaction, the replicas of before
    a reassignment stand in the topic's znode until the states no longer need them.
    """
    operations: list[Operation] = []
    written: dict[int, Partition] = {}
    for index, partition in changed.items():
        before = topic.partitions[index]
        if partition.partition_epoch == before.partition_epoch:
            written[index] = partition
            continue
        written[index] = state = msgspec.structs.replace(partition, controller_epoch=epoch)
        path = layout.partition_state_path(topic.name, index)
        operations.append(state_operation(path, encode_partition_state(state), before))
    version = topic.version
    if any(_assignment(partition) != _assignment(topic.partitions[index]) for index, partition in changed.items()):
        version += 1
        data = encode_topic(topic.with_partitions(written))
        operations.append(SetData(layout.topic_path(topic.name), data, topic.version))
    delta = PartitionsChanged(topic.name, topic.topic_id, partitions=written, version=version)
    return draft.stage(delta, operations)


def _assignment(partition: Partition) -> tuple[tuple[int, ...], ...]:
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def _resumed(partition: Partition, live: frozenset[int]) -> Partition:
    return reassignment.reassign(partition, reassignment.target(partition), live)


def _partition(topic: Topic | None, index: int) -> Partition | None:
    if topic is None or topic.marked_for_deletion or not topic.is_readable:
        return None
    return topic.partition(index)


def _is_possible(partition: Partition, replicas: tuple[int, ...]) -> bool:
    return bool(replicas) and len(set(replicas)) == len(replicas) and reassignment.keeps_records(partition, replicas)


def _is_under_way(partition: Partition, replicas: tuple[int, ...]) -> bool:
    return partition.is_moving and reassignment.target(partition) == replicas
