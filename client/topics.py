"""Topics: listed, described, created, given more partitions, and deleted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ..protocol.error_codes import ErrorCode
from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import AdminError, Results, each_of, result_of, value_of

if TYPE_CHECKING:
    from ..protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

BROKER_DEFAULT = -1
"""A count of partitions or replicas that the broker's configuration decides (KIP-464)."""
PASSING = frozenset({ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE})
"""The errors of a topic that exists; its partitions show what is missing."""
BY_ID_SINCE = 6
"""The version of DeleteTopics that names topics in another field, beside ids (KIP-516)."""


class TopicListing(msgspec.Struct, frozen=True):
    name: str
    num_partitions: int
    replication_factor: int
    is_internal: bool


class PartitionDescription(msgspec.Struct, frozen=True):
    """A partition as a node describes it; `leader` is None where there is none."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicDescription(msgspec.Struct, frozen=True):
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """How many replicas partition 0 has, as Kafka's tools count."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    @property
    def listing(self) -> TopicListing:
        return TopicListing(self.name, len(self.partitions), self.replication_factor, self.is_internal)


class NewTopic(msgspec.Struct, frozen=True):
    """A topic to be created, with counts or with the broker ids of each partition's replicas, the
    preferred leader first.
    """

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    replica_assignments: tuple[tuple[int, ...], ...] = ()
    configs: Mapping[str, str | None] = {}


class CreatedTopic(msgspec.Struct, frozen=True):
    """A created or validated topic as the broker reports it. Brokers before version 5 of
    CreateTopics (KIP-525) report no counts (-1) and no id (16 zero bytes).
    """

    topic_id: bytes
    num_partitions: int
    replication_factor: int


def topics_of(metadata: "MetadataResponse") -> Results[str, TopicDescription]:
    return {
        topic.name: _description(topic) if topic.error_code in PASSING else AdminError(topic.error_code)
        for topic in metadata.topics
        if topic.name is not None
    }


def _description(topic: "MetadataResponseTopic") -> TopicDescription:
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


class TopicCalls(Calls):
    async def list_topics(self, *, include_internal: bool = False) -> dict[str, TopicListing]:
        """Return the topics of the cluster by name, in order."""
        topics = topics_of(await self._batches.metadata(None))
        return {
            name: topic.listing
            for name, topic in sorted(topics.items())
            if isinstance(topic, TopicDescription) and (include_internal or not topic.is_internal)
        }

    async def describe_topics(self, names: Sequence[str]) -> Results[str, TopicDescription]:
        """Describe topics; a name without a topic has the error UNKNOWN_TOPIC_OR_PARTITION."""
        return each_of(names, topics_of(await self._batches.metadata(names)))

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Create topics; with `validate_only` the cluster only checks whether it would."""
        from ..protocol.messages import create_topics as messages

        by_name = {topic.name: topic for topic in topics}

        def row(topic: NewTopic) -> messages.CreatableTopic:
            by_hand = bool(topic.replica_assignments)
            return messages.CreatableTopic(
                name=topic.name,
                num_partitions=BROKER_DEFAULT if by_hand else topic.num_partitions,
                replication_factor=BROKER_DEFAULT if by_hand else topic.replication_factor,
                assignments=[
                    messages.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                    for index, replicas in enumerate(topic.replica_assignments)
                ],
                configs=[
                    messages.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
                ],
            )

        def request(names: Sequence[str], _version: int) -> WireStruct:
            return messages.CreateTopicsRequest(
                topics=[row(by_name[name]) for name in names],
                timeout_ms=self._batches.timeout_ms,
                validate_only=validate_only,
            )

        def read(answer: messages.CreateTopicsResponse) -> Results[str, CreatedTopic]:
            return {
                topic.name: result_of(
                    topic.error_code,
                    topic.error_message,
                    CreatedTopic(topic.topic_id, topic.num_partitions, topic.replication_factor),
                )
                for topic in answer.topics
            }

        return await self._batches.write(list(by_name), messages.CreateTopicsResponse, request, read)

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Do as `create_topics`, but raise the AdminError of this one."""
        return value_of((await self.create_topics([topic], validate_only=validate_only))[topic.name])

    async def create_partitions(self, counts: Mapping[str, int], *, validate_only: bool = False) -> Results[str, None]:
        """Give topics more partitions; `counts` is the new total of each topic."""
        from ..protocol.messages import create_partitions as messages

        def request(names: Sequence[str], _version: int) -> WireStruct:
            return messages.CreatePartitionsRequest(
                topics=[
                    messages.CreatePartitionsTopic(name=name, count=counts[name], assignments=None) for name in names
                ],
                timeout_ms=self._batches.timeout_ms,
                validate_only=validate_only,
            )

        def read(answer: messages.CreatePartitionsResponse) -> Results[str, None]:
            return {topic.name: result_of(topic.error_code, topic.error_message, None) for topic in answer.results}

        return await self._batches.write(list(counts), messages.CreatePartitionsResponse, request, read)

    async def delete_topics(self, names: Sequence[str], *, validate_only: bool = False) -> Results[str, None]:
        """Delete topics; with `validate_only` the cluster only checks whether it would, which nodes
        of minicontroller can alone.
        """
        from ..protocol.dry_runs import packed
        from ..protocol.messages import delete_topics as messages

        def request(part: Sequence[str], version: int) -> WireStruct:
            timeout_ms = self._batches.timeout_ms
            if version < BY_ID_SINCE and not validate_only:
                return messages.DeleteTopicsRequest(topic_names=list(part), timeout_ms=timeout_ms)
            named = messages.DeleteTopicsRequest(
                topics=[messages.DeleteTopicState(name=name) for name in part], timeout_ms=timeout_ms
            )
            return packed(named) if validate_only else named

        def read(answer: messages.DeleteTopicsResponse) -> Results[str, None]:
            return {
                topic.name: result_of(topic.error_code, topic.error_message, None)
                for topic in answer.responses
                if topic.name is not None
            }

        once = list(dict.fromkeys(names))
        if validate_only:
            try:
                await self._batches.check_dry_runs()
            except AdminError as error:
                return dict.fromkeys(once, error)
        return await self._batches.write(once, messages.DeleteTopicsResponse, request, read)

    async def delete_topic(self, name: str) -> None:
        """Do as `delete_topics`, but raise the AdminError of this one."""
        value_of((await self.delete_topics([name]))[name])
