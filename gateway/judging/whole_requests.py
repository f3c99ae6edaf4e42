"""Requests that are passed or refused as a whole: changes of ACLs, users, quotas, tokens, groups
and their offsets, and elections.

A policy judges each resource that such a request names, but sees no state of it (`AdminRequest`).
If it refuses one of them, the whole request is refused.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ...admin.alter_client_quotas import entity_name
from ...admin.apis import SPECS
from ...admin.changes import Change, Outcome
from ...admin.error_answers import error_answer, error_codes
from ...admin.requested_changes import requested_changes
from ...admin.spec import Spec
from ...policies.rules.vocabulary import OPERATION_OF_API
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from .dissection import ClusterAnswer
from .parts import Part
from .repetitions import contradiction


class WholeForm(msgspec.Struct, frozen=True, eq=False):
    """The form of an API whose requests are passed or refused as a whole."""

    key: ApiKey
    repeated: str | None = None
    refuses_repeated: bool = False
    is_whole: bool = True
    changes_topics: bool = False

    @property
    def spec(self) -> Spec:
        return SPECS[self.key]

    def parts(self, request: Any) -> list[Part]:
        """Return a part for each resource that a request names."""
        why = contradiction(self.key, request)
        return [
            Part((each.kind, each.resource), [], Outcome(each), contradiction=why)
            for each in requested_changes(self.spec, request)
        ]

    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        """Return the response to a request that is refused, or the response of the cluster."""
        if response is not None:
            return response
        _, code, message = refused[0]
        if isinstance(request, ElectLeadersRequest) and request.topic_partitions is None:
            named = [TopicPartitions(topic=part.change.resource, partitions=[0]) for part, _, _ in refused]
            request = msgspec.structs.replace(request, topic_partitions=named)  # so that there are rows to refuse
        return error_answer(self.spec, request, version, code=code, message=message)

    def answers(self, parts: Sequence[Part], response: Any) -> list[list[ClusterAnswer]]:
        """Return the answers of the cluster to the parts. One is in doubt if its rows, or rows that
        may be its own, do not agree.
        """
        codes = list(error_codes(self.spec, response)) or [int(ErrorCode.NONE)]
        named = NAMED.get(self.key)
        if self.key == ApiKey.CREATE_ACLS and len(codes) == len(parts):  # its rows have no names, but an order
            return [[ClusterAnswer(code, None)] for code in codes]
        own: int = getattr(response, "error_code", 0)
        if named is None or own:
            return [[_common(codes)] for _ in parts]
        return self._answers_by_name(named, parts, response)

    def _answers_by_name(self, named: "Named", parts: Sequence[Part], response: Any) -> list[list[ClusterAnswer]]:
        assert self.spec.rows is not None
        field = self.spec.rows.field
        by_name: dict[Hashable, list[Any]] = {}
        for row in getattr(response, field):
            by_name.setdefault(named.identity(named.name_of(row)), []).append(row)
        found = [by_name.get(named.identity(part.change.resource), []) for part in parts]
        answers = [msgspec.structs.replace(response, **{field: rows}) for rows in found]
        return [[_common(list(error_codes(self.spec, each)) or [named.without_row])] for each in answers]


class Named(msgspec.Struct, frozen=True):
    """The rows of an API that say what they are about, which Kafka gives in any order."""

    name_of: Callable[[Any], str]
    """Returns the name of what a row is about."""
    identity: Callable[[str], Hashable] = str
    """Returns the same for all forms of a name."""
    without_row: int = ErrorCode.REQUEST_TIMED_OUT
    """What became of a part that has no row."""


class UndividedForm(WholeForm, frozen=True, eq=False):
    """The form of a request that names too much to be judged: it has one part, which stands for all
    that it names.
    """

    def parts(self, _request: Any) -> list[Part]:
        """Return the only part."""
        return [Part(("request",), [], Outcome(Change("", "resource")))]

    def answers(self, parts: Sequence[Part], response: Any) -> list[list[ClusterAnswer]]:
        """Return the only answer, which is in doubt if the rows do not agree."""
        return [[_common(list(error_codes(self.spec, response)) or [int(ErrorCode.NONE)])] for _ in parts]


def _common(codes: Sequence[int]) -> ClusterAnswer:
    """Return the outcome if all rows have the same code, or one that is in doubt."""
    return ClusterAnswer(codes[0] if len({*codes}) == 1 else int(ErrorCode.REQUEST_TIMED_OUT), None)


NAMED: Mapping[int, Named] = MappingProxyType(
    {
        ApiKey.ALTER_CLIENT_QUOTAS: Named(lambda row: entity_name(row.entity), lambda name: frozenset(name.split(","))),
        ApiKey.ALTER_REPLICA_LOG_DIRS: Named(lambda row: row.topic_name),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Named(lambda row: row.user),
        ApiKey.DELETE_GROUPS: Named(lambda row: row.group_id),
        # An election of everything answers for the partitions that needed one.
        ApiKey.ELECT_LEADERS: Named(lambda row: row.topic, without_row=ErrorCode.ELECTION_NOT_NEEDED),
    }
)
"""The APIs whose rows have names."""


WHOLE_FORMS: Mapping[int, WholeForm] = MappingProxyType(
    {key: WholeForm(key) for key in (ApiKey[operation.upper()] for operation in OPERATION_OF_API.values())}
)
"""The APIs whose requests are judged without a state."""
