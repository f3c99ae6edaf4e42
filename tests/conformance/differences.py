"""Where we differ from Kafka 3.9 on purpose: each with its reason in docs/conformance.md, under the same name.

A difference turns the recorded answer (normalised) into the one that is expected of us; what it does not touch must still be equal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.conformance.case import Case

Adapt = Callable[[Case, Any], Any]


def a_text(value: Any) -> bool:
    """A text for a human."""
    return isinstance(value, str) and bool(value)


@dataclass(frozen=True)
class Difference:
    name: str
    """As in docs/conformance.md."""
    cases: str
    """A pattern that matches the whole key of each case that it concerns."""
    adapt: Adapt


def every_row_refused(rows: str, code: int) -> Adapt:
    """All rows of the request with this code and a text."""

    def adapt(case: Case, recorded: Any) -> Any:
        kept = {"throttle_time_ms": 0} if recorded == "silent" else recorded
        asked = case.body["resources"]
        refused = [
            {
                "error_code": code,
                "error_message": a_text,
                "resource_type": each["resource_type"],
                "resource_name": each["resource_name"],
            }
            for each in asked
        ]
        return {**kept, rows: refused}

    return adapt


def topic_refused(code: int) -> Adapt:
    """The only topic of a CreateTopics request is refused."""

    def adapt(_case: Case, recorded: Any) -> Any:
        (row,) = recorded["topics"]
        empty = {"num_partitions": -1, "replication_factor": -1, "configs": []}
        return {**recorded, "topics": [{**row, **empty, "error_code": code, "error_message": a_text}]}

    return adapt


DIFFERENCES = [
    Difference("no-request-unanswered", "AlterConfigs-v2-topic twice", every_row_refused("responses", 42)),
    Difference(
        "unusable-placement",
        "CreateTopics-v7-placed (at -1|on unknown node|on negative node|nowhere|partition twice)",
        topic_refused(39),
    ),
    Difference("not-a-number", "CreateTopics-v7-config .*=NaN", topic_refused(40)),
]


def on_purpose(case: Case, recorded: Any) -> Any:
    """The recorded answer, changed by every difference that concerns the case."""
    for difference in DIFFERENCES:
        if re.fullmatch(difference.cases, case.key):
            recorded = difference.adapt(case, recorded)
    return recorded
