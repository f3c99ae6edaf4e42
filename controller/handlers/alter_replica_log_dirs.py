"""AlterReplicaLogDirs (34) moves replicas of the node that is asked to other directories of it,
where DescribeLogDirs shows them. There is nothing to copy, so a move is done at once.
"""

from collections.abc import Iterator

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from ..requests.context import RequestContext
from ..requests.long_answers import note
from ..requests.permissions import Permission
from ..requests.spec import Fields, InnerRows, Rows, Spec
from ..requests.time_slices import TimeSlice
from .node import Node

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each partition"
)
LONGEST_NAME = 215
"""The most characters of a topic's name, a hyphen and a partition's number together. While Kafka
moves a replica, its folder has 40 more, and a folder's name has at most 255.
"""

Row = AlterReplicaLogDirPartitionResult


async def handle(
    node: Node, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    may_alter = context.may(ALTER_CLUSTER)
    time_slice = TimeSlice()
    rows: dict[str, list[Row]] = {}
    for (name, index), path in _wanted(request).items():
        code = _move(node, path, name, index) if may_alter else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        note(code, context)
        rows.setdefault(name, []).append(Row(partition_index=index, error_code=code))
        await time_slice.pause()
    node.log_dirs.forget_all_but(node.cache.image)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=each) for name, each in rows.items()]
    )


def _wanted(request: AlterReplicaLogDirsRequest) -> dict[tuple[str, int], str]:
    """Return the directory for each partition; of several the last counts."""
    return {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _move(node: Node, path: str, name: str, index: int) -> ErrorCode:
    """Move a replica, with the checks in Kafka's order (ReplicaManager.alterReplicaLogDirs).

    A replica that this node does not hold yet will be made in the directory: a tool that reassigns
    partitions asks for that first, and again until the replica is there.
    """
    topic = node.cache.image.topics.get(name)
    if len(f"{name}-{index}".encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in node.log_dirs.paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = None if topic is None else topic.partition(index)
    if topic is None or partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.log_dirs.move(path, topic, index)
    return ErrorCode.NONE if node.broker_id in partition.replicas else ErrorCode.REPLICA_NOT_AVAILABLE


def _topic(topic: AlterReplicaLogDirTopic) -> Fields:
    return {"topic_name": topic.name}


def _partitions(topic: AlterReplicaLogDirTopic) -> Iterator[Fields]:
    return ({"partition_index": index} for index in topic.partitions)


API = Spec(
    key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    handler=handle,
    waits_for_update=True,
    permissions=(ALTER_CLUSTER,),
    rows=Rows(
        "results",
        AlterReplicaLogDirTopicResult,
        {"topics": _topic},
        inner=InnerRows("partitions", Row, _partitions),
    ),
)
