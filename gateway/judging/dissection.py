"""Takes requests for changes apart, and puts responses together again; pure.

Rule: a request is divided into parts, each about one topic or resource, and each part is refused or
passed as a whole. A response has its rows in the order of the request, whoever made them. Where
nothing is refused, request and response stay as they are.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from ...admin.apis import SPECS
from ...admin.changes import Outcome, kind_and_name
from ...admin.error_answers import error_answer
from ...admin.spec import Fields, InnerRows, Rows, Spec, copied
from ...cluster.entities import NO_TOPIC_ID
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_partition_reassignments import (
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct
from .parts import Part, Place
from .repetitions import contradiction


class ClusterAnswer(msgspec.Struct, frozen=True):
    """The answer of the cluster to a part, or to some of its partitions."""

    code: int
    message: str | None
    partitions: tuple[int, ...] = ()
    """The partitions that were answered like this, where the rows of the response are about
    partitions.
    """


class Form(Protocol):
    """The form of an API's requests and responses."""

    @property
    def key(self) -> ApiKey: ...
    @property
    def repeated(self) -> str | None:
        """Kafka's text for what must not be named twice; None if it may."""

    @property
    def refuses_repeated(self) -> bool:
        """Whether every Kafka refuses what is named twice, so that its own answer is the right
        one.
        """

    @property
    def is_whole(self) -> bool:
        """Whether a request is refused as a whole if one of its parts is."""

    @property
    def changes_topics(self) -> bool:
        """Whether its requests change what the mirror knows of topics."""

    def parts(self, request: Any) -> list[Part]:
        """Return the parts of a request, in its order."""

    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        """Return the response to the whole request: the rows of `response`, which is the answer of
        the cluster to the parts that were passed, and the rows of the parts that were refused.
        """

    def answers(self, parts: Sequence[Part], response: Any) -> list[list[ClusterAnswer]]:
        """Return the answers of the cluster to each of the parts that were passed: one, or one for
        each error of its partitions.
        """


class PartedForm(msgspec.Struct, frozen=True, eq=False):
    """The form of an API whose requests are judged part by part."""

    key: ApiKey
    fields: Sequence[str]
    """The fields of a request whose elements are what it asks for."""
    identity: Callable[[Any], Hashable]
    """Returns what an element of the request is about."""
    row_identities: Callable[[Any], Iterable[Hashable]]
    """Returns what a row of the response is about, in every form in which a request may say it."""
    repeated: str | None = None
    refuses_repeated: bool = False
    is_whole: bool = False
    changes_topics: bool = True
    told_once: Collection[ErrorCode] = ()
    """The errors of which the cluster has one row, also for what a request names twice."""
    rows: Rows | None = None
    """The rows of the response, if the API's own declaration has none."""

    @property
    def spec(self) -> Spec:
        spec = SPECS[self.key]
        return spec if self.rows is None else msgspec.structs.replace(spec, rows=self.rows)

    def count(self, request: Any) -> int:
        """Return how many elements a request has."""
        return sum(len(getattr(request, field, None) or ()) for field in self.fields)

    def parts(self, request: Any) -> list[Part]:
        """Return the parts of a request, in its order."""
        places: dict[Hashable, list[Place]] = {}
        ids: dict[Hashable, bytes] = {}
        for field in self.fields:
            for index, thing in enumerate(getattr(request, field, None) or ()):
                key = self.identity(thing)
                places.setdefault(key, []).append((field, index))
                is_named = getattr(thing, "name", None) is not None
                ids.setdefault(key, NO_TOPIC_ID if is_named else getattr(thing, "topic_id", NO_TOPIC_ID))
        return [self._part(request, key, own, ids[key]) for key, own in places.items()]

    def _part(self, request: Any, key: Hashable, places: list[Place], topic_id: bytes) -> Part:
        changes, own = self.spec.changes, self.only(request, places)
        assert changes is not None
        change = next(iter(changes.requested(own)))
        return Part(key, places, Outcome(change), topic_id, contradiction(self.key, own))

    def only(self, request: Any, places: Iterable[Place]) -> Any:
        """Return the request with these elements and no others, in the same order."""
        kept: dict[str, list[int]] = {field: [] for field in self.fields}
        for field, index in sorted(places):
            kept[field].append(index)
        fields = {
            field: [getattr(request, field)[index] for index in kept[field]]
            for field in self.fields
            if getattr(request, field, None)
        }
        return msgspec.structs.replace(request, **fields)

    def replaced(self, request: Any, places: Iterable[Place], element: Any) -> Any:
        """Return the request with another element in these places."""
        for field, index in places:
            elements = list(getattr(request, field))
            elements[index] = element
            request = msgspec.structs.replace(request, **{field: elements})
        return request

    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        """Return the response to the whole request: the rows of `response`, which is the answer of
        the cluster to the parts that were passed, and the rows of the parts that were refused.
        """
        rows = self.spec.rows
        assert rows is not None
        own: dict[Hashable, list[Any]] = {}
        for part, code, message in refused:
            answer = error_answer(self.spec, self.only(request, part.places), version, code=code, message=message)
            made = list(getattr(answer, rows.field))
            own[part.key] = [_merged(rows, made)] if code in self.told_once else made
        theirs = _by_identity(() if response is None else getattr(response, rows.field), self.row_identities)
        taken: set[int] = set()
        ordered: list[Any] = []
        for field in self.fields:
            for thing in getattr(request, field, None) or ():
                key = self.identity(thing)
                waiting = own.get(key) or [row for row in theirs.get(key, ()) if id(row) not in taken]
                if waiting:
                    row = waiting[0]
                    taken.add(id(row))
                    if key in own:
                        own[key] = own[key][1:]
                    ordered.append(row)
        left = () if response is None else (row for row in getattr(response, rows.field) if id(row) not in taken)
        whole = KAFKA[self.key].response() if response is None else response
        return msgspec.structs.replace(whole, **{rows.field: [*ordered, *left]})

    def answers(self, parts: Sequence[Part], response: Any) -> list[list[ClusterAnswer]]:
        """Return the answers of the cluster to each part: one, or one for each error of its
        partitions.
        """
        assert self.spec.rows is not None
        own = getattr(response, "error_code", 0)
        if own:
            return [[ClusterAnswer(own, getattr(response, "error_message", None))] for _ in parts]
        theirs = _by_identity(getattr(response, self.spec.rows.field), self.row_identities)
        return [self._answers_in(theirs.get(part.key, [])) for part in parts]

    def _answers_in(self, rows: Sequence[Any]) -> list[ClusterAnswer]:
        assert self.spec.rows is not None
        inner = self.spec.rows.inner
        if inner is None:
            return [ClusterAnswer(row.error_code, getattr(row, "error_message", None)) for row in rows[:1]]
        by_error: dict[tuple[int, str | None], list[int]] = {}
        for row in rows:
            for each in getattr(row, inner.field):
                error = each.error_code, getattr(each, "error_message", None)
                by_error.setdefault(error, []).append(each.partition_index)
        return [ClusterAnswer(code, message, tuple(indexes)) for (code, message), indexes in by_error.items()]


def _merged(rows: Rows, made: Sequence[Any]) -> Any:
    """Return one row for all that are about a topic, with one inside it for each partition."""
    if rows.inner is None:
        return made[0]
    field = rows.inner.field
    partitions = {each.partition_index: each for row in made for each in getattr(row, field)}
    return msgspec.structs.replace(made[0], **{field: list(partitions.values())})


def _by_identity(rows: Iterable[Any], identities: Callable[[Any], Iterable[Hashable]]) -> dict[Hashable, list[Any]]:
    found: dict[Hashable, list[Any]] = {}
    for row in rows:
        for key in identities(row):
            found.setdefault(key, []).append(row)
    return found


def _name(thing: Any) -> Hashable:
    return ("name", thing.name)


def _row_name(row: Any) -> Iterable[Hashable]:
    return (_name(row),)


def _deleted(thing: str | WireStruct) -> Hashable:
    if isinstance(thing, str):
        return ("name", thing)
    name, topic_id = getattr(thing, "name", None), getattr(thing, "topic_id", NO_TOPIC_ID)
    if name is not None and topic_id != NO_TOPIC_ID:  # not the topic of either alone
        return ("both", name, topic_id)
    return ("id", topic_id) if name is None else ("name", name)


def _deleted_row(row: Any) -> Iterable[Hashable]:
    return (("id", row.topic_id), ("name", row.name), ("both", row.name, row.topic_id))


def _resource(thing: Any) -> Hashable:
    return (thing.resource_type, *kind_and_name(thing.resource_type, thing.resource_name))


def _resource_row(row: Any) -> Iterable[Hashable]:
    return (_resource(row),)


def _partitions(topic: ReassignableTopic) -> Iterator[Fields]:
    for partition in topic.partitions:
        yield {"partition_index": partition.partition_index}


_REASSIGNED = Rows(
    "responses",
    ReassignableTopicResponse,
    {"topics": copied("name")},
    inner=InnerRows("partitions", ReassignablePartitionResponse, _partitions),
)

FORMS: Mapping[int, PartedForm] = MappingProxyType(
    {
        form.key: form
        for form in (
            PartedForm(
                ApiKey.CREATE_TOPICS,
                ("topics",),
                _name,
                _row_name,
                refuses_repeated=True,
            ),
            PartedForm(
                ApiKey.DELETE_TOPICS,
                ("topic_names", "topics"),
                _deleted,
                _deleted_row,
                told_once={ErrorCode.INVALID_REQUEST},
            ),
            PartedForm(
                ApiKey.CREATE_PARTITIONS,
                ("topics",),
                _name,
                _row_name,
                refuses_repeated=True,
                told_once=frozenset(ErrorCode),
            ),
            PartedForm(
                ApiKey.ALTER_CONFIGS,
                ("resources",),
                _resource,
                _resource_row,
                repeated="Each resource must appear at most once.",
            ),
            PartedForm(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                ("resources",),
                _resource,
                _resource_row,
                repeated="Each resource must appear at most once.",
            ),
            PartedForm(ApiKey.ALTER_PARTITION_REASSIGNMENTS, ("topics",), _name, _row_name, rows=_REASSIGNED),
            PartedForm(
                ApiKey.DELETE_RECORDS,
                ("topics",),
                _name,
                _row_name,
                changes_topics=False,
                told_once=frozenset(ErrorCode),
            ),
        )
    }
)
"""The APIs whose requests are judged part by part."""
