"""The answers through a gateway that differ on purpose from those without it: docs/gateway.md gives
the reason of each, under the same name.
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.conformance.case import Case
from tests.conformance.differences import ADMIN_APIS, Difference, closed, every_row_refused, refused_as
from tests.conformance.scenario import SILENT


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
    """Expect the answer to a version that is too high."""
    return {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}


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

OF_JUDGING = [
    Difference("no-request-unanswered", "AlterConfigs-v2-topic twice", every_row_refused("responses", 42)),
    Difference(
        "lists-that-are-not-known", "IncrementalAlterConfigs-v.-append unknown config", refused_as("responses", 40)
    ),
    Difference("no-partition-below-zero", "CreateTopics-v7-placed at -1", refused_as("topics", 39)),
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
