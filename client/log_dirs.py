"""The directories of brokers, and the replicas in them (KIP-113)."""

from collections.abc import Mapping, Sequence

import msgspec

from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import AdminError, Results, result_of
from .topic_partition import TopicPartition


class Replica(msgspec.Struct, frozen=True, order=True):
    broker_id: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker_id}"


class ReplicaLog(msgspec.Struct, frozen=True):
    """The part of a replica's log that a broker has in one of its directories."""

    size_bytes: int
    offset_lag: int
    """How many records it is behind; for a replica that moves, behind the one it replaces."""
    is_future: bool
    """Whether it will take the place of the replica in another directory."""


class LogDirDescription(msgspec.Struct, frozen=True):
    path: str
    error: AdminError | None
    replicas: Mapping[TopicPartition, ReplicaLog]
    total_bytes: int | None
    """The size of its volume, None if unknown (KIP-827)."""
    usable_bytes: int | None


class LogDirCalls(Calls):
    async def describe_log_dirs(self, brokers: Sequence[int]) -> Results[int, tuple[LogDirDescription, ...]]:
        """Return the directories of brokers with the replicas in them, by broker id (KIP-113)."""
        from ..protocol.messages import describe_log_dirs as messages

        def directory(row: messages.DescribeLogDirsResult) -> LogDirDescription:
            return LogDirDescription(
                path=row.log_dir,
                error=AdminError(row.error_code) if row.error_code else None,
                replicas={
                    TopicPartition(topic.name, each.partition_index): ReplicaLog(
                        each.partition_size, each.offset_lag, each.is_future_key
                    )
                    for topic in row.topics
                    for each in topic.partitions
                },
                total_bytes=row.total_bytes if row.total_bytes >= 0 else None,
                usable_bytes=row.usable_bytes if row.usable_bytes >= 0 else None,
            )

        async def describe(broker_id: int) -> Results[int, tuple[LogDirDescription, ...]]:
            def read(answer: messages.DescribeLogDirsResponse) -> Results[int, tuple[LogDirDescription, ...]]:
                return {broker_id: result_of(answer.error_code, None, tuple(map(directory, answer.results)))}

            request = messages.DescribeLogDirsRequest(topics=None)
            return await self._batches.write(
                [broker_id], messages.DescribeLogDirsResponse, lambda _part, _version: request, read, broker_id
            )

        results: Results[int, tuple[LogDirDescription, ...]] = {}
        for broker_id in dict.fromkeys(brokers):
            results |= await describe(broker_id)
        return results

    async def alter_replica_log_dirs(self, directories: Mapping[Replica, str]) -> Results[Replica, None]:
        """Move replicas to other directories of their brokers (KIP-113). A broker that does not
        have the replica remembers the directory, and answers REPLICA_NOT_AVAILABLE.
        """
        from ..protocol.messages import alter_replica_log_dirs as messages

        def request(part: Sequence[Replica], _version: int) -> WireStruct:
            by_path: dict[str, dict[str, list[int]]] = {}
            for each in part:
                by_path.setdefault(directories[each], {}).setdefault(each.topic, []).append(each.partition)
            return messages.AlterReplicaLogDirsRequest(
                dirs=[
                    messages.AlterReplicaLogDir(
                        path=path,
                        topics=[
                            messages.AlterReplicaLogDirTopic(name=name, partitions=rows)
                            for name, rows in topics.items()
                        ],
                    )
                    for path, topics in by_path.items()
                ]
            )

        async def alter(broker_id: int, part: Sequence[Replica]) -> Results[Replica, None]:
            def read(answer: messages.AlterReplicaLogDirsResponse) -> Results[Replica, None]:
                return {
                    Replica(broker_id, topic.topic_name, row.partition_index): result_of(row.error_code, None, None)
                    for topic in answer.results
                    for row in topic.partitions
                }

            return await self._batches.write(part, messages.AlterReplicaLogDirsResponse, request, read, broker_id)

        results: Results[Replica, None] = {}
        for broker_id in dict.fromkeys(replica.broker_id for replica in directories):
            results |= await alter(broker_id, [each for each in directories if each.broker_id == broker_id])
        return {replica: results[replica] for replica in directories}
