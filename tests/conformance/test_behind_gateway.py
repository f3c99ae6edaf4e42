"""Scenarios through a gateway before a real Kafka 3.9.1: the answers are those that were recorded
without it. `python -m tests.conformance.behind_gateway` puts all scenarios to it.
"""

import re
from collections.abc import Iterator

import pytest

from tests.conformance.behind_gateway import DOCUMENT, Row, counts, in_front_of, table
from tests.conformance.differences import Difference
from tests.conformance.differences_of_gateway import DIFFERENCES, OF_JUDGING
from tests.conformance.scenario import SCENARIOS, SECURED
from tests.support.kafka import KafkaCluster, running_kafka
from tests.support.maven import needs_maven

PASSED = ("cluster", "create_partitions")
JUDGED = ("delete_topics", "elections", "acls")
"""Scenarios that need none before them."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    with running_kafka() as kafka:
        yield kafka


@needs_maven
@pytest.mark.slow
@pytest.mark.parametrize(("scenarios", "judged"), [(PASSED, False), (JUDGED, True)], ids=["passed", "judged"])
def test_answers_as_without_a_gateway(kafka: KafkaCluster, scenarios: tuple[str, ...], *, judged: bool) -> None:
    """Every answer equals the one without a gateway, or differs as docs/gateway.md says."""
    with in_front_of(kafka, judged=judged) as through:
        answers = [each for name in scenarios for each in through.put(name, SCENARIOS[name])]
    unnamed = [line for answered in answers for line in answered.unnamed]
    assert not unnamed, "\n" + "\n".join(unnamed)


@pytest.mark.parametrize("difference", DIFFERENCES + OF_JUDGING, ids=lambda difference: difference.cases)
def test_differences_are_documented(difference: Difference) -> None:
    """A difference through the gateway concerns a case that exists, and docs/gateway.md gives its
    reason.
    """
    keys = [case.key for cases in [*SCENARIOS.values(), *SECURED.values()] for case in cases]
    assert any(re.fullmatch(difference.cases, key) for key in keys)
    assert f"| `{difference.name}` |" in DOCUMENT.read_text()


def test_the_table_has_a_row_for_each_api() -> None:
    """Each API has a row with its requests, and with the differences that have been met."""
    rows = {"Metadata": Row(9, 9, 8, {"b", "a"}), "ApiVersions": Row(1, 1, 1)}
    assert list(table(rows))[2:] == ["| ApiVersions | 1 | 1 | 1 |  |", "| Metadata | 9 | 9 | 8 | `a`, `b` |"]
    assert "9 of the 10" in " ".join(counts(rows))
