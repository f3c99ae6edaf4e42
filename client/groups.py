"""Groups and their offsets, which a group's coordinator knows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import GROUP_MEANINGS, ON_ITS_WAY, AdminError, Results, check, each_of, result_of, value_of
from .topic_partition import TopicPartition, by_topic

R = TypeVar("R", bound=WireStruct)

MANY_GROUPS_SINCE = 8
"""The first OffsetFetch with many groups."""


class OffsetAndMetadata(msgspec.Struct, frozen=True):
    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupListing(msgspec.Struct, frozen=True, order=True):
    group_id: str
    protocol_type: str
    """`consumer` if it has or had consumers as members."""
    state: str
    """Such as `Empty` or `Stable`; empty from brokers before Kafka 2.6."""


class GroupDescription(msgspec.Struct, frozen=True):
    group_id: str
    state: str
    """`Dead` if there is no such group."""
    protocol_type: str
    members: int
    coordinator: int
    """The id of the broker that coordinates it."""


class GroupCalls(Calls):
    async def list_consumer_groups(self) -> tuple[GroupListing, ...]:
        """Return the groups that this client may see, of all brokers, in the order of their names.
        Raises AdminError.
        """
        from ..protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

        def read(answer: ListGroupsResponse) -> list[GroupListing]:
            _check(answer.error_code)
            return [GroupListing(row.group_id, row.protocol_type, row.group_state) for row in answer.groups]

        found = await self._batches.ask_all(ListGroupsRequest(), ListGroupsResponse, read, "groups")
        return tuple(sorted({group for groups in found for group in groups}))

    async def describe_consumer_groups(self, groups: Sequence[str]) -> Results[str, GroupDescription]:
        """Describe groups by their names. A group that does not exist has the state `Dead`."""
        from ..protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

        def read(answer: DescribeGroupsResponse, coordinator: int) -> GroupDescription:
            (row,) = answer.groups
            _check(row.error_code)
            return GroupDescription(row.group_id, row.group_state, row.protocol_type, len(row.members), coordinator)

        async def describe(group: str) -> GroupDescription | AdminError:
            request = DescribeGroupsRequest(groups=[group])
            return await self._batches.by_coordinator(group, DescribeGroupsResponse, lambda _version: request, read)

        return {group: await describe(group) for group in dict.fromkeys(groups)}

    async def delete_consumer_groups(self, groups: Sequence[str]) -> Results[str, None]:
        """Delete groups without members, with their offsets."""
        from ..protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

        def read(answer: DeleteGroupsResponse, _coordinator: int) -> None:
            (row,) = answer.results
            _check(row.error_code)

        async def delete(group: str) -> AdminError | None:
            request = DeleteGroupsRequest(groups_names=[group])
            return await self._batches.by_coordinator(group, DeleteGroupsResponse, lambda _version: request, read)

        return {group: await delete(group) for group in dict.fromkeys(groups)}

    async def list_consumer_group_offsets(self, group: str) -> Results[TopicPartition, OffsetAndMetadata]:
        """Return all offsets of a group that this client may see. Raises AdminError."""
        from ..protocol.messages import offset_fetch as messages

        def request(version: int) -> WireStruct:
            if version >= MANY_GROUPS_SINCE:
                return messages.OffsetFetchRequest(groups=[messages.OffsetFetchGroup(group_id=group, topics=None)])
            return messages.OffsetFetchRequest(group_id=group, topics=None)

        def read(answer: messages.OffsetFetchResponse, _coordinator: int) -> Results[TopicPartition, OffsetAndMetadata]:
            found = answer.groups[0] if answer.groups else answer
            _check(found.error_code)
            rows = {
                TopicPartition(topic.name, row.partition_index): row
                for topic in found.topics
                for row in topic.partitions
            }
            return {
                partition: result_of(
                    row.error_code,
                    GROUP_MEANINGS.get(row.error_code),
                    OffsetAndMetadata(row.committed_offset, row.metadata or "", row.committed_leader_epoch),
                )
                for partition, row in sorted(rows.items())
            }

        return value_of(await self._batches.by_coordinator(group, messages.OffsetFetchResponse, request, read))

    async def alter_consumer_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Results[TopicPartition, None]:
        """Set offsets of a group without members; the group is created if it does not exist."""
        from ..protocol.messages import offset_commit as messages

        def row(each: TopicPartition) -> messages.OffsetCommitPartition:
            return messages.OffsetCommitPartition(
                partition_index=each.partition,
                committed_offset=offsets[each].offset,
                committed_leader_epoch=offsets[each].leader_epoch,
                committed_metadata=offsets[each].metadata,
            )

        def read(answer: messages.OffsetCommitResponse) -> Results[TopicPartition, None]:
            return {
                TopicPartition(topic.name, row.partition_index): _result(row.error_code)
                for topic in answer.topics
                for row in topic.partitions
            }

        topics = [
            messages.OffsetCommitTopic(name=name, partitions=[row(each) for each in partitions])
            for name, partitions in by_topic(sorted(offsets)).items()
        ]
        request = messages.OffsetCommitRequest(group_id=group, topics=topics)
        return await self._change_offsets(group, list(offsets), messages.OffsetCommitResponse, request, read)

    async def delete_consumer_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Remove offsets of a group. A group without any offset exists no longer."""
        from ..protocol.messages import offset_delete as messages

        def read(answer: messages.OffsetDeleteResponse) -> Results[TopicPartition, None]:
            _check(answer.error_code)
            return {
                TopicPartition(topic.name, row.partition_index): _result(row.error_code)
                for topic in answer.topics
                for row in topic.partitions
            }

        named = list(dict.fromkeys(partitions))
        topics = [
            messages.OffsetDeleteTopic(
                name=name, partitions=[messages.OffsetDeletePartition(partition_index=each.partition) for each in part]
            )
            for name, part in by_topic(sorted(named)).items()
        ]
        request = messages.OffsetDeleteRequest(group_id=group, topics=topics)
        return await self._change_offsets(group, named, messages.OffsetDeleteResponse, request, read)

    async def _change_offsets(
        self,
        group: str,
        partitions: Sequence[TopicPartition],
        response: type[R],
        request: WireStruct,
        read: Callable[[R], Results[TopicPartition, None]],
    ) -> Results[TopicPartition, None]:
        """Send a change of a group's offsets, and return what became of each partition."""

        def read_or_retry(answer: R, _coordinator: int) -> Results[TopicPartition, None]:
            results = read(answer)
            errors = [each for each in results.values() if each is not None and each.code in ON_ITS_WAY]
            if errors and len(errors) == len(results):
                raise errors[-1]
            return results

        found = await self._batches.by_coordinator(group, response, lambda _version: request, read_or_retry)
        if isinstance(found, AdminError):
            return dict.fromkeys(partitions, found)
        return each_of(partitions, found)


def _check(code: int) -> None:
    check(code, GROUP_MEANINGS.get(code))


def _result(code: int) -> AdminError | None:
    return result_of(code, GROUP_MEANINGS.get(code), None)
