"""Makes requests about the directories of replicas, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ..protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import LogDirDescription, Replica, ReplicaLog, Results, TopicPartition, result_of


def question() -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=None)


def described(broker_id: int, answer: WireStruct) -> Results[int, tuple[LogDirDescription, ...]]:
    assert isinstance(answer, DescribeLogDirsResponse)
    directories = tuple(
        LogDirDescription(
            path=each.log_dir,
            error=AdminError(each.error_code) if each.error_code else None,
            replicas={
                TopicPartition(topic.name, row.partition_index): ReplicaLog(
                    row.partition_size, row.offset_lag, row.is_future_key
                )
                for topic in each.topics
                for row in topic.partitions
            },
            total_bytes=_known(each.total_bytes),
            usable_bytes=_known(each.usable_bytes),
        )
        for each in answer.results
    )
    return {broker_id: result_of(answer.error_code, None, directories)}


def _known(size: int) -> int | None:
    return size if size >= 0 else None


def alteration(directories: Mapping[Replica, str], part: Sequence[Replica]) -> AlterReplicaLogDirsRequest:
    by_path: dict[str, dict[str, list[int]]] = {}
    for each in part:
        by_path.setdefault(directories[each], {}).setdefault(each.topic, []).append(each.partition)
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[AlterReplicaLogDirTopic(name=name, partitions=rows) for name, rows in topics.items()],
            )
            for path, topics in by_path.items()
        ]
    )


def altered(broker_id: int, answer: WireStruct) -> Results[Replica, None]:
    assert isinstance(answer, AlterReplicaLogDirsResponse)
    return {
        Replica(broker_id, topic.topic_name, row.partition_index): result_of(row.error_code, None, None)
        for topic in answer.results
        for row in topic.partitions
    }
