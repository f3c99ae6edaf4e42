"""Where an answer through a gateway is not the one without it, on purpose: docs/gateway.md gives
the reason of each name.
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.conformance.case import Case
from tests.conformance.differences import ADMIN_APIS, Difference, closed
from tests.conformance.scenario import SILENT, error_codes


def fewer_apis(_case: Case, recorded: Any) -> Any:
    """Some of the broker's APIs, in some of its versions."""
    if not isinstance(recorded, dict) or not recorded.get("api_keys"):
        return recorded
    brokers = {key["api_key"]: key for key in recorded["api_keys"]}

    def are_the_brokers(keys: Any) -> bool:
        """A list of APIs of the broker in its versions, the admin APIs among them."""
        ours = {key["api_key"]: key for key in keys}
        return ADMIN_APIS <= set(ours) <= set(brokers) and all(
            brokers[number]["min_version"] <= key["min_version"] <= key["max_version"] <= brokers[number]["max_version"]
            for number, key in ours.items()
        )

    return {**recorded, "api_keys": are_the_brokers}


def answered_anew(_case: Case, recorded: Any) -> Any:
    """The connection has ended before, so this one begins anew."""

    def some_apis(keys: Any) -> bool:
        """A list of the admin APIs and perhaps others."""
        return {key["api_key"] for key in keys} >= ADMIN_APIS

    return {"error_code": 0, "api_keys": some_apis} if recorded == "closed" else recorded


def silent(_case: Case, _recorded: Any) -> Any:
    return SILENT


def version_refused(_case: Case, _recorded: Any) -> Any:
    """As a version that is too high is answered."""
    return {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}


def refused_by_gateway(_case: Case, _recorded: Any) -> Any:
    """A refusal with codes and rows of the gateway's own."""

    def is_refusal(answer: Any) -> bool:
        """An answer that refuses something."""
        return isinstance(answer, dict) and any(error_codes(answer))

    return is_refusal


DIFFERENCES = [
    Difference("what-does-not-pass", "ApiVersions-.*", fewer_apis),
    Difference("what-does-not-pass", "AllocateProducerIds-.*", closed),
    Difference("old-header-of-a-new-version", "ApiVersions-v0-version 99 with an old header", version_refused),
    Difference("login-without-requests", "SaslHandshake-v0-.*", closed),
    Difference("login-without-requests", "ApiVersions-v0-handshake v0 .*, step 2", answered_anew),
    Difference("login-without-requests", "SaslAuthenticate-v0-bare token, bytes", closed),
    Difference("login-without-requests", "Metadata-v12-bare token, after", closed),
    Difference("lengths-are-the-brokers", "SaslHandshake-v0-too long, bytes", silent),
]
"""The differences through any gateway."""

BEFORE_THE_CLUSTER = "refused-before-the-cluster"
OF_JUDGING = [
    Difference(BEFORE_THE_CLUSTER, "(AlterConfigs|IncrementalAlterConfigs)-v.-(node|logger) .*", refused_by_gateway),
    Difference(BEFORE_THE_CLUSTER, "AlterConfigs-v2-topic twice", refused_by_gateway),
    Difference(
        BEFORE_THE_CLUSTER,
        "IncrementalAlterConfigs-v.-(append unknown config|unknown operation|unknown operation before another node)",
        refused_by_gateway,
    ),
    Difference(BEFORE_THE_CLUSTER, "CreatePartitions-v.-(twice .*|three times)", refused_by_gateway),
    Difference(
        BEFORE_THE_CLUSTER, "DeleteTopics-v6-(.*id and name in one|empty name and id in one)", refused_by_gateway
    ),
    Difference(BEFORE_THE_CLUSTER, "CreateTopics-v7-(placed|.* before|cluster metadata twice).*", refused_by_gateway),
    Difference(BEFORE_THE_CLUSTER, "CreateTopics-v[567]-alice: .*, create twice", refused_by_gateway),
    Difference(
        "acls-that-cannot-be-read",
        "DeleteAcls-v.-(operation 0|permission_type 0|admin: delete operation zero)",
        refused_by_gateway,
    ),
]
"""The further differences through one that judges."""


def through_gateway(case: Case, recorded: Any, actual: Any, *, judged: bool) -> tuple[set[str], Any]:
    """Return the names of the differences that change the answer to a case, and what they make of
    it. An answer that is equal anyway has none.
    """
    names: set[str] = set()
    if actual == recorded:
        return names, recorded
    for difference in concerning(case, judged=judged):
        adapted = difference.adapt(case, recorded)
        names |= {difference.name} if adapted != recorded else set()
        recorded = adapted
    return names, recorded


def concerning(case: Case, *, judged: bool) -> Iterator[Difference]:
    for difference in DIFFERENCES + (OF_JUDGING if judged else []):
        if re.fullmatch(difference.cases, case.key):
            yield difference
