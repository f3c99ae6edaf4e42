"""Makes the policy's questions of the parts of requests, and says what the parts change; pure.

Rule: what a cluster may carry out is asked about. What every Kafka refuses goes there without a
question, because its own answer depends on its version and on who asks (`can_never_be`). What the
gateway alone cannot understand is a Refusal, and goes no further where a policy has to allow it. So
is what the state that was read leaves no room for (`NotSeen`), because that state may be old.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import randrange
from typing import Any

import msgspec
from immutables import Map

from ...admin import questions
from ...admin.changes import Change
from ...admin.configs.alterations import OPERATIONS, Configs, Resource, altered
from ...admin.create_topics import check_is_no_metadata, check_name, check_wanted
from ...admin.description import RequestDescription
from ...cluster import reassignment
from ...cluster.delta import NO_CHANGE, Delta, TopicBecomes, TopicMarked
from ...cluster.entities import NO_TOPIC_ID, Partition, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.placement import PlacedBroker, placed_brokers, start_for_new_partitions
from ...cluster.random_ids import new_id
from ...policies.configs.canonical import canonical
from ...policies.configs.newer_keys import DEAD_LETTERS
from ...policies.interface import JudgedRequest
from ...policies.requests import RequestBuilder
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_partitions import CreatePartitionsTopic
from ...protocol.messages.create_topics import CreatableTopic
from ...protocol.messages.delete_topics import DeleteTopicState
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResource
from .configs import broker_key, has_changed, stated_form, topic_key
from .placement import Placed, added_by_name, by_counts, by_name, unplaceable
from .reading import ClusterDefaults

BROKER_DEFAULT = -1
"""A count that the configuration of the brokers decides (KIP-464)."""
MOST_REPLICAS = 500_000
"""How many replicas one request may create: they are all placed before it is judged."""


class NotSeen(Refusal):
    """What a request is about is not in the state that was read, which may be old."""


class NotAsked(NotSeen):
    """The gateway itself finds something wrong with what is asked of a topic that it sees."""


class Question(msgspec.Struct, frozen=True):
    """The question to the policy about a part, and the effect of the part if it is passed."""

    request: JudgedRequest
    delta: Delta = NO_CHANGE
    """What the part would make of its topic, as far as that is known."""
    reached: Callable[[Image], bool] = lambda _image: True
    """Returns whether an image shows that the part took effect."""
    first_refusal: Refusal | None = None
    """What Kafka would refuse the part by before it asks a policy, as far as that is known."""
    stated: IncrementalAlterConfigsResource | None = None
    """The element in a form that does not depend on what was read, if the request's own does: in
    this form it goes on, so that what is carried out is what was judged.
    """
    besides: Sequence[JudgedRequest] = ()
    """What the cluster itself does because of the part: the policy has to allow it, too."""

    @property
    def topic(self) -> str | None:
        return self.delta.changed_topic


class Asker:
    """Makes the questions of one request."""

    def __init__(self, description: RequestDescription, defaults: ClusterDefaults, *, validate_only: bool) -> None:
        self._description = description
        self._defaults = defaults
        self._validate_only = validate_only
        self._replicas_left = MOST_REPLICAS

    def _asked(self) -> RequestBuilder:
        return questions.asked_by(self._description, validate_only=self._validate_only, state_may_be_old=True)

    # ------------------------------------------------------------------ topics

    def creation(self, image: Image, wanted: CreatableTopic, *, automatic: bool = False) -> Question:
        """Ask about the creation of a topic. Raises Refusal."""
        placed = self._placed(image, wanted)
        first_refusal = _first_refusal(image, wanted, placed.refusal)
        self._count(placed.count)
        topic = Topic(
            name=wanted.name,
            topic_id=new_id(),
            partitions=tuple(Partition(replicas=replicas) for replicas in placed.rows),
            configs=Map({config.name: config.value for config in wanted.configs if config.value is not None}),
        )
        is_placed = not wanted.assignments
        return Question(
            questions.creation(
                self._asked(), topic, self._defaults.differing, is_placed=is_placed, automatic=automatic
            ),
            TopicBecomes.of(topic),
            partial(_is_created, wanted.name, image.topics.get(wanted.name)),
            first_refusal,
        )

    def _placed(self, image: Image, wanted: CreatableTopic) -> Placed:
        """Return the replicas of a new topic. Raises Refusal."""
        if wanted.assignments:
            return by_name(image, wanted)
        config = self._defaults.config
        partitions = (
            config.integer("num.partitions") if wanted.num_partitions == BROKER_DEFAULT else wanted.num_partitions
        )
        factor = wanted.replication_factor
        if factor == BROKER_DEFAULT:
            factor = config.integer("default.replication.factor")
        brokers = placed_brokers(image)
        self._check_counts(brokers, partitions, factor)
        return by_counts(brokers, partitions, factor, random=randrange)

    def deletion(self, topic: Topic, created_ms: int | None) -> Question:
        return Question(
            self._asked().delete_topic(topic.name, created_ms=created_ms),
            TopicMarked(topic.name, topic.topic_id),
            partial(_is_other, topic),
        )

    def growth(self, image: Image, topic: Topic, wanted: CreatePartitionsTopic) -> Question:
        """Ask about new partitions of a topic. Raises Refusal, NotSeen."""
        increment = wanted.count - len(topic.partitions)
        if increment <= 0:
            text = f"Topic already has {len(topic.partitions)} partitions."
            raise NotSeen(ErrorCode.INVALID_PARTITIONS, text)
        added = self._added(image, topic, wanted, increment)
        if added.refusal is not None and len(added.rows) != increment:  # right for a topic of another size
            raise NotSeen(added.refusal.code, added.refusal.message)
        self._count(added.count)
        after = msgspec.structs.replace(
            topic, partitions=topic.partitions + tuple(Partition(replicas=replicas) for replicas in added.rows)
        )
        is_placed = wanted.assignments is None
        return Question(
            questions.growth(self._asked(), after, self._defaults.differing, is_placed=is_placed),
            TopicBecomes.of(after),
            lambda now: _is_other(topic, now) or len(now.topics[topic.name].partitions) >= wanted.count,
            added.refusal,
        )

    def _added(self, image: Image, topic: Topic, wanted: CreatePartitionsTopic, increment: int) -> Placed:
        if wanted.assignments is not None:
            return added_by_name(image, topic, wanted.assignments, increment)
        brokers, factor = placed_brokers(image), topic.replication_factor
        self._check_counts(brokers, increment, factor)
        return by_counts(
            brokers,
            increment,
            factor,
            start=start_for_new_partitions(brokers, topic.partitions[0].replicas[0]) if factor else 0,
            first_partition=len(topic.partitions),
            random=randrange,
        )

    def reassignment(self, image: Image, topic: Topic, rows: Mapping[int, Sequence[int] | None]) -> Question:
        """Ask about the reassignment of a topic's partitions. Those that were not seen are judged
        as if they came after the others. Raises Refusal, NotSeen.
        """
        known = {index: row for index, row in rows.items() if topic.partition(index) is not None}
        unseen = NotSeen(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if not known:
            raise unseen
        self._count(sum(len(row or ()) for row in rows.values()))
        live = image.live_ids()
        after = topic.with_partitions(
            {index: _reassigned(topic.partitions[index], row, live) for index, row in known.items()}
        )
        moved = [index for index in known if after.partitions[index].replicas != topic.partitions[index].replicas]
        return Question(
            questions.reassignment(self._asked(), topic, rows, self._defaults.differing),
            TopicBecomes.of(after),
            partial(_differs_in, topic, moved),
            None if len(known) == len(rows) else unseen,
        )

    def record_deletion(self, topic: str, offsets: Mapping[int, int]) -> Question:
        """Ask about the deletion of a topic's records."""
        return Question(self._asked().delete_records(topic, offsets))

    def admin(self, change: Change) -> Question:
        """Ask about a change of something whose state policies do not see."""
        return Question(questions.administration(self._asked(), change))

    # ------------------------------------------------------------------ configs

    def other_configs(self, image: Image, change: Change) -> Question:
        """Ask about configs of a group or of client metrics. Brokers create the topic to which a
        share group is to send its dead letters (KIP-1191), when it is needed. A topic that was
        seen is asked about, too, because it may be gone before they need it. Raises Refusal.
        """
        question = self.admin(change)
        name = canonical(DEAD_LETTERS, (change.operations or {}).get(DEAD_LETTERS) or "")
        if change.kind != "group_config" or not name:
            return question
        wanted = CreatableTopic(name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)
        creation = self.creation(image, wanted, automatic=True)
        return msgspec.structs.replace(question, besides=(creation.request,))

    def topic_configs(self, topic: Topic, resource: Resource, change: Change) -> Question:
        """Ask about a change of a topic's configs. Raises Refusal."""
        configs = Map(altered(topic.configs, resource, topic_key))
        after = msgspec.structs.replace(topic, configs=configs)
        request = questions.topic_configs(self._asked(), change, topic.configs, after, self._defaults.differing)
        kinds = request.config_operation_kinds or {}
        return Question(
            request,
            TopicBecomes.of(after),
            lambda now: (
                _is_other(topic, now) or has_changed(topic.configs, configs, now.topics[topic.name].configs, kinds)
            ),
            stated=stated_form(resource, configs),
        )

    def broker_configs(self, before: Configs, resource: Resource, change: Change) -> Question:
        """Ask about a change of the configs of a broker, or of the default of all. Raises
        Refusal.
        """
        after = altered(before, resource, broker_key)
        defaults = self._altered_defaults(change.resource, before), self._altered_defaults(change.resource, after)
        return Question(
            questions.broker_configs(self._asked(), change, (before, after), defaults),
            stated=stated_form(resource, after),
        )

    def levels(self, before: Configs, change: Change) -> Question:
        """Ask about a change of the levels of a broker's loggers. Raises Refusal."""
        operations = change.operations or {}
        after = {**before, **{name: level for name, level in operations.items() if level is not None}}
        return Question(
            questions.loggers(
                self._asked(),
                change,
                {name: level for name, level in before.items() if name in operations},
                {name: level for name, level in after.items() if name in operations},
            )
        )

    def _altered_defaults(self, broker: str, configs: Configs) -> Configs:
        if broker:
            return self._defaults.altered(of_broker=configs)
        return self._defaults.altered(of_all=configs)

    # ------------------------------------------------------------------ bounds

    def _check_counts(self, brokers: Sequence[PlacedBroker], partitions: int, factor: int) -> None:
        """Raise Refusal if these are more replicas than may be placed: by Kafka's own reason if it
        has one.
        """
        if partitions * max(1, factor) > self._replicas_left:
            raise unplaceable(brokers, partitions, factor) or _too_many()

    def _count(self, replicas: int) -> None:
        if replicas > self._replicas_left:
            raise _too_many()
        self._replicas_left -= replicas


def _too_many() -> Refusal:
    text = f"The request asks for too many replicas: one request may create {MOST_REPLICAS}."
    return Refusal(ErrorCode.INVALID_PARTITIONS, text)


def can_never_be(wanted: Any) -> bool:
    """Whether no cluster carries this out, so that its own answer is the right one: a topic without
    partitions or replicas, an operation on a config that there is none of, a topic that is given by
    its name and its id, and a topic whose name no topic can have.
    """
    match wanted:
        case CreatableTopic():
            counts = wanted.num_partitions, wanted.replication_factor
            return not wanted.assignments and any(count <= 0 and count != BROKER_DEFAULT for count in counts)
        case IncrementalAlterConfigsResource():
            return any(each.config_operation not in OPERATIONS for each in wanted.configs)
        case DeleteTopicState():
            return wanted.name is not None and wanted.topic_id != NO_TOPIC_ID
        case CreatePartitionsTopic():
            return wanted.count <= 0
        case _:
            return False


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


def _reassigned(partition: Partition, wanted: Sequence[int] | None, live: frozenset[int]) -> Partition:
    replicas = reassignment.origin(partition) if wanted is None else tuple(wanted)
    return reassignment.reassign(partition, replicas, live) if replicas else partition


def _is_other(topic: Topic, image: Image) -> bool:
    """Return whether an image shows another topic of that name, or none."""
    now = image.topics.get(topic.name)
    return now is None or now.topic_id != topic.topic_id


def _is_created(name: str, earlier: Topic | None, image: Image) -> bool:
    """Return whether an image shows a topic that is not the `earlier` one of its name."""
    if earlier is not None and earlier.topic_id != NO_TOPIC_ID and not _is_other(earlier, image):
        return False
    return name in image.topics


def _differs_in(topic: Topic, partitions: Sequence[int], image: Image) -> bool:
    """Return whether an image shows other replicas of these partitions than the topic had."""
    now = image.topics.get(topic.name)
    return now is None or all(
        (partition := now.partition(index)) is None or partition.replicas != topic.partitions[index].replicas
        for index in partitions
    )
