"""Partitions: the brokers that they move to (KIP-455), and the elections of their leaders
(KIP-460).
"""

from collections.abc import Mapping, Sequence

import msgspec

from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import Results, check, result_of
from .topic_partition import TopicPartition, by_topic


class PartitionReassignment(msgspec.Struct, frozen=True):
    """A partition whose replicas are being moved (KIP-455)."""

    replicas: tuple[int, ...]
    """The broker ids that it is to have, then those that it is not to keep."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.removing_replicas)


class PartitionCalls(Calls):
    async def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Results[TopicPartition, None]:
        """Begin to move the replicas of partitions to these brokers, or cancel that (None), by
        partition (KIP-455). A success says that it has begun.
        """
        from ..protocol.messages import alter_partition_reassignments as messages

        def row(each: TopicPartition) -> messages.ReassignablePartition:
            replicas = reassignments[each]
            return messages.ReassignablePartition(
                partition_index=each.partition, replicas=None if replicas is None else list(replicas)
            )

        def request(part: Sequence[TopicPartition], _version: int) -> WireStruct:
            return messages.AlterPartitionReassignmentsRequest(
                timeout_ms=self._batches.timeout_ms,
                topics=[
                    messages.ReassignableTopic(name=name, partitions=[row(each) for each in partitions])
                    for name, partitions in by_topic(part).items()
                ],
            )

        def read(answer: messages.AlterPartitionReassignmentsResponse) -> Results[TopicPartition, None]:
            check(answer.error_code, answer.error_message)
            return {
                TopicPartition(topic.name, row.partition_index): result_of(row.error_code, row.error_message, None)
                for topic in answer.responses
                for row in topic.partitions
            }

        return await self._batches.write(
            list(reassignments), messages.AlterPartitionReassignmentsResponse, request, read
        )

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return those of these partitions, or of all, whose replicas are being moved (KIP-455).
        Raises AdminError.
        """
        from ..protocol.messages import list_partition_reassignments as messages

        def read(answer: messages.ListPartitionReassignmentsResponse) -> dict[TopicPartition, PartitionReassignment]:
            check(answer.error_code, answer.error_message)
            return {
                TopicPartition(topic.name, row.partition_index): PartitionReassignment(
                    tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
                )
                for topic in answer.topics
                for row in topic.partitions
            }

        named = [
            messages.RequestedTopic(name=name, partition_indexes=[each.partition for each in part])
            for name, part in by_topic(partitions or ()).items()
        ]
        request = messages.ListPartitionReassignmentsRequest(
            timeout_ms=self._batches.timeout_ms, topics=None if partitions is None else named
        )
        return await self._batches.write_one(request, messages.ListPartitionReassignmentsResponse, read)

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition] | None = None, *, unclean: bool = False
    ) -> Results[TopicPartition, None]:
        """Elect the preferred leaders of these partitions, or of all that are led by others
        (KIP-460). `unclean` elects replicas that are not in sync where no in-sync one is left, so
        that records are lost.
        """
        from ..protocol.messages import elect_leaders as messages

        def request(part: Sequence[TopicPartition] | None, _version: int = 0) -> WireStruct:
            named = [
                messages.TopicPartitions(topic=name, partitions=[each.partition for each in part_of_topic])
                for name, part_of_topic in by_topic(part or ()).items()
            ]
            return messages.ElectLeadersRequest(
                election_type=messages.ElectionType.UNCLEAN if unclean else messages.ElectionType.PREFERRED,
                topic_partitions=None if part is None else named,
                timeout_ms=self._batches.timeout_ms,
            )

        def read(answer: messages.ElectLeadersResponse) -> Results[TopicPartition, None]:
            if not answer.replica_election_results:  # otherwise each row has the error of the request
                check(answer.error_code)
            return {
                TopicPartition(topic.topic, row.partition_id): result_of(row.error_code, row.error_message, None)
                for topic in answer.replica_election_results
                for row in topic.partition_result
            }

        if partitions is None:
            return await self._batches.write_one(request(None), messages.ElectLeadersResponse, read)
        return await self._batches.write(list(dict.fromkeys(partitions)), messages.ElectLeadersResponse, request, read)
