"""Requests that are passed or refused as a whole: changes of ACLs, users, quotas, tokens, groups
and their offsets, and elections.

A policy judges each resource that such a request names, but sees no state of it (`AdminRequest`).
If it refuses one of them, the whole request is refused.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ...controller.errors import Refusal
from ...controller.handlers import SPECS
from ...controller.handlers.acl_filters import entry_text, pattern_text
from ...controller.handlers.requested_changes import election_type, requested_changes
from ...controller.requests.changes import RequestedChange
from ...controller.requests.error_answers import error_answer, error_codes
from ...controller.requests.spec import Spec
from ...policies.rules.vocabulary import OPERATION_OF_API
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ...protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from .dissection import Outcome, Part
from .mirror import Mirror
from .repetitions import contradiction

MOST_FILTERS = 200
"""How many filters a DeleteAcls may have that is judged: the cluster is asked what each matches."""


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
            Part((each.kind, each.resource), [], each, contradiction=why)
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
            named = [TopicPartitions(topic=part.requested.resource, partitions=[0]) for part, _, _ in refused]
            request = msgspec.structs.replace(request, topic_partitions=named)  # so that there are rows to refuse
        return error_answer(self.spec, request, version, code=code, message=message)

    def outcomes(self, part: Part, parts: Sequence[Part], response: Any) -> list[Outcome]:
        """Return the answer of the cluster to a part, which is in doubt if its rows are about
        something else than the parts and do not agree.
        """
        codes = list(error_codes(self.spec, response)) or [int(ErrorCode.NONE)]
        if len(set(codes)) == 1:
            return [Outcome(codes[0], None)]
        if len(codes) == len(parts) and self.key != ApiKey.DELETE_ACLS:  # its rows are those of filters
            return [Outcome(codes[parts.index(part)], None)]
        return [Outcome(int(ErrorCode.REQUEST_TIMED_OUT), None)]


class UndividedForm(WholeForm, frozen=True, eq=False):
    """The form of a request that names too much to be judged: it has one part, which stands for all
    that it names.
    """

    def parts(self, _request: Any) -> list[Part]:
        """Return the only part."""
        return [Part(("request",), [], RequestedChange("", "resource"))]


async def resolved_parts(request: Any, mirror: Mirror, parts: list[Part]) -> list[Part]:
    """Return the parts of a request with what it means in place of what it says: the patterns whose
    ACLs its filters match, and all topics for an election that names none. Raises NotKnownError,
    Refusal.
    """
    if isinstance(request, DeleteAclsRequest) and any(map(_has_an_unknown_code, request.filters)):
        return parts  # every Kafka ends the connection, also that of a gateway that asks
    if isinstance(request, DeleteAclsRequest):
        if len(request.filters) > MOST_FILTERS:
            text = f"The request has {len(request.filters)} filters; the gateway judges at most {MOST_FILTERS}."
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        matched: dict[str, dict[str, str | None]] = {}
        for each in request.filters:
            for pattern, entries in (await mirror.acls_matching(each)).items():
                matched.setdefault(pattern_text(pattern), {}).update(dict.fromkeys(map(entry_text, entries)))
        deleted = [
            RequestedChange(name, "acl", entries, dict.fromkeys(entries, "delete"))
            for name, entries in sorted(matched.items())
        ]
        return [Part(("acl", each.resource), [], each) for each in deleted] or parts
    if isinstance(request, ElectLeadersRequest) and request.topic_partitions is None:
        kind = election_type(request)
        return [
            Part(("topic", name), [], RequestedChange(name, election_type=kind)) for name in sorted(mirror.image.topics)
        ]
    return parts


def _has_an_unknown_code(wanted: DeleteAclsFilter) -> bool:
    """Whether a filter says that its sender did not know what to seek: 0 means unknown for ever."""
    return 0 in (wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type)


WHOLE_FORMS: Mapping[int, WholeForm] = MappingProxyType(
    {key: WholeForm(key) for key in (ApiKey[operation.upper()] for operation in OPERATION_OF_API.values())}
)
"""The APIs whose requests are judged without a state."""
