"""OffsetCommit (8) sets offsets of a group, as administrators do who reset a group."""

from collections.abc import Sequence

import msgspec

from ..protocol.api_keys import ApiKey
from ..protocol.messages.offset_commit import (
    CommittedOffsetResult,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)
from .changes import Change
from .groups import READ_GROUP, READ_TOPIC, key_of, requested
from .spec import Changes, InnerRows, Rows, Spec, copied


def operations_of(request: OffsetCommitRequest) -> dict[str, str | None]:
    """Return what is asked for, for the audit log."""
    return {
        key_of(topic.name, each.partition_index): str(each.committed_offset)
        for topic in request.topics
        for each in topic.partitions
    }


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
