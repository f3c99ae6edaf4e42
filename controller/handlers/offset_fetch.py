"""OffsetFetch (9) returns the offsets of groups.

What the client may not see is left out if it asked for all topics, and refused if it named them. An
offset that was never set is -1; in version 0 it is UNKNOWN_TOPIC_OR_PARTITION.
"""

from collections.abc import Iterable, Sequence

from ...admin.bounds import RowCount
from ...admin.spec import InnerRows, Rows, copied
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
from ..broker.coordinator import CommittedOffsets, Coordinator, ReadOffset
from .groups import DESCRIBE_GROUP, DESCRIBE_TOPIC

MANY_GROUPS_SINCE, ERROR_OF_GROUP_SINCE, NO_ERROR_SINCE = 8, 2, 1
"""The first versions with several groups, with an error for a whole group, and without an error for
an offset that was never set.
"""
NO_OFFSET = -1
Topics = Sequence[OffsetFetchTopic] | None


def handle(
    coordinator: Coordinator, context: RequestContext, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse]:
    count, stable = RowCount(), request.require_stable
    if context.header.api_version >= MANY_GROUPS_SINCE:
        groups = []
        for each in request.groups:
            groups.append(
                (yield from _group(coordinator, context, count, each.group_id, each.topics, requires_stable=stable))
            )
            yield
        return OffsetFetchResponse(groups=groups)
    found = yield from _group(coordinator, context, count, request.group_id, request.topics, requires_stable=stable)
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
    *,
    requires_stable: bool,
) -> Steps[FetchedOffsetsOfGroup]:
    code = ErrorCode.NONE
    if not context.may(DESCRIBE_GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif not coordinator.coordinates_group(group_id):
        code = ErrorCode.NOT_COORDINATOR
    if code:
        return FetchedOffsetsOfGroup(group_id=group_id, error_code=code)
    committed = coordinator.offsets(group_id)
    reading = OffsetReading(context, committed, requires_stable=requires_stable)
    if topics is None:
        count.add(sum(map(len, committed.by_topic.values())), committed.size)
        found = yield from reading.all()
    else:
        count.add(sum(len(topic.partition_indexes) for topic in topics), committed.size)
        found = yield from reading.named(topics)
    return FetchedOffsetsOfGroup(group_id=group_id, topics=found)


class OffsetReading:
    """Reads the offsets of one group for one client."""

    def __init__(self, context: RequestContext, committed: CommittedOffsets, *, requires_stable: bool) -> None:
        self._context = context
        self._kept = committed.by_topic
        self._is_unstable = committed.is_unstable
        self._requires_stable = requires_stable
        no_error = context.header.api_version >= NO_ERROR_SINCE
        self._unset = ErrorCode.NONE if no_error else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def all(self) -> Steps[list[FetchedOffsetsOfTopic]]:
        hidden = yield from self._context.denied(DESCRIBE_TOPIC, list(self._kept), logs_denials=False)
        return (
            yield from one_by_one(
                FetchedOffsetsOfTopic(name=name, partitions=self._rows(name, offsets))
                for name, offsets in self._kept.items()
                if name not in hidden
            )
        )

    def named(self, topics: Sequence[OffsetFetchTopic]) -> Steps[list[FetchedOffsetsOfTopic]]:
        """Return the named topics, those that the client may not see last."""
        denied = yield from self._context.denied(DESCRIBE_TOPIC, [topic.name for topic in topics])
        found: list[FetchedOffsetsOfTopic] = []
        for topic in topics:
            if topic.name not in denied:
                found.append(
                    FetchedOffsetsOfTopic(name=topic.name, partitions=self._rows(topic.name, topic.partition_indexes))
                )
                yield
        refused = (topic for topic in topics if topic.name in denied)
        found += yield from one_by_one(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused)
        return found

    def _rows(self, name: str, indexes: Iterable[int]) -> list[FetchedOffset]:
        offsets = self._kept.get(name, {})
        return [self._row(name, index, offsets.get(index)) for index in indexes]

    def _row(self, name: str, index: int, offset: ReadOffset | None) -> FetchedOffset:
        if self._requires_stable and self._is_unstable(name, index):
            code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            return FetchedOffset(partition_index=index, committed_offset=NO_OFFSET, error_code=code)
        if offset is None:
            return FetchedOffset(partition_index=index, committed_offset=NO_OFFSET, error_code=self._unset)
        return FetchedOffset(
            partition_index=index,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )


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
