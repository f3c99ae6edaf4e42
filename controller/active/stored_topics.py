"""Makes a topic of its znodes and of what was known of it before. Any program may write these
znodes.

Rule: a topic that is served loses neither its id, nor a partition, nor a leader by a znode that
another program damaged. What cannot be true is kept away from what is served, and the znode of the
topic is then not written over until somebody has mended or deleted it; states, which only
controllers write, are written again. As at Kafka's controllers, only reassignments change the
replicas of a partition, and another program may add partitions.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...cluster.entities import NO_TOPIC_ID, STATE_IS_LOST, UNREADABLE, Partition, Topic
from ...cluster.znodes import layout
from ...cluster.znodes.content import MalformedZnodeError
from ...cluster.znodes.topics import decode_partition_state, decode_topic, uuid_text
from ...store.base import Entry

log = logging.getLogger("minicontroller.controller")

WILD_EPOCH = 2**30
"""No partition has had so many elections, and after twice as many no epoch could follow."""


class Known(msgspec.Struct, frozen=True):
    """A topic as it was known before its znodes were read."""

    topic: Topic
    is_certain: bool = True
    """Whether this controller knows it from its own writes. A node's image may be behind, and does
    not tell which replicas a reassignment adds or removes.
    """


class Assignment(msgspec.Struct, frozen=True):
    """The znode of a topic with its assignment, as it was read."""

    name: str
    found: Topic | None
    """None if the znode cannot be read."""
    known: Known | None = None

    @property
    def partition_count(self) -> int:
        known = 0 if self.known is None else len(self.known.topic.partitions)
        return max(known, 0 if self.found is None else len(self.found.partitions))

    def with_states(self, states: Sequence[Entry | None]) -> Topic:
        """Return the topic, without its configs. `states` has as many znodes as there are
        partitions.
        """
        if self.known is None:
            found = Topic(self.name, version=UNREADABLE) if self.found is None else self.found
            return _with_states(found, states, ())
        if self._is_another(has_state=any(each is not None for each in states)):
            assert self.found is not None
            return _with_states(self.found, states, ())
        return self._kept(self.known, states)

    def _is_another(self, *, has_state: bool) -> bool:
        """Whether the topic that was known has been removed, and this is another of its name. Only
        controllers of this program's present version send nodes the czxid. Without it, another id
        stands for another topic, and a missing id for the same one if that has states.
        """
        assert self.known is not None
        found, known = self.found, self.known.topic
        if found is None or found.topic_id == known.topic_id:
            return False
        if known.czxid >= 0:
            return found.czxid != known.czxid
        return found.topic_id != NO_TOPIC_ID or not has_state

    def _kept(self, known: Known, states: Sequence[Entry | None]) -> Topic:
        """Return the topic that was known, with what another program may add to it."""
        before, found = known.topic, self.found
        if found is not None and len(found.partitions) < len(before.partitions):
            log.error(
                "%s lacks partitions of the topic, which has %d: it is not followed, and not written over, until it is mended",
                layout.topic_path(self.name), len(before.partitions),
            )  # fmt: skip
            found = None
        if found is None:
            # A node's image may have partitions that it knows nothing of: then none are served.
            served = () if any(not each.replicas for each in before.partitions) else before.partitions
            kept = msgspec.structs.replace(
                before, partitions=served, version=UNREADABLE, lacks_id=False, has_partitions_znode=False
            )
            return _with_states(kept, states, before.partitions)
        rows = list(found.partitions)
        if known.is_certain and before.is_readable:
            rows[: len(before.partitions)] = before.partitions
            self._tell_of_replicas(before, found)
        topic_id = found.topic_id if before.topic_id == NO_TOPIC_ID else before.topic_id
        kept = msgspec.structs.replace(
            found, topic_id=topic_id, partitions=tuple(rows), lacks_id=topic_id != found.topic_id
        )
        if kept.lacks_id:
            log.error(
                "another program has removed or changed the id of topic %s in %s: %s is written there again",
                self.name, layout.topic_path(self.name), uuid_text(topic_id),
            )  # fmt: skip
        return _with_states(kept, states, before.partitions)

    def _tell_of_replicas(self, before: Topic, found: Topic) -> None:
        others = [
            index
            for index, (ours, theirs) in enumerate(zip(before.partitions, found.partitions, strict=False))
            if ours.replicas != theirs.replicas
        ]
        if others:
            log.warning(
                "another program has written other replicas of partitions %.80r into %s: they stay where they are; "
                "AlterPartitionReassignments moves them",
                others, layout.topic_path(self.name),
            )  # fmt: skip


def with_own_ids(topics: Iterable[Topic], known: Mapping[bytes, str]) -> list[Topic]:
    """Return topics as they were read, without the ids that others have: a topic that `known` names
    by its id, or else the one that was created first. Another program has copied the znode.
    """
    names = dict(known)
    own = {}
    for topic in sorted(topics, key=lambda each: each.czxid):
        first = topic.name if topic.topic_id == NO_TOPIC_ID else names.setdefault(topic.topic_id, topic.name)
        own[topic.name] = topic
        if first != topic.name:
            log.error(
                "%s has the id of topic %s, %s: topic %s gets an id of its own",
                layout.topic_path(topic.name), first, uuid_text(topic.topic_id), topic.name,
            )  # fmt: skip
            own[topic.name] = msgspec.structs.replace(topic, topic_id=NO_TOPIC_ID)
    return [own[topic.name] for topic in topics]


def read_assignment(name: str, entry: Entry, known: Known | None) -> Assignment:
    """Read the znode of a topic. What cannot be read is logged."""
    try:
        return Assignment(name, decode_topic(name, entry.data, entry.stat.version, entry.stat.czxid), known)
    except MalformedZnodeError as error:
        log.warning(
            "%s cannot be read: %s; what is known of the topic stays, and its znode is not written over until it is mended",
            layout.topic_path(name), error,
        )  # fmt: skip
        return Assignment(name, None, known)


def _with_states(topic: Topic, states: Sequence[Entry | None], known: Sequence[Partition]) -> Topic:
    partitions = tuple(
        _with_state(topic, index, states[index], known[index] if index < len(known) else None)
        for index in range(len(topic.partitions))
    )
    has_parent = topic.has_partitions_znode or any(each is not None for each in states)
    return msgspec.structs.replace(topic, partitions=partitions, has_partitions_znode=has_parent)


def _with_state(topic: Topic, index: int, entry: Entry | None, known: Partition | None) -> Partition:
    """Return a partition with its stored state, or with the one that was known before if that is
    lost. If nobody knows it, the partition has no leader until an unclean election is allowed,
    because it is unknown which replicas have its data.
    """
    partition, version = topic.partitions[index], -1 if entry is None else entry.stat.version
    if entry is not None:
        try:
            return _possible(decode_partition_state(partition, entry.data, version))
        except MalformedZnodeError as error:
            log.warning("%s cannot be read: %s", layout.partition_state_path(topic.name, index), error)
    if known is None or not known.has_state:
        return partition if entry is None else msgspec.structs.replace(partition, partition_epoch=version)
    log.warning("%s is lost, and is written again as it was known", layout.partition_state_path(topic.name, index))
    return msgspec.structs.replace(
        known,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
        offline_replicas=(),
        controller_epoch=STATE_IS_LOST,
        partition_epoch=version,
    )


def _possible(state: Partition) -> Partition:
    """Return a partition with its stored state. Raises MalformedZnodeError if no controller writes
    such a state: nobody could be elected from it.
    """
    if not state.isr or not set(state.isr) <= set(state.replicas):
        raise MalformedZnodeError(
            f"the ISR {list(state.isr)!r:.80} is none of the replicas {list(state.replicas)!r:.80}"
        )
    if state.leader_epoch >= WILD_EPOCH:
        raise MalformedZnodeError(f"the leader epoch {state.leader_epoch} is none")
    return state
