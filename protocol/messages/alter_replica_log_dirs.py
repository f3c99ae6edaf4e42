"""AlterReplicaLogDirs (34) moves replicas of a broker to other directories of it."""

from ..schema import Int16, Int32, WireStruct, message


class AlterReplicaLogDirTopic(WireStruct):
    name: str = ""
    partitions: list[Int32] = []


class AlterReplicaLogDir(WireStruct):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


@message(34, "request", versions=(0, 2), flexible=2)
class AlterReplicaLogDirsRequest(WireStruct):
    dirs: list[AlterReplicaLogDir] = []

    @property
    def topics(self) -> list[AlterReplicaLogDirTopic]:
        return [topic for directory in self.dirs for topic in directory.topics]


class AlterReplicaLogDirPartitionResult(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(WireStruct):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@message(34, "response", versions=(0, 2), flexible=2)
class AlterReplicaLogDirsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
