"""Makes requests about groups and their offsets, and results of their responses; pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ..protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ..protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ..protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from ..protocol.messages.offset_delete import (
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
)
from ..protocol.messages.offset_fetch import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchResponse
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import GroupDescription, GroupListing, OffsetAndMetadata, Results, TopicPartition, result_of

REASONS: Mapping[int, str] = {
    ErrorCode.NOT_COORDINATOR: "the node no longer coordinates the group",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the group has no coordinator yet",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is loading its groups",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "you may not do this to the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you may not do this to the topic",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.INVALID_GROUP_ID: "this cannot be the name of a group",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, which set its offsets themselves",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read the topic",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata is too long",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "the group has no room for more offsets",
}
"""Explanations of the errors, since responses about groups carry no messages."""
ON_ITS_WAY = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
"""The errors after which the coordinator is looked up again."""
MANY_SINCE, MANY_GROUPS_SINCE = 4, 8
"""The first FindCoordinator with many keys, and the first OffsetFetch with many groups."""


def lookup(group: str, version: int) -> FindCoordinatorRequest:
    if version >= MANY_SINCE:
        return FindCoordinatorRequest(coordinator_keys=[group])
    return FindCoordinatorRequest(key=group)


def coordinator(answer: WireStruct) -> int:
    """Return the id of the coordinator. Raises AdminError."""
    assert isinstance(answer, FindCoordinatorResponse)
    found = answer.coordinators[0] if answer.coordinators else answer
    _check(found.error_code)
    return found.node_id


def everything() -> ListGroupsRequest:
    return ListGroupsRequest()


def listed(answer: WireStruct) -> list[GroupListing]:
    """Return the groups of one broker. Raises AdminError."""
    assert isinstance(answer, ListGroupsResponse)
    _check(answer.error_code)
    return [GroupListing(row.group_id, row.protocol_type, row.group_state) for row in answer.groups]


def question(group: str, _version: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[group])


def described(broker_id: int, answer: WireStruct) -> GroupDescription:
    """Return what the coordinator says of its group. Raises AdminError."""
    assert isinstance(answer, DescribeGroupsResponse)
    (row,) = answer.groups
    _check(row.error_code)
    return GroupDescription(row.group_id, row.group_state, row.protocol_type, len(row.members), broker_id)


def offsets_of(group: str, version: int) -> OffsetFetchRequest:
    if version >= MANY_GROUPS_SINCE:
        return OffsetFetchRequest(groups=[OffsetFetchGroup(group_id=group, topics=None)])
    return OffsetFetchRequest(group_id=group, topics=None)


def fetched(_broker_id: int, answer: WireStruct) -> Results[TopicPartition, OffsetAndMetadata]:
    """Return the offsets of a group, in the order of partitions. Raises AdminError."""
    assert isinstance(answer, OffsetFetchResponse)
    found = answer.groups[0] if answer.groups else answer
    _check(found.error_code)
    rows = [
        (TopicPartition(topic.name, row.partition_index), row) for topic in found.topics for row in topic.partitions
    ]
    return {
        partition: result_of(
            row.error_code,
            REASONS.get(row.error_code),
            OffsetAndMetadata(row.committed_offset, row.metadata or "", row.committed_leader_epoch),
        )
        for partition, row in sorted(rows, key=lambda pair: pair[0])
    }


def alteration(group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitTopic(
                name=topic,
                partitions=[
                    OffsetCommitPartition(
                        partition_index=each.partition,
                        committed_offset=offsets[each].offset,
                        committed_leader_epoch=offsets[each].leader_epoch,
                        committed_metadata=offsets[each].metadata,
                    )
                    for each in partitions
                ],
            )
            for topic, partitions in _by_topic(offsets)
        ],
    )


def altered(answer: WireStruct) -> Results[TopicPartition, None]:
    assert isinstance(answer, OffsetCommitResponse)
    return {
        TopicPartition(topic.name, row.partition_index): result_of(row.error_code, REASONS.get(row.error_code), None)
        for topic in answer.topics
        for row in topic.partitions
    }


def removal(group: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteTopic(
                name=topic, partitions=[OffsetDeletePartition(partition_index=each.partition) for each in named]
            )
            for topic, named in _by_topic(partitions)
        ],
    )


def removed(answer: WireStruct) -> Results[TopicPartition, None]:
    """Raises AdminError if the request was refused as a whole."""
    assert isinstance(answer, OffsetDeleteResponse)
    _check(answer.error_code)
    return {
        TopicPartition(topic.name, row.partition_index): result_of(row.error_code, REASONS.get(row.error_code), None)
        for topic in answer.topics
        for row in topic.partitions
    }


def deletion(group: str, _version: int) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=[group])


def deleted(_broker_id: int, answer: WireStruct) -> None:
    """Raises AdminError if the group was not deleted."""
    assert isinstance(answer, DeleteGroupsResponse)
    (row,) = answer.results
    _check(row.error_code)


def is_on_its_way(results: Mapping[TopicPartition, object]) -> bool:
    """Whether every partition has an error after which the coordinator is looked up again."""
    return bool(results) and all(
        isinstance(result, AdminError) and result.code in ON_ITS_WAY for result in results.values()
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> Sequence[tuple[str, Sequence[TopicPartition]]]:
    return [(topic, list(each)) for topic, each in groupby(sorted(partitions), key=lambda each: each.topic)]


def _check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise AdminError(code, REASONS.get(code))
