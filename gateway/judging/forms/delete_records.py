"""DeleteRecords at the gateway."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from ....admin.delete_records import KNOWS_POLICIES
from ....cluster.image import Image
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ....protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from ..judged import Judged, Part, rows_of_partitions
from ..questions import QuestionContext
from .parted import PartedForm, inquire, seen_topic

NO_PARTITION = 2**31 - 1
"""The index of a partition that no topic has."""


def _plan(context: QuestionContext, part: Part, _wanted: Any, image: Image) -> None:
    with seen_topic(part, image) as topic:
        part.plan(context.asked.delete_records(topic.name, part.change.delete_records_offsets or {}))


def _of_no_partition(judged: Judged, parts: Sequence[Part]) -> Any:
    topics = [DeleteRecordsTopic(each.change.resource, [DeleteRecordsPartition(NO_PARTITION)]) for each in parts]
    return msgspec.structs.replace(judged.request, topics=topics)


FORM = PartedForm(
    key=ApiKey.DELETE_RECORDS,
    fields=("topics",),
    ask=_plan,
    impossible=lambda topic: not topic.partitions,
    told_once=frozenset(ErrorCode),
    asked_rows=rows_of_partitions(lambda each: each.offset),
    knows_policies=KNOWS_POLICIES,
    retried_as=ErrorCode.NOT_LEADER_OR_FOLLOWER,
    inquire=partial(inquire, _of_no_partition),
)
