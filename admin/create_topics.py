"""CreateTopics (19) creates topics, with replicas that are chosen here or given by the request.

The order of the checks is Kafka's (ZkAdminManager.createTopics), so a request that is wrong in two
ways gets the same error as from Kafka.
"""

from random import Random

from immutables import Map

from ..cluster import leadership
from ..cluster.entities import Topic
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..cluster.placement import Assignment, assign_replicas, check_counts, placed_brokers
from ..cluster.random_ids import new_id
from ..cluster.topic_names import validate_topic_name
from ..cluster.znodes.topics import refuse_unstorable
from ..process.settings.node_config import NodeConfig
from ..process.settings.topic_configs import validate_topic_configs
from ..process.steps import Steps
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
)
from .permissions import Permission
from .requested_changes import named_topics
from .spec import Changes, Rows, Spec, copied

CREATE_TOPICS = Permission(
    AclOperation.CREATE, AclResourceType.CLUSTER, "only topics that the client may create are created"
)
CREATE_TOPIC = Permission(
    AclOperation.CREATE,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED for the topic, unless the client may create all topics",
)
DESCRIBE_CONFIGS = Permission(
    AclOperation.DESCRIBE_CONFIGS,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED in the row's topic_config_error_code instead of the partitions and configs",
)
CLUSTER_METADATA = "__cluster_metadata"
"""The topic that KRaft keeps the cluster in. Kafka refuses it before it asks for any permission."""
BROKER_DEFAULT = -1
"""A count that the configuration of the brokers decides (KIP-464)."""


def creation(
    image: Image, wanted: CreatableTopic, node: NodeConfig, *, static: NodeConfig, max_bytes: int, random: Random
) -> Steps[Topic]:
    """Return a topic as it will be created. Its replicas are placed only after all other checks
    have passed. `node` is the configuration in force, `static` that of the node's file, and the
    topic's znode may have `max_bytes`. Raises Refusal.
    """
    configs = check_wanted(image, wanted)
    brokers = placed_brokers(image)
    counts = None if wanted.assignments else wanted_counts(wanted, static)
    if counts is not None:
        refuse_unstorable(*counts, max_bytes)
        check_counts(brokers, *counts)
    check_name(image, wanted.name)
    assignment = manual_assignment(image, wanted) if counts is None else ()
    validate_topic_configs(configs, node)
    if counts is not None:
        assignment = assign_replicas(brokers, *counts, random=random.randrange)
        yield
    return Topic(
        name=wanted.name,
        topic_id=new_id(),
        partitions=leadership.new_partitions(image, assignment),
        configs=Map(configs),
        version=0,
        config_version=image.leftover_configs.get(wanted.name, -1) + 1,
        has_partitions_znode=True,
    )


def wanted_counts(wanted: CreatableTopic, config: NodeConfig) -> tuple[int, int]:
    """Return how many partitions and replicas a topic gets that does not name them."""
    partitions, factor = wanted.num_partitions, wanted.replication_factor
    if partitions == BROKER_DEFAULT:
        partitions = config.integer("num.partitions")
    if factor == BROKER_DEFAULT:
        factor = config.integer("default.replication.factor")
    return partitions, factor


def check_wanted(image: Image, wanted: CreatableTopic) -> dict[str, str]:
    """Make the checks of a topic that come before those of its counts, and return its configs.
    Raises Refusal.
    """
    existing = image.topics.get(wanted.name)
    if existing is not None and not existing.marked_for_deletion:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{wanted.name}' already exists.")
    configs = _configs(wanted)
    if wanted.assignments and (wanted.num_partitions != -1 or wanted.replication_factor != -1):
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    return configs


def check_name(image: Image, name: str) -> None:
    """Make the checks of a topic's name, which come after those of its counts. Raises Refusal."""
    validate_topic_name(name)
    if name in image.topics:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
    image.name_index.refuse_collision(name)


def check_is_no_metadata(name: str) -> None:
    """Raise Refusal for the topic that KRaft keeps the cluster in."""
    if name == CLUSTER_METADATA:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited.")


def manual_assignment(image: Image, wanted: CreatableTopic) -> Assignment:
    """Check and return the assignment that the request names. Raises Refusal.

    Kafka in ZooKeeper mode accepts unknown brokers and empty lists, and creates a topic that can
    neither be used nor deleted. KIP-4 and KRaft refuse them, and so does this function.
    """
    rows = {assignment.partition_index: tuple(assignment.broker_ids) for assignment in wanted.assignments}
    if len(rows) != len(wanted.assignments):
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once.")
    for index, replicas in sorted(rows.items()):
        if not replicas:
            raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {index} has no replicas.")
        if len(set(replicas)) != len(replicas):
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Duplicate replica assignment found: partition {index} on {list(replicas)}",
            )
    if len({len(replicas) for replicas in rows.values()}) != 1:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "All partitions should have the same number of replicas")
    if sorted(rows) != list(range(len(rows))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    unknown = sorted(
        {replica for replicas in rows.values() for replica in replicas}.difference(image.replica_brokers())
    )
    if unknown:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Unknown broker(s) in replica assignment: {unknown}.")
    return tuple(rows[index] for index in range(len(rows)))


def _configs(wanted: CreatableTopic) -> dict[str, str]:
    missing = [config.name for config in wanted.configs if config.value is None]
    if missing:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
    return {config.name: config.value for config in wanted.configs if config.value is not None}


def _default_message(code: ErrorCode) -> str | None:
    return "" if code == ErrorCode.NOT_CONTROLLER else None  # Kafka sends an empty message here


SPEC = Spec(
    key=ApiKey.CREATE_TOPICS,
    at_controller=True,
    permissions=(CREATE_TOPICS, CREATE_TOPIC, DESCRIBE_CONFIGS),
    rows=Rows("topics", CreatableTopicResult, {"topics": copied("name")}, default_message=_default_message),
    changes=Changes("create_topic", named_topics),
)
