"""CreatePartitions at the gateway."""

import msgspec

from ....admin import questions
from ....admin.create_partitions import manual_rows
from ....cluster.delta import TopicBecomes
from ....cluster.entities import Partition, Topic
from ....cluster.image import Image
from ....cluster.placement import placed_brokers, start_for_new_partitions
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ....protocol.messages.create_partitions import CreatePartitionsTopic
from ..judged import Effect, NotSeen, Part
from ..questions import Placed, QuestionContext, refusal_of
from .parted import PartedForm, dry_run, seen_topic


def _plan(context: QuestionContext, part: Part, wanted: CreatePartitionsTopic, image: Image) -> None:
    with seen_topic(part, image) as topic:
        increment = wanted.count - len(topic.partitions)
        if increment <= 0:
            text = f"Topic already has {len(topic.partitions)} partitions."
            raise NotSeen(ErrorCode.INVALID_PARTITIONS, text)
        added = _added(context, image, topic, wanted, increment)
        if added.refusal is not None and len(added.rows) != increment:  # right for a topic of another size
            raise NotSeen(added.refusal.code, added.refusal.message)
        context.count(added.count)
        new = tuple(Partition(replicas=replicas) for replicas in added.rows)
        after = msgspec.structs.replace(topic, partitions=topic.partitions + new)
        differing, is_placed = context.defaults.differing, wanted.assignments is None
        request = questions.growth(context.asked, after, differing, is_placed=is_placed)
        part.plan(request, TopicBecomes.of(after), first_refusal=added.refusal)


def _added(
    context: QuestionContext, image: Image, topic: Topic, wanted: CreatePartitionsTopic, increment: int
) -> Placed:
    """Return the replicas of the new partitions. Raises Refusal."""
    rows = wanted.assignments
    if rows is not None:
        refusal = refusal_of(lambda: manual_rows(image, topic, rows, increment))
        return Placed([tuple(row.broker_ids) for row in rows], refusal)
    factor = topic.replication_factor
    start = start_for_new_partitions(placed_brokers(image), topic.partitions[0].replicas[0]) if factor else 0
    return context.placed(image, increment, factor, start=start, first_partition=len(topic.partitions))


FORM = PartedForm(
    key=ApiKey.CREATE_PARTITIONS,
    fields=("topics",),
    ask=_plan,
    impossible=lambda wanted: wanted.count <= 0,
    effect=Effect.CHOSEN,
    refuses_repeated=True,
    told_once=frozenset(ErrorCode),
    inquire=dry_run,
)
