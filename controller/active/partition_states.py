"""Plans of writes to partition states: leader elections, lost replicas, controlled shutdown.

Rule: a state is written only if its znode still has the version on which the election was based, so
an election never overwrites what a leader has written meanwhile.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

import msgspec

from ...cluster import leadership
from ...cluster.delta import PartitionsChanged, ReplicasLost
from ...cluster.entities import Broker, Partition, Topic
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...cluster.znodes.topics import encode_partition_state
from ...process.settings.node_config import NodeConfig
from ...store.base import Create, Operation, SetData, Store
from .jobs import Draft, StagedElement
from .writer import Writer

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class LeaderElector:
    """Elects leaders as jobs of the writer, for the active controller of one epoch."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        epoch: int,
        config: Callable[[], NodeConfig],
        stale: Callable[[Iterable[str]], None],
    ) -> None:
        """Prepare to elect leaders. `config` returns the configuration in force; `stale` has the
        states of topics read again.
        """
        self._store = store
        self._writer = writer
        self._epoch = epoch
        self._config = config
        self._stale = stale

    async def elect(self, plan: Callable[[Draft], Awaitable[list[StagedElement]]]) -> None:
        """Carry out elections. If the stored state of a topic has changed, have it read again, and
        its leaders elected then. Raises ControllerMoved.
        """
        elements = await self._writer.write(plan, urgent=True)
        self._stale([each.topic for each in elements if each.topic is not None and each.refusal is not None])

    async def elect_everywhere(self, draft: Draft) -> list[StagedElement]:
        """Give every partition the leader and the ISR that it should have."""
        live = draft.image.live_ids()
        for topic in list(draft.image.topics.values()):
            await draft.time_slice.pause()
            if not topic.marked_for_deletion:
                await self._elect(draft, topic, live)
        return draft.elements

    async def elect_after_change_of(
        self, draft: Draft, brokers: Collection[int], bounced: Collection[int]
    ) -> list[StagedElement]:
        """Elect leaders for the partitions with a replica on one of these brokers, which have
        registered or are gone.

        `bounced` brokers have registered again under the same id. They count as dead first, because
        they have lost what was only in memory. Replicas that a broker lost in an earlier
        registration may exist again.
        """
        _forget_losses(draft, brokers)
        live = draft.image.live_ids()
        for topic in list(draft.image.topics.values()):
            await draft.time_slice.pause()
            if not topic.marked_for_deletion and _has_replica_on(topic, brokers):
                if bounced:
                    await self._elect(draft, topic, frozenset(live) - frozenset(bounced))
                await self._elect(draft, draft.image.topics[topic.name], live)
        return draft.elements

    async def elect_for_topics(self, draft: Draft, names: Collection[str]) -> list[StagedElement]:
        """Give every partition of these topics the leader and the ISR that it should have."""
        for name in names:
            await draft.time_slice.pause()
            topic = draft.image.topics.get(name)
            if topic is not None and not topic.marked_for_deletion:
                await self._elect(draft, topic, draft.image.live_ids())
        return draft.elements

    async def _elect(self, draft: Draft, topic: Topic, live: Collection[int]) -> None:
        unclean = _allows_unclean_election(topic, self._config())
        changed = {
            index: state
            for index, partition in enumerate(topic.partitions)
            if (state := leadership.elect_leader(partition, live, unclean=unclean)) is not None
        }
        if not changed:
            return
        parents: list[Operation] = []
        if any(topic.partitions[index].partition_epoch < 0 for index in changed):
            parents = await missing_parents(self._store, topic, changed)
        stage_states(draft, topic, changed, self._epoch, parents)


def _allows_unclean_election(topic: Topic, config: NodeConfig) -> bool:
    override = topic.configs.get(UNCLEAN_ELECTION)
    return config.boolean(UNCLEAN_ELECTION) if override is None else override.strip().lower() == "true"


def lose(draft: Draft, broker: Broker, lost: Mapping[bytes, Collection[int]]) -> list[str]:
    """Mark these partitions' replicas, given by topic id, as lost by this registration of a broker.
    Returns the names of the topics that need elections.
    """
    now = draft.image.brokers.get(broker.broker_id)
    if now is None or now.epoch != broker.epoch:
        return []
    names = []
    for topic_id, indexes in lost.items():
        topic = draft.image.topic_by_id(topic_id)
        news = {} if topic is None else _with_losses(topic, indexes, broker.broker_id)
        if topic is not None and news:
            draft.stage(ReplicasLost(topic.name, topic.topic_id, lost=news))
            names.append(topic.name)
    return names


def _with_losses(topic: Topic, indexes: Collection[int], broker_id: int) -> dict[int, tuple[int, ...]]:
    """Return the lost replicas of those partitions that lose one more."""
    return {
        index: (*partition.lost_replicas, broker_id)
        for index, partition in enumerate(topic.partitions)
        if index in indexes and broker_id in partition.replicas and broker_id not in partition.lost_replicas
    }


def _forget_losses(draft: Draft, brokers: Collection[int]) -> None:
    for topic in list(draft.image.topics.values()):
        found = {
            index: tuple(each for each in partition.lost_replicas if each not in brokers)
            for index, partition in enumerate(topic.partitions)
            if any(each in brokers for each in partition.lost_replicas)
        }
        if found:
            draft.stage(ReplicasLost(topic.name, topic.topic_id, lost=found))


async def missing_parents(store: Store, topic: Topic, partitions: Collection[int]) -> list[Operation]:
    """Return the operations that create the missing parent znodes of these partitions' states.
    Topics created by other processes lack them.
    """
    (existing,) = await store.children_many([layout.partitions_path(topic.name)])
    known = set(existing or ())
    return missing_parent(topic) + [
        Create(layout.partition_path(topic.name, index)) for index in partitions if str(index) not in known
    ]


def missing_parent(topic: Topic) -> list[Operation]:
    """Return the operation that creates the `partitions` znode of a topic, if it is missing."""
    return [] if topic.has_partitions_znode else [Create(layout.partitions_path(topic.name))]


def stage_states(
    draft: Draft, topic: Topic, states: Mapping[int, Partition], epoch: int, parents: Collection[Operation] = ()
) -> StagedElement:
    written = {index: msgspec.structs.replace(state, controller_epoch=epoch) for index, state in states.items()}
    operations: list[Operation] = list(parents)
    for index, state in written.items():
        path, data = layout.partition_state_path(topic.name, index), encode_partition_state(state)
        operations.append(state_operation(path, data, topic.partitions[index]))
    delta = PartitionsChanged(topic.name, topic.topic_id, partitions=written, has_parent=True)
    return draft.stage(delta, operations)


def state_operation(path: str, data: bytes, before: Partition) -> Operation:
    return SetData(path, data, before.partition_epoch) if before.partition_epoch >= 0 else Create(path, data)


def count_unclean_elections(before: Image, after: Image, names: Iterable[str]) -> int:
    """Count the partitions of these topics that replicas lead which were not in sync."""
    topics = [(before.topics.get(name), after.topics.get(name)) for name in names]
    return sum(
        now is not old and leadership.is_unclean(old, now)
        for known, topic in topics
        if known is not None and topic is not None and known.topic_id == topic.topic_id
        for old, now in zip(known.partitions, topic.partitions, strict=False)
    )


async def release_broker(draft: Draft, broker_id: int, epoch: int) -> dict[str, list[int]]:
    """Move leaderships away from a broker in controlled shutdown, and remove it from every ISR.
    Returns the partitions, by topic, that it followed and may stop.
    """
    stopped: dict[str, list[int]] = {}
    live = draft.image.live_ids()
    for topic in list(draft.image.topics.values()):
        await draft.time_slice.pause()
        if topic.marked_for_deletion:
            continue
        changed = {
            index: state
            for index, partition in enumerate(topic.partitions)
            if (state := leadership.controlled_shutdown(partition, broker_id, live)) is not None
        }
        if changed:
            followed = [index for index in changed if topic.partitions[index].leader != broker_id]
            if followed:
                stopped[topic.name] = followed
            stage_states(draft, topic, changed, epoch)
    return stopped


def still_led(image: Image, broker_id: int) -> list[tuple[str, int]]:
    """Return the partitions with other replicas that a broker in controlled shutdown could not hand
    over.
    """
    return [
        (name, index)
        for name, topic in image.topics.items()
        for index, partition in enumerate(topic.partitions)
        if partition.leader == broker_id and len(partition.replicas) > 1 and not topic.marked_for_deletion
    ]


def _has_replica_on(topic: Topic, brokers: Collection[int]) -> bool:
    return any(replica in brokers for partition in topic.partitions for replica in partition.replicas)
