"""The recordings themselves: complete, still what the cases ask, documented - and golden vectors
for our own codec.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from minicontroller.protocol.registry import KAFKA
from tests.conformance.case import Case
from tests.conformance.differences import DIFFERENCES, Difference
from tests.conformance.recording import RECORDINGS, Recorded, read_recording
from tests.conformance.scenario import SCENARIOS as OPEN_SCENARIOS
from tests.conformance.scenario import SECURED

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
LARGEST_BYTES = 3_000_000
SCENARIOS = {**OPEN_SCENARIOS, **SECURED}


def recorded_answers(scenario: str) -> Iterator[tuple[Case, Recorded]]:
    recording = read_recording(scenario)
    for case in SCENARIOS[scenario]:
        recorded = recording.outcomes[case.key]
        if recorded.response is not None and case.frame is None:
            yield case, recorded


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_case_is_recorded_once(scenario: str) -> None:
    """Cases have unique keys, and a recording has exactly the cases of its scenario."""
    keys = [case.key for case in SCENARIOS[scenario]]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(read_recording(scenario).outcomes)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_requests_of_kafka_python_are_read_and_written_alike(scenario: str) -> None:
    """Each recorded request (made by kafka-python 3.0.12) decodes with nothing left over and
    encodes to the same bytes.
    """
    for case, recorded in recorded_answers(scenario):
        header, message, leftover = KAFKA.decode_request(recorded.request[4:])
        assert not leftover, case.key
        assert KAFKA.encode_request(header, message) == recorded.request, case.key


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_of_kafka_are_read_and_written_alike(scenario: str) -> None:
    """Each recorded answer (made by Apache Kafka 3.9.1) decodes and encodes to the same bytes."""
    for case, recorded in recorded_answers(scenario):
        assert recorded.response is not None
        header, _, _ = KAFKA.decode_request(recorded.request[4:])
        answered, message = KAFKA.decode_response(header.api_key, case.version, recorded.response)
        assert answered.correlation_id == header.correlation_id
        again = KAFKA.encode_response(header.api_key, case.version, header.correlation_id, message)
        assert again[4:] == recorded.response, case.key


def test_recordings_are_small() -> None:
    """Whoever clones the repository does not pay for them."""
    assert sum(path.stat().st_size for path in RECORDINGS.rglob("*.json")) < LARGEST_BYTES


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.cases)
def test_differences_are_documented(difference: Difference) -> None:
    """A difference on purpose concerns a case that exists, and docs/conformance.md gives its
    reason.
    """
    keys = [case.key for cases in SCENARIOS.values() for case in cases]
    assert any(re.fullmatch(difference.cases, key) for key in keys)
    assert f"### {difference.name}" in DOCUMENT.read_text()
