"""AlterReplicaLogDirs (34) moves replicas of the node that is asked to other directories of it,
where DescribeLogDirs shows them. There is nothing to copy, so a move is done at once.
"""

from collections.abc import Iterator

from immutables import Map

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from .changes import Change
from .permissions import Permission
from .spec import Changes, Fields, InnerRows, Rows, Spec

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each partition"
)
KIND = "replica"
Row = AlterReplicaLogDirPartitionResult
Partition = tuple[str, int]
"""A topic's name and the index of a partition."""


def wanted_directories(request: AlterReplicaLogDirsRequest) -> dict[Partition, str]:
    """Return the directory for each partition; of several the last counts."""
    return {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def moved_replicas(request: AlterReplicaLogDirsRequest) -> Iterator[Change]:
    """Return the directories that a request asks for, by partition, for each topic."""
    paths: dict[str, dict[str, str | None]] = {}
    for (name, index), path in wanted_directories(request).items():
        paths.setdefault(name, {})[f"{name}-{index}"] = path
    for name, wanted in paths.items():
        yield Change(name, KIND, Map(wanted), Map(dict.fromkeys(wanted, "set")))


def _topic(topic: AlterReplicaLogDirTopic) -> Fields:
    return {"topic_name": topic.name}


def _partitions(topic: AlterReplicaLogDirTopic) -> Iterator[Fields]:
    return ({"partition_index": index} for index in topic.partitions)


SPEC = Spec(
    key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    at_controller=True,
    in_envelopes=False,
    permissions=(ALTER_CLUSTER,),
    rows=Rows(
        "results",
        AlterReplicaLogDirTopicResult,
        {"topics": _topic},
        inner=InnerRows("partitions", Row, _partitions),
    ),
    changes=Changes("alter_replica_log_dirs", moved_replicas),
)
