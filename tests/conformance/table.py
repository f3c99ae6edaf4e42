"""The numbers of docs/conformance.md, made from the cases, the recordings and the differences on
purpose. To write them anew: `python -m tests.conformance.table`.

What is not counted as different is equal, as `tests/conformance/test_answers.py` finds.
"""

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.case import Case
from tests.conformance.differences import DIFFERENCES
from tests.conformance.normal import Normaliser
from tests.conformance.recording import Recording, read_recording
from tests.conformance.scenario import SCENARIOS, SECURED, error_codes
from tests.support.kafka import KAFKA_VERSION

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
WIDTH = 100


@dataclass
class Asked:
    """What was asked of one API."""

    requests: Counter[int] = field(default_factory=Counter)
    """By version."""
    refused: int = 0
    different: int = 0
    differences: set[str] = field(default_factory=set)


def asked_of_kafka() -> dict[str, Asked]:
    """Return what was asked of each API, by its name."""
    apis: dict[str, Asked] = defaultdict(Asked)
    for scenario, cases in {**SCENARIOS, **SECURED}.items():
        recording = read_recording(scenario)
        for case in cases:
            asked = apis[case.api]
            names = different_by(recording, case)
            asked.requests[case.version] += 1
            asked.refused += any(error_codes(recording.outcomes[case.key].answer(case)))
            asked.different += bool(names)
            asked.differences |= names
    return dict(sorted(apis.items()))


def different_by(recording: Recording, case: Case) -> set[str]:
    """Return the names of the differences on purpose that change the answer to a case."""
    concerned = [difference for difference in DIFFERENCES if re.fullmatch(difference.cases, case.key)]
    if not concerned:
        return set()
    recorded = recording.outcomes[case.key]
    answer = recorded.answer(case)
    theirs = Normaliser(recording.addresses, recording.topic_ids, recording.tokens)
    normal = recorded.ended if answer is None else theirs.normal(case, answer)
    return {difference.name for difference in concerned if difference.adapt(case, normal) != normal}


def counts(apis: dict[str, Asked]) -> Iterator[str]:
    requests = sum(asked.requests.total() for asked in apis.values())
    secured = sum(len(cases) for cases in SECURED.values())
    different = sum(asked.different for asked in apis.values())
    text = (
        f"The reference is a real Apache Kafka {KAFKA_VERSION} in ZooKeeper mode. {requests:,} requests were sent to "
        "its controller, and `tests/conformance/recordings/` keeps its responses. The requests cover every version "
        f"of {len(apis)} APIs, all of their checks and the order of these, batches, timeouts, topic names and topic "
        f"ids. {secured:,} of them were sent to a cluster with SASL and an authorizer, by users with and without "
        f"ACLs: `recordings/secured/`. {different} are answered otherwise by us on purpose, all others as by Kafka."
    )
    yield from textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def table(apis: dict[str, Asked]) -> Iterator[str]:
    yield "| API | requests in each version | all | refused by Kafka | answered otherwise by us | why |"
    yield "|---|---|---|---|---|---|"
    for api, asked in apis.items():
        versions = ", ".join(f"v{version}: {number}" for version, number in sorted(asked.requests.items()))
        names = ", ".join(f"[{name}](#{name})" for name in sorted(asked.differences))
        yield f"| {api} | {versions} | {asked.requests.total()} | {asked.refused} | {asked.different} | {names} |"


def filled(document: str) -> str:
    """The document with its numbers as they should be."""
    apis = asked_of_kafka()
    for name, lines in {"counts": counts(apis), "table": table(apis)}.items():
        before, _, rest = document.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        document = "\n".join([f"{before}<!-- {name} -->", *lines, f"{end}{after}"])
    return document


if __name__ == "__main__":
    DOCUMENT.write_text(filled(DOCUMENT.read_text()))
