"""CreateTopics at the gateway."""

from collections.abc import Iterator
from typing import Any

from immutables import Map

from ....admin import questions
from ....admin.create_topics import (
    BROKER_DEFAULT,
    check_is_no_metadata,
    check_name,
    check_wanted,
    manual_assignment,
    wanted_counts,
)
from ....cluster.delta import TopicBecomes
from ....cluster.entities import Partition, Topic
from ....cluster.errors import Refusal
from ....cluster.image import Image
from ....cluster.random_ids import new_id
from ....policies.interface import CreateTopicRequest
from ....protocol.api_keys import ApiKey
from ....protocol.messages.create_topics import CreatableTopic
from ..judged import Effect, Part, Row
from ..questions import Placed, QuestionContext, refusal_of
from .parted import PartedForm, dry_run

DRY_RUNS_SINCE = 1
"""The first version that has `validate_only`."""


def _plan(context: QuestionContext, part: Part, wanted: CreatableTopic, image: Image) -> None:
    request, topic, first_refusal = creation(context, wanted, image, automatic=context.is_automatic)
    part.plan(request, TopicBecomes.of(topic), first_refusal=first_refusal)


def creation(
    context: QuestionContext, wanted: CreatableTopic, image: Image, *, automatic: bool
) -> tuple[CreateTopicRequest, Topic, Refusal | None]:
    """Return the policy request about a new topic, the topic as the cluster might create it, and
    what Kafka would refuse it by before it asks a policy. Raises Refusal.
    """
    placed = _placed(context, wanted, image)
    first_refusal = _first_refusal(image, wanted, placed.refusal)
    context.count(placed.count)
    topic = Topic(
        name=wanted.name,
        topic_id=new_id(),
        partitions=tuple(Partition(replicas=replicas) for replicas in placed.rows),
        configs=Map({config.name: config.value for config in wanted.configs if config.value is not None}),
    )
    differing, is_placed = context.defaults.differing, not wanted.assignments
    request = questions.creation(context.asked, topic, differing, is_placed=is_placed, automatic=automatic)
    return request, topic, first_refusal


def _placed(context: QuestionContext, wanted: CreatableTopic, image: Image) -> Placed:
    """Return the replicas of a new topic. Raises Refusal."""
    if wanted.assignments:
        return by_name(image, wanted)
    return context.placed(image, *wanted_counts(wanted, context.defaults.config))


def by_name(image: Image, wanted: CreatableTopic) -> Placed:
    """Return the replicas that a request names; of a partition that it names twice, the last ones.
    Raises Refusal for a partition below 0, of which it is not known what a cluster makes.
    """
    rows = {assignment.partition_index: tuple(assignment.broker_ids) for assignment in wanted.assignments}
    refusal = refusal_of(lambda: manual_assignment(image, wanted))
    if refusal is not None and min(rows) < 0:
        raise refusal
    return Placed([rows[index] for index in sorted(rows)], refusal)


def _first_refusal(image: Image, wanted: CreatableTopic, unplaced: Refusal | None) -> Refusal | None:
    """Return why Kafka would refuse a topic before it asks a policy, by the first of its checks."""
    try:
        check_is_no_metadata(wanted.name)
        check_wanted(image, wanted)
        if unplaced is None or wanted.assignments:
            check_name(image, wanted.name)
    except Refusal as earlier:
        return earlier
    return unplaced


def _is_impossible(wanted: CreatableTopic) -> bool:
    """Whether a topic is to have no partitions or replicas."""
    counts = wanted.num_partitions, wanted.replication_factor
    return not wanted.assignments and any(count <= 0 and count != BROKER_DEFAULT for count in counts)


def _rows(request: Any) -> Iterator[Row]:
    for topic in request.topics:
        for each in topic.assignments:
            yield f"partition {each.partition_index} of the topic {topic.name}", tuple(each.broker_ids)
        for each in topic.configs:
            yield f"the config {each.name} of the topic {topic.name}", each.value


FORM = PartedForm(
    key=ApiKey.CREATE_TOPICS,
    fields=("topics",),
    ask=_plan,
    impossible=_is_impossible,
    effect=Effect.CHOSEN,
    creates=True,
    refuses_repeated=True,
    asked_rows=_rows,
    inquire=lambda judged, version, ask: dry_run(judged, max(version, DRY_RUNS_SINCE), ask),
)
