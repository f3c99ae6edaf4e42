"""OffsetCommit (8) sets offsets of a group, as administrators do who reset a group."""

from collections.abc import Mapping, Sequence

import msgspec

from ..cluster.entities import Topic
from ..cluster.errors import Refusal
from ..cluster.group_rooms import check_room
from ..cluster.groups import CommittedOffset, Group, GroupHeader
from ..cluster.image import Image
from ..cluster.znodes.groups import group_path, name_of
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.offset_commit import (
    CommittedOffsetResult,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)
from .changes import Change
from .groups import READ_GROUP, READ_TOPIC, key_of, requested
from .spec import Changes, InnerRows, Rows, Spec, copied

Kept = Mapping[str, Mapping[int, CommittedOffset]]
"""The offsets of a request that may be kept, by topic and partition."""


def operations_of(request: OffsetCommitRequest) -> dict[str, str | None]:
    """Return what is asked for, for the audit log."""
    return {
        key_of(topic.name, each.partition_index): str(each.committed_offset)
        for topic in request.topics
        for each in topic.partitions
    }


def operations_kept(kept: Kept) -> dict[str, str | None]:
    """Return what is carried out of a request, for the audit log."""
    return {
        key_of(topic, index): str(each.offset) for topic, offsets in kept.items() for index, each in offsets.items()
    }


def with_offsets(
    image: Image,
    *,
    request: OffsetCommitRequest,
    kept: Kept,
    topics: Mapping[str, Topic],
    owner: str,
    is_operator: bool,
) -> tuple[str, Group]:
    """Return the path of a group, and the group with these offsets in these topics; it is the
    owner's if it is new. Raises Refusal.
    """
    group_id = request.group_id
    before = image.groups.get(name_of(group_id))
    if request.generation_id_or_member_epoch >= 0:
        exists = before is not None and before.exists(topics)
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID if exists else ErrorCode.ILLEGAL_GENERATION)
    after = (before or Group.of(GroupHeader(group_id, owner), {})).repaired(group_id, owner)
    for name, offsets in kept.items():
        after = after.with_offsets(topics[name], offsets)
    check_room(image.rooms, before, after, is_operator=is_operator)
    return group_path(group_id), after


def _requested(request: OffsetCommitRequest) -> Sequence[Change]:
    return [requested(request.group_id, operations_of(request))]


def _partitions(topic: OffsetCommitTopic) -> list[dict[str, int]]:
    return [{"partition_index": each.partition_index} for each in topic.partitions]


def _to_newest_version(request: OffsetCommitRequest) -> OffsetCommitRequest:
    """Return the request without the times of older versions, which are not followed."""
    topics = [
        msgspec.structs.replace(
            topic, partitions=[msgspec.structs.replace(each, commit_timestamp=-1) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return msgspec.structs.replace(request, topics=topics, retention_time_ms=-1)


SPEC = Spec(
    key=ApiKey.OFFSET_COMMIT,
    at_controller=True,
    in_envelopes=False,
    to_newest_version=_to_newest_version,
    rows=Rows(
        "topics",
        OffsetCommitTopicResult,
        {"topics": copied("name")},
        inner=InnerRows("partitions", CommittedOffsetResult, _partitions),
    ),
    changes=Changes("offset_commit", _requested),
    permissions=(READ_GROUP, READ_TOPIC),
)
