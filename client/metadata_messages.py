"""Makes descriptions of topics and of the cluster from a Metadata response; pure."""

from collections.abc import Collection

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from .errors import AdminError
from .model import BrokerDescription, ClusterDescription, PartitionDescription, Results, TopicDescription

PASSING = frozenset({ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE})
"""The errors of a topic that exists; its partitions show what is missing."""


def described(answer: MetadataResponse, names: Collection[str] | None) -> Results[str, TopicDescription]:
    """Describe the named topics, or all if `names` is None; a topic that nobody asked for is left
    out.
    """
    wanted = None if names is None else set(names)
    return {
        topic.name: _description(topic) if topic.error_code in PASSING else AdminError(topic.error_code)
        for topic in answer.topics
        if topic.name is not None and (wanted is None or topic.name in wanted)
    }


def _description(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            index=partition.partition_index,
            leader=partition.leader_id if partition.leader_id >= 0 else None,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            offline=tuple(partition.offline_replicas),
        )
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    )
    return TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def cluster(answer: MetadataResponse) -> ClusterDescription:
    topics = described(answer, None)
    ids = {broker.node_id for broker in answer.brokers}
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id if answer.controller_id in ids else None,
        brokers=tuple(
            BrokerDescription(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in sorted(answer.brokers, key=lambda broker: broker.node_id)
        ),
        topics=tuple(topic for _, topic in sorted(topics.items()) if isinstance(topic, TopicDescription)),
    )
