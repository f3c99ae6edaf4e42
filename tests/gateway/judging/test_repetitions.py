"""What a request names twice either means the same to every release of Kafka, or is refused by the
gateway, by the recording of what three releases do.
"""

import math
from typing import Any

from minicontroller.gateway.judging.forms import FORMS
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from minicontroller.protocol.messages.describe_client_quotas import DescribedQuotaEntity
from minicontroller.protocol.registry import KAFKA
from tests.conformance.releases.kafkas import read
from tests.conformance.releases.repeated_cases import CASES, Repeated
from tests.support.grouped import grouped
from tests.support.wire import Body, request_frame

RECORDED: list[list[Any]] = read("repeated")
TOPIC_ID = "00000000-0000-0000-0000-000000000001"
BY_API: dict[str, list[tuple[Repeated, list[Any]]]] = {
    api: [(case, row[1:]) for case, row in zip(CASES, RECORDED, strict=True) if case.api == api]
    for api in sorted({case.api for case in CASES})
}


def decoded(case: Repeated) -> tuple[RequestHeader, Any]:
    body = case.of(0, {"t0": TOPIC_ID})
    header, request, _ = KAFKA.decode_request(bytes(request_frame(case.api, case.version, body)[4:]))
    return header, request


def refused_here(case: Repeated) -> bool:
    """Whether a gateway that enforces refuses it, whatever the rules say."""
    header, request = decoded(case)
    form = FORMS[header.api_key]
    parts = form.parts(request)
    repeats = form.repeated is not None and any(part.is_repeated for part in parts)
    return repeats or any(part.contradiction is not None for part in parts)


def effect(left: Any) -> Any:
    """What a cluster has afterwards, without what it chose itself: where new replicas lie."""
    if not isinstance(left, dict):
        return left
    return {name: _settled(name, topic) for name, topic in left.items()}


def _settled(name: str, topic: Body | None) -> Any:
    if topic is None or not name.startswith("new"):
        return topic
    return len(topic["replicas"]), topic["configs"]


@grouped("case, releases", BY_API)
def test_what_goes_on_means_the_same_to_every_release(case: Repeated, releases: list[Any]) -> None:
    """A request that the gateway does not refuse leaves the same behind in every release, or is
    refused as a whole by those in which it does not.
    """
    if refused_here(case):
        return
    effects = [effect(left) for _, left in releases]
    for (answer, _), each in zip(releases, effects, strict=True):
        assert each == effects[0] or _is_refused(answer)


def _is_refused(answer: Any) -> bool:
    """Whether an answer has errors only."""
    return 0 not in _codes(answer)


def _codes(answer: Any) -> list[int]:
    if isinstance(answer, list):
        return [code for each in answer for code in _codes(each)]
    if not isinstance(answer, dict):
        return []
    own = [answer["error_code"]] if "error_code" in answer else []
    return own + [code for value in answer.values() for code in _codes(value)]


AGREE = ("AlterPartitionReassignments", "DeleteRecords", "OffsetCommit")


def test_rows_that_agree_go_on() -> None:
    """Rows that ask for the same, or are about different things, are no contradiction."""
    agreeing = [
        case for api in AGREE for case, _ in BY_API[api] if "equally" in case.name or "other partitions" in case.name
    ]
    assert {case.api for case in agreeing} == set(AGREE)
    assert [case.name for case in agreeing if refused_here(case)] == []


def test_a_quota_of_no_number_is_one_change() -> None:
    """A quota that is NaN, which does not equal itself, is no contradiction: Kafka 3.9 takes it."""
    wanted = ClientQuotaOperation("request_percentage", math.nan)
    request = AlterClientQuotasRequest([ClientQuotaAlteration([DescribedQuotaEntity("user", "u")], [wanted])])
    assert FORMS[ApiKey.ALTER_CLIENT_QUOTAS].contradiction(request) is None


def test_the_recording_is_of_these_cases() -> None:
    """Each case of the recorder is recorded, by three releases."""
    assert [row[0] for row in RECORDED] == [case.name for case in CASES]
    assert {len(row) for row in RECORDED} == {4}
