"""Requests that are passed or refused as a whole: changes of ACLs, users, quotas, tokens, groups
and their offsets, and elections.

A policy judges each resource that such a request names, but sees no state of it (`AdminRequest`).
If it refuses one of them, the whole request is refused.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ...controller.handlers import SPECS
from ...controller.handlers.requested_changes import requested_changes
from ...controller.requests.error_answers import error_answer, error_codes
from ...controller.requests.spec import Spec
from ...policies.rules.vocabulary import OPERATION_OF_API
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from .dissection import Outcome, Part


class WholeForm(msgspec.Struct, frozen=True, eq=False):
    """The form of an API whose requests are passed or refused as a whole."""

    key: ApiKey
    repeated: str | None = None
    is_whole: bool = True
    changes_topics: bool = False

    @property
    def spec(self) -> Spec:
        return SPECS[self.key]

    def parts(self, request: Any) -> list[Part]:
        """Return a part for each resource that a request names."""
        return [Part((each.kind, each.resource), [], each) for each in requested_changes(self.spec, request)]

    def together(
        self, request: Any, version: int, response: Any | None, refused: Sequence[tuple[Part, ErrorCode, str | None]]
    ) -> Any:
        """Return the response to a request that is refused, or the response of the cluster."""
        if response is not None:
            return response
        _, code, message = refused[0]
        return error_answer(self.spec, request, version, code=code, message=message)

    def outcomes(self, part: Part, parts: Sequence[Part], response: Any) -> list[Outcome]:
        """Return the answer of the cluster to a part, which is in doubt if its rows are about
        something else than the parts and do not agree.
        """
        codes = list(error_codes(self.spec, response)) or [int(ErrorCode.NONE)]
        if len(set(codes)) == 1:
            return [Outcome(codes[0], None)]
        if len(codes) == len(parts):
            return [Outcome(codes[parts.index(part)], None)]
        return [Outcome(int(ErrorCode.REQUEST_TIMED_OUT), None)]


WHOLE_FORMS: Mapping[int, WholeForm] = MappingProxyType(
    {key: WholeForm(key) for key in (ApiKey[operation.upper()] for operation in OPERATION_OF_API.values())}
)
"""The APIs whose requests are judged without a state."""
