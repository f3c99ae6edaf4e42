"""The topics that automatic creation makes, and what Metadata answers of them."""

from collections.abc import Mapping

from ..process.settings.node_config import NodeConfig
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from .create_topics import BROKER_DEFAULT

AS_SEEN_BY_THE_CLIENT = {
    ErrorCode.NONE: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST: ErrorCode.INVALID_TOPIC_EXCEPTION,
}
"""The error codes of CreateTopics, and those that Metadata has for them. LEADER_NOT_AVAILABLE and
UNKNOWN_TOPIC_OR_PARTITION make a client ask again. INVALID_REQUEST is for names that cannot be
created (`__cluster_metadata`), and INVALID_TOPIC_EXCEPTION makes a client give up at once.
"""


def as_seen_by_the_client(code: int) -> ErrorCode:
    return AS_SEEN_BY_THE_CLIENT.get(ErrorCode(code), ErrorCode(code))


def creatable_topic(config: NodeConfig, name: str) -> CreatableTopic:
    """Return a topic with the defaults of the cluster, or an internal topic of Kafka with the
    configs that its coordinator needs.
    """
    match name:
        case "__consumer_offsets":
            return CreatableTopic(
                name=name,
                num_partitions=config.integer("offsets.topic.num.partitions"),
                replication_factor=config.integer("offsets.topic.replication.factor"),
                configs=_configs(
                    {
                        "cleanup.policy": "compact",
                        "segment.bytes": str(config.integer("offsets.topic.segment.bytes")),
                        "compression.type": "producer",
                    }
                ),
            )
        case "__transaction_state":
            return CreatableTopic(
                name=name,
                num_partitions=config.integer("transaction.state.log.num.partitions"),
                replication_factor=config.integer("transaction.state.log.replication.factor"),
                configs=_configs(
                    {
                        "cleanup.policy": "compact",
                        "compression.type": "uncompressed",
                        "min.insync.replicas": str(config.integer("transaction.state.log.min.isr")),
                        "segment.bytes": str(config.integer("transaction.state.log.segment.bytes")),
                        "unclean.leader.election.enable": "false",
                    }
                ),
            )
        case _:
            return CreatableTopic(name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)


def _configs(configs: Mapping[str, str]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
