"""Makes the entities of an image of what a Kafka cluster answers about itself; pure.

Rule: whatever is the same as before is the same object as before, so that what was derived from it
(a policy's view of a topic) stays valid.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from immutables import Map

from ...cluster.entities import UNKNOWN_PARTITION, Broker, Partition, Topic
from ...policies.configs.values import InvalidValueError, KeyType
from ...process.settings.keys import key_named
from ...process.settings.node_config import NOTHING, ConfigSource, NodeConfig
from ...process.settings.topic_configs import TOPIC_KEYS, differing_defaults
from ...protocol.config_resources import ResourceType
from ...protocol.messages.describe_configs import DescribeConfigsResult
from ...protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse, OngoingReassignment
from ...protocol.messages.metadata import MetadataResponseBroker, MetadataResponseTopic

KEYS_OF_NEW_TOPICS = frozenset(
    {
        "auto.create.topics.enable",
        "default.replication.factor",
        "num.partitions",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        *(synonym.name for key in TOPIC_KEYS.values() for synonym in key.synonyms),
    }
)
"""The keys of brokers that decide on topics whose creation does not."""
NEWER_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "max.decompressed.message.bytes": "max.decompressed.message.bytes",
        "remote.copy.lag.bytes": "log.remote.copy.lag.bytes",
        "remote.copy.lag.ms": "log.remote.copy.lag.ms",
    }
)
"""The keys of brokers that give defaults of topics which Kafka 3.9 does not have."""
KEY_TYPES = frozenset(map(int, KeyType))
MOST_PARTITIONS = 1_000_000
"""A partition's number above this is no partition's, and would only take memory."""

Moves = Mapping[str, Mapping[int, OngoingReassignment]]
"""The reassignments that are under way, by topic and partition."""
NO_MOVES: Moves = MappingProxyType({})


class ClusterDefaults(msgspec.Struct, frozen=True):
    """The cluster's configs for topics that say nothing themselves."""

    config: NodeConfig
    """The configs of a broker in the form of a node's."""
    newer: Mapping[str, str] = NOTHING
    """The defaults of those configs of topics that Kafka 3.9 does not have."""

    @property
    def differing(self) -> Mapping[str, str]:
        """The defaults of topics that are not Kafka's own."""
        return self.altered(of_broker=self.config.dynamic_broker)

    def altered(
        self, *, of_broker: Mapping[str, str] = NOTHING, of_all: Mapping[str, str] | None = None
    ) -> Mapping[str, str]:
        """Return the defaults that would hold with these configs of a broker, or of all brokers
        instead of the present ones.
        """
        of_all = self.config.dynamic_default if of_all is None else of_all
        differing = differing_defaults(self.config, Map(of_broker.items()), Map(of_all.items()))
        return MappingProxyType({**self.newer, **differing}) if self.newer else differing


def brokers_of(rows: Iterable[MetadataResponseBroker]) -> list[Broker]:
    return [Broker(row.node_id, rack=row.rack) for row in rows]


def exists(row: MetadataResponseTopic) -> bool:
    """Whether the cluster has the topic: a topic that is just being created has an error code."""
    return row.name is not None and (not row.error_code or bool(row.partitions))


def topic_of(
    row: MetadataResponseTopic,
    configs: Mapping[str, str],
    moves: Mapping[int, OngoingReassignment],
    before: Topic | None,
) -> Topic:
    """Return the topic that a row of Metadata describes, with its own configs and the reassignments
    of its partitions; `before` if nothing has changed. Raises ValueError for a row that describes
    no topic.
    """
    rows = {each.partition_index: each for each in row.partitions}
    if rows and not 0 <= min(rows) <= max(rows) < MOST_PARTITIONS:
        raise ValueError(f"the cluster describes a partition {max(rows)} of the topic {row.name}, which cannot exist")
    partitions = tuple(
        UNKNOWN_PARTITION
        if (each := rows.get(index)) is None
        else Partition(
            replicas=tuple(each.replica_nodes),
            leader=each.leader_id,
            leader_epoch=each.leader_epoch,
            isr=tuple(each.isr_nodes),
            offline_replicas=tuple(each.offline_replicas),
            adding_replicas=tuple(moves[index].adding_replicas) if index in moves else (),
            removing_replicas=tuple(moves[index].removing_replicas) if index in moves else (),
        )
        for index in range(max(rows, default=-1) + 1)
    )
    topic = Topic(name=row.name or "", topic_id=row.topic_id, partitions=partitions, configs=Map(configs))
    if before is None:
        return topic
    topic = with_moves_of(before, topic)
    return before if before == topic else topic


def with_moves_of(known: Topic, found: Topic) -> Topic:
    """Return a topic as a broker shows it, with the reassignments that go on by what is known: as
    long as it shows the replicas that are to be removed it does not know of their end, though the
    controller, which tells the reassignments, does.
    """
    if known.topic_id != found.topic_id or not any(each.removing_replicas for each in known.partitions):
        return found
    moving = {
        index: msgspec.structs.replace(
            now, adding_replicas=was.adding_replicas, removing_replicas=was.removing_replicas
        )
        for index, (was, now) in enumerate(zip(known.partitions, found.partitions, strict=False))
        if was.removing_replicas and not now.removing_replicas and set(was.replicas) == set(now.replicas)
    }
    return found.with_partitions(moving) if moving else found


def own_configs(result: DescribeConfigsResult, source: ConfigSource | None) -> dict[str, str]:
    """Return the configs of a resource that have this source, or all. Kafka tells no secrets: those
    are an empty text.
    """
    return {each.name: each.value or "" for each in result.configs if source is None or each.config_source == source}


def told_keys(results: Iterable[DescribeConfigsResult]) -> dict[str, KeyType]:
    """Return the types of the config keys that are described and are no secrets."""
    fullest: dict[int, DescribeConfigsResult] = {}
    for each in results:  # topics have the same keys, unless they are gone
        kind = each.resource_type
        if kind != ResourceType.BROKER_LOGGER and (
            kind not in fullest or len(each.configs) > len(fullest[kind].configs)
        ):
            fullest[kind] = each
    return {
        each.name: KeyType(each.config_type) if each.config_type in KEY_TYPES else KeyType.UNKNOWN
        for result in fullest.values()
        for each in result.configs
        if not each.is_sensitive
    }


def moves_of(answer: ListPartitionReassignmentsResponse) -> Moves:
    return {topic.name: {each.partition_index: each for each in topic.partitions} for topic in answer.topics}


def defaults_of(known: NodeConfig, result: DescribeConfigsResult) -> ClusterDefaults:
    """Return the defaults by the configs of one broker, described with their synonyms. `known` has
    the values of keys that the broker does not tell.
    """
    static, of_all = dict[str, str](), dict[str, str]()
    for config in result.configs:
        if config.name not in KEYS_OF_NEW_TOPICS:
            continue
        for synonym in config.synonyms:
            if synonym.value is None or not _is_valid(synonym.name, synonym.value):
                continue
            if synonym.source == ConfigSource.STATIC_BROKER_CONFIG:
                static[synonym.name] = synonym.value
            elif synonym.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG:
                of_all[synonym.name] = synonym.value
    node = NodeConfig({**known.static, **static}, dynamic_default=MappingProxyType(of_all))
    told = {each.name: each.value for each in result.configs if each.value is not None}
    newer = {name: told[synonym] for name, synonym in NEWER_SYNONYMS.items() if synonym in told}
    return ClusterDefaults(node, MappingProxyType(newer))


def _is_valid(name: str, value: str) -> bool:
    key = key_named(name)
    if key is None:
        return False
    try:
        key.parse(value)
    except InvalidValueError:
        return False
    return True
