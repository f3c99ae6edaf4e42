"""Holds an outcome against the recorded one, and says what differs; differences on purpose are
listed in `differences.py`.
Texts are compared to the letter.
"""

from collections.abc import Iterator
from typing import Any

from tests.conformance.case import Case
from tests.conformance.differences import on_purpose
from tests.conformance.normal import Normaliser
from tests.conformance.recording import Recording
from tests.conformance.scenario import Outcome


class Comparison:
    """Compares the answers of a cluster to a scenario with the recorded ones."""

    def __init__(self, recording: Recording, ours: Normaliser, *, to_the_letter: bool = False) -> None:
        self._recording = recording
        self._to_the_letter = to_the_letter
        self._theirs = Normaliser(recording.addresses, recording.topic_ids, recording.tokens)
        self._ours = ours
        self._expected: dict[str, Any] = {}
        """By the key of the case: each is compared twice, or again and again until it agrees."""

    def expected(self, case: Case) -> Any:
        """Return our answer as it should be: as recorded, unless we differ on purpose."""
        if case.key not in self._expected:
            self._expected[case.key] = self._expectation(case)
        return self._expected[case.key]

    def _expectation(self, case: Case) -> Any:
        recorded = self._recording.outcomes[case.key]
        answer = recorded.answer(case)
        normal = recorded.ended if answer is None else self._theirs.normal(case, answer)
        return normal if self._to_the_letter else on_purpose(case, normal)

    def actual(self, outcome: Outcome) -> Any:
        answer = outcome.answer
        return outcome.ended if answer is None else self._ours.normal(outcome.case, answer)

    def agrees(self, outcome: Outcome) -> bool:
        return not list(self.differences(outcome))

    def differences(self, outcome: Outcome) -> Iterator[str]:
        """Yield the differences between two answers, by their paths."""
        yield from differing(self.expected(outcome.case), self.actual(outcome))


def differing(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    if callable(expected):
        if not expected(actual):
            yield f"{path}: {actual!r} is not {expected.__doc__}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            yield from differing(expected.get(key, "no such field"), actual.get(key, "no such field"), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from differing(one, other, f"{path}[{index}]")
    elif expected != actual:
        yield f"{path}: {actual!r}, Kafka: {expected!r}"
