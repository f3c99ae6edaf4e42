"""ElectLeaders (43) elects preferred leaders, or leaders that are not in sync where no in-sync
replica is left.
"""

from collections.abc import Iterator

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.elect_leaders import (
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from .permissions import Permission
from .requested_changes import elected_topics
from .spec import Changes, Fields, InnerRows, Rows, Spec, copied

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request and each partition"
)


def _partitions(topic: TopicPartitions) -> Iterator[Fields]:
    return ({"partition_id": index} for index in topic.partitions)


SPEC = Spec(
    key=ApiKey.ELECT_LEADERS,
    at_controller=True,
    permissions=(ALTER_CLUSTER,),
    rows=Rows(
        "replica_election_results",
        ReplicaElectionResult,
        {"topic_partitions": copied("topic")},
        inner=InnerRows("partition_result", PartitionResult, _partitions),
    ),
    changes=Changes("elect_leaders", elected_topics),
)
