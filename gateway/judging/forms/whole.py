"""Requests that are passed or refused as a whole: changes of ACLs, users, quotas, tokens, groups
and their offsets, and elections.

A policy judges each resource that such a request names, but sees no state of it (`AdminRequest`).
If it refuses one of them, the whole request is refused.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ....admin import questions
from ....admin.alter_client_quotas import entity_name
from ....admin.changes import Change, Outcome
from ....admin.error_answers import error_answer, error_codes
from ....admin.requested_changes import requested_changes
from ....cluster.image import Image
from ....protocol.api_keys import ApiKey
from ....protocol.error_codes import ErrorCode
from ..judged import Form, Part, Row, rows_of_partitions
from ..questions import QuestionContext


class Named(msgspec.Struct, frozen=True):
    """The rows of an API that say what they are about, which Kafka gives in any order."""

    name_of: Callable[[Any], str]
    """Returns the name of what a row is about."""
    identity: Callable[[str], Hashable] = str
    """Returns the same for all forms of a name."""
    without_row: int = ErrorCode.REQUEST_TIMED_OUT
    """The error code of a part for which the response has no row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WholeForm(Form):
    """The form of an API whose requests are passed or refused as a whole."""

    is_whole: bool = True
    named: Named | None = None
    is_ordered: bool = False
    """Whether the response has a row for each part, in the order of the request."""
    named_request: Callable[[Any, Sequence[Part]], Any] = lambda request, _refused: request
    """Returns a request that names the refused parts, if the request itself names none."""

    def parts(self, request: Any) -> list[Part]:
        why = self.contradiction(request)
        return [
            Part((each.kind, each.resource), [], Outcome(each), contradiction=why)
            for each in requested_changes(self.spec, request)
        ]

    def plan(self, context: QuestionContext, part: Part, _request: Any, _image: Image) -> None:
        part.plan(questions.administration(context.asked, part.change))

    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        if response is not None:
            return response
        _, code, message = refused[0]
        request = self.named_request(request, [part for part, _, _ in refused])
        return error_answer(self.spec, request, version, code=code, message=message)

    def outcomes(self, parts: Sequence[Part], response: Any) -> list[list[Outcome]]:
        """Return the outcome of each part, which is in doubt if its rows, or rows that may be its
        own, do not agree.
        """
        codes = list(error_codes(self.spec, response)) or [int(ErrorCode.NONE)]
        if self.is_ordered and len(codes) == len(parts):
            return [[part.answered(code, None)] for part, code in zip(parts, codes, strict=True)]
        own: int = getattr(response, "error_code", 0)
        if self.named is None or own:
            return [[part.answered(_common(codes), None)] for part in parts]
        return [
            [part.answered(code, None)]
            for part, code in zip(parts, self._codes_by_name(self.named, parts, response), strict=True)
        ]

    def _codes_by_name(self, named: Named, parts: Sequence[Part], response: Any) -> Iterator[int]:
        assert self.spec.rows is not None
        field = self.spec.rows.field
        by_name: dict[Hashable, list[Any]] = {}
        for row in getattr(response, field):
            by_name.setdefault(named.identity(named.name_of(row)), []).append(row)
        for part in parts:
            rows = by_name.get(named.identity(part.change.resource), [])
            answer = msgspec.structs.replace(response, **{field: rows})
            yield _common(list(error_codes(self.spec, answer)) or [named.without_row])


class UndividedForm(WholeForm):
    """The form of a request that names too much to be judged: its only part stands for all that it
    names.
    """

    def parts(self, _request: Any) -> list[Part]:
        return [Part(("request",), [], Outcome(Change("", "resource")))]


def undivided(form: Form) -> UndividedForm:
    return UndividedForm(key=form.key, knows_policies=form.knows_policies, retried_as=form.retried_as)


def _common(codes: Sequence[int]) -> int:
    """Return the code of all rows, or that of what nobody knows."""
    return codes[0] if len({*codes}) == 1 else int(ErrorCode.REQUEST_TIMED_OUT)


def _moved(request: Any) -> Iterator[Row]:
    for directory in request.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                yield f"partition {partition} of the topic {topic.name}", directory.path


def _limited(request: Any) -> Iterator[Row]:
    for number, entry in enumerate(request.entries):
        entity = sorted((each.entity_type, each.entity_name or "<default>") for each in entry.entity)
        name = ", ".join(f"{kind} {each}" for kind, each in entity)
        for kind, each in entity:
            yield f"the type {kind} of the entity {name}", each
        for operation in entry.ops:
            value = None if operation.remove else repr(operation.value)  # NaN does not equal itself
            yield f"the quota {operation.key} of {name}", value
        yield f"the entity {name}", number  # some releases carry out the first, and answer for the second


COORDINATED = ErrorCode.COORDINATOR_NOT_AVAILABLE
FORMS = (
    WholeForm(key=ApiKey.CREATE_ACLS, is_ordered=True),
    WholeForm(key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, named=Named(lambda row: row.user)),
    WholeForm(
        key=ApiKey.ALTER_CLIENT_QUOTAS,
        named=Named(lambda row: entity_name(row.entity), lambda name: frozenset(name.split(","))),
        asked_rows=_limited,
    ),
    WholeForm(key=ApiKey.CREATE_DELEGATION_TOKEN),
    WholeForm(key=ApiKey.RENEW_DELEGATION_TOKEN),
    WholeForm(key=ApiKey.EXPIRE_DELEGATION_TOKEN),
    WholeForm(key=ApiKey.DELETE_GROUPS, named=Named(lambda row: row.group_id), retried_as=COORDINATED),
    WholeForm(
        key=ApiKey.OFFSET_COMMIT,
        asked_rows=rows_of_partitions(
            lambda each: (each.committed_offset, each.committed_leader_epoch, each.committed_metadata)
        ),
        retried_as=COORDINATED,
    ),
    WholeForm(key=ApiKey.OFFSET_DELETE, retried_as=COORDINATED),
    WholeForm(key=ApiKey.ALTER_REPLICA_LOG_DIRS, named=Named(lambda row: row.topic_name), asked_rows=_moved),
)
"""The forms of those APIs that need no module of their own."""
