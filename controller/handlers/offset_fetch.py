"""OffsetFetch (9) returns the offsets of groups.

What the client may not see is left out if it asked for all topics, and refused if it named them. An
offset that was never set is -1; in version 0 it is UNKNOWN_TOPIC_OR_PARTITION.
"""

from collections.abc import Iterable, Mapping, Sequence

from ...admin.bounds import RowCount
from ...admin.spec import InnerRows, Rows, copied
from ...cluster.groups import CommittedOffset
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.offset_fetch import (
    FetchedOffset,
    FetchedOffsetsOfGroup,
    FetchedOffsetsOfTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from ..broker.coordinator import Coordinator
from .groups import DESCRIBE_GROUP, DESCRIBE_TOPIC

MANY_GROUPS_SINCE, ERROR_OF_GROUP_SINCE, NO_ERROR_SINCE = 8, 2, 1
"""The first versions with several groups, with an error for a whole group, and without an error for
an offset that was never set.
"""
NO_OFFSET = -1
Topics = Sequence[OffsetFetchTopic] | None
Offsets = Mapping[str, Mapping[int, CommittedOffset]]


def handle(
    coordinator: Coordinator, context: RequestContext, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse]:
    count = RowCount()
    if context.header.api_version >= MANY_GROUPS_SINCE:
        groups = []
        for each in request.groups:
            groups.append((yield from _group(coordinator, context, count, each.group_id, each.topics)))
            yield
        return OffsetFetchResponse(groups=groups)
    found = yield from _group(coordinator, context, count, request.group_id, request.topics)
    if found.error_code and context.header.api_version < ERROR_OF_GROUP_SINCE:
        return OffsetFetchResponse(
            topics=[_refused(topic, ErrorCode(found.error_code)) for topic in request.topics or ()]
        )
    return OffsetFetchResponse(topics=found.topics, error_code=found.error_code)


def _group(
    coordinator: Coordinator,
    context: RequestContext,
    count: RowCount,
    group_id: str,
    topics: Topics,
) -> Steps[FetchedOffsetsOfGroup]:
    code = ErrorCode.NONE
    if not context.may(DESCRIBE_GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif not coordinator.coordinates_group(group_id):
        code = ErrorCode.NOT_COORDINATOR
    if code:
        return FetchedOffsetsOfGroup(group_id=group_id, error_code=code)
    committed = coordinator.offsets(group_id)
    kept = committed.by_topic
    if topics is None:
        count.add(sum(map(len, kept.values())), committed.size)
        found = yield from _all(context, kept)
    else:
        count.add(sum(len(topic.partition_indexes) for topic in topics), committed.size)
        found = yield from _named(context, kept, topics)
    return FetchedOffsetsOfGroup(group_id=group_id, topics=found)


def _all(context: RequestContext, kept: Offsets) -> Steps[list[FetchedOffsetsOfTopic]]:
    hidden = yield from context.denied(DESCRIBE_TOPIC, list(kept), logs_denials=False)
    return (
        yield from one_by_one(
            FetchedOffsetsOfTopic(name=name, partitions=_rows(offsets, offsets, context))
            for name, offsets in kept.items()
            if name not in hidden
        )
    )


def _named(
    context: RequestContext, kept: Offsets, topics: Sequence[OffsetFetchTopic]
) -> Steps[list[FetchedOffsetsOfTopic]]:
    """Return the named topics, those that the client may not see last."""
    denied = yield from context.denied(DESCRIBE_TOPIC, [topic.name for topic in topics])
    found: list[FetchedOffsetsOfTopic] = []
    for topic in topics:
        if topic.name not in denied:
            rows = _rows(topic.partition_indexes, kept.get(topic.name, {}), context)
            found.append(FetchedOffsetsOfTopic(name=topic.name, partitions=rows))
            yield
    refused = (topic for topic in topics if topic.name in denied)
    found += yield from one_by_one(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused)
    return found


def _rows(
    indexes: Iterable[int], offsets: Mapping[int, CommittedOffset], context: RequestContext
) -> list[FetchedOffset]:
    rows = []
    for index in indexes:
        each = offsets.get(index)
        if each is not None:
            row = FetchedOffset(
                partition_index=index,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                metadata=each.metadata,
            )
        else:
            unset = (
                ErrorCode.NONE if context.header.api_version >= NO_ERROR_SINCE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            row = FetchedOffset(partition_index=index, committed_offset=NO_OFFSET, error_code=unset)
        rows.append(row)
    return rows


def _refused(topic: OffsetFetchTopic, code: ErrorCode) -> FetchedOffsetsOfTopic:
    return FetchedOffsetsOfTopic(
        name=topic.name,
        partitions=[
            FetchedOffset(partition_index=index, committed_offset=NO_OFFSET, error_code=code)
            for index in topic.partition_indexes
        ],
    )


def _partitions(topic: OffsetFetchTopic) -> list[dict[str, int]]:
    return [{"partition_index": index} for index in topic.partition_indexes]


API = ServedApi(
    key=ApiKey.OFFSET_FETCH,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    rows=Rows(
        "groups",
        FetchedOffsetsOfGroup,
        {"groups": copied("group_id")},
        since=MANY_GROUPS_SINCE,
        before=Rows(
            "topics",
            FetchedOffsetsOfTopic,
            {"topics": copied("name")},
            inner=InnerRows("partitions", FetchedOffset, _partitions),
            fixed={"committed_offset": NO_OFFSET},
        ),
    ),
)
