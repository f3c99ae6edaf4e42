"""AlterPartitionReassignments at the gateway."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from ....admin import questions
from ....admin.spec import Fields, InnerRows, Rows, copied
from ....cluster import reassignment
from ....cluster.delta import TopicBecomes
from ....cluster.entities import Partition
from ....cluster.image import Image
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ....protocol.messages.alter_partition_reassignments import (
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from ..judged import Effect, Judged, NotSeen, Part, rows_of_partitions
from ..questions import QuestionContext
from .parted import PartedForm, inquire, seen_topic


def _plan(context: QuestionContext, part: Part, _wanted: ReassignableTopic, image: Image) -> None:
    """Plan the reassignment of a topic's partitions. Those that were not seen are judged as if they
    came after the others. Raises Refusal, NotSeen.
    """
    with seen_topic(part, image) as topic:
        rows = part.change.reassignments or {}
        known = {index: row for index, row in rows.items() if topic.partition(index) is not None}
        unseen = NotSeen(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if not known:
            raise unseen
        context.count(sum(len(row or ()) for row in rows.values()))
        live = image.live_ids()
        moved = {index: _reassigned(topic.partitions[index], row, live) for index, row in known.items()}
        request = questions.reassignment(context.asked, topic, rows, context.defaults.differing)
        first_refusal = None if len(known) == len(rows) else unseen
        part.plan(request, TopicBecomes.of(topic.with_partitions(moved)), first_refusal=first_refusal)


def _reassigned(partition: Partition, wanted: Sequence[int] | None, live: frozenset[int]) -> Partition:
    replicas = reassignment.origin(partition) if wanted is None else tuple(wanted)
    return reassignment.reassign(partition, replicas, live) if replicas else partition


def _of_no_topics(judged: Judged, _parts: Sequence[Part]) -> Any:
    """Return a request of which only the right to send it is checked, that to alter the cluster."""
    return msgspec.structs.replace(judged.request, topics=[])


def _partitions(topic: ReassignableTopic) -> Iterator[Fields]:
    for partition in topic.partitions:
        yield {"partition_index": partition.partition_index}


FORM = PartedForm(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    fields=("topics",),
    ask=_plan,
    impossible=lambda topic: not topic.partitions,
    effect=Effect.STATED,
    asked_rows=rows_of_partitions(lambda each: None if each.replicas is None else tuple(each.replicas)),
    inquire=partial(inquire, _of_no_topics),
    own_rows=Rows(
        "responses",
        ReassignableTopicResponse,
        {"topics": copied("name")},
        inner=InnerRows("partitions", ReassignablePartitionResponse, _partitions),
    ),
)
