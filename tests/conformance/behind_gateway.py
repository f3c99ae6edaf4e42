"""Puts every scenario to a real Kafka through a gateway, and holds each answer against the one that
was recorded without it: `python -m tests.conformance.behind_gateway` writes the counts and the
table of docs/gateway.md.

It goes once through a gateway that only passes on, and once through one whose rules judge
everything and allow it. It fails if a difference has no name.
"""

import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.case import Case
from tests.conformance.cases.acl_requests import ADMIN
from tests.conformance.compare import Comparison, differing
from tests.conformance.differences import with_sorted_isr
from tests.conformance.differences_of_gateway import through_gateway
from tests.conformance.normal import Normaliser
from tests.conformance.recording import read_recording
from tests.conformance.scenario import (
    KAFKA_SETTINGS,
    SCENARIOS,
    SECURED,
    SILENCE_SECONDS,
    SILENT,
    Outcome,
    Performer,
    login,
)
from tests.conformance.table import WIDTH, filled
from tests.support.gateway import running_gateway
from tests.support.kafka import KafkaCluster, running_kafka
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.wire import Login, Wire

DOCUMENT = Path(__file__).parents[2] / "docs" / "gateway.md"
NODE = 1
"""The broker that is asked; it is Kafka's controller."""
EVERYTHING_IS_JUDGED = """
[[rule]]
name = "everything is judged"
operations = [
    "create", "alter", "reassign", "delete", "delete_records", "alter_broker", "alter_loggers", "admin",
]
condition = 'request.name != "nobody has this name"'
"""


@dataclass
class Row:
    """The requests of one API, and how many were answered through a gateway as without it."""

    requests: int = 0
    passed: int = 0
    judged: int = 0
    differences: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Answered:
    """A request that went through a gateway, compared with the recording."""

    case: Case
    differs: bool
    names: Collection[str]
    """The differences on purpose that concern it."""
    unnamed: Sequence[str]


class Through:
    """A gateway in front of a real Kafka, and its answers."""

    def __init__(self, addresses: Mapping[int, str], *, judged: bool) -> None:
        self._performer = Performer(addresses[NODE])
        self._normaliser = Normaliser(addresses, self._performer.topic_ids, self._performer.tokens)
        self._judged = judged

    def close(self) -> None:
        self._performer.close()

    def put(self, scenario: str, cases: Sequence[Case]) -> Iterator[Answered]:
        comparison = Comparison(read_recording(scenario), self._normaliser, to_the_letter=True)
        for case in cases:
            recorded = comparable(comparison.expected(case))
            _, expected = through_gateway(case, recorded, None, judged=self._judged)
            self._performer.silence_seconds = SILENCE_SECONDS if expected == SILENT else PATIENCE_SECONDS
            outcome = self._performer.perform(case, agrees(comparison, recorded))
            actual = comparable(comparison.actual(outcome))
            names, expected = through_gateway(case, recorded, actual, judged=self._judged)
            unnamed = [f"{scenario} {case.key} {line}" for line in differing(expected, actual)]
            yield Answered(case, actual != recorded, names, unnamed)


def agrees(comparison: Comparison, expected: Any) -> Callable[[Outcome], bool]:
    return lambda outcome: comparable(comparison.actual(outcome)) == expected


def comparable(answer: Any) -> Any:
    """Kafka throttles by the time that requests have cost it, its replicas come into the ISR in any
    order, and a disk has room.
    """
    if isinstance(answer, dict) and "throttle_time_ms" in answer:
        answer = {**answer, "throttle_time_ms": 0}
    return with_sorted_isr(without_room(answer))


def without_room(answer: Any) -> Any:
    if not isinstance(answer, dict) or not any("usable_bytes" in row for row in answer.get("results") or ()):
        return answer
    known = dict.fromkeys(("usable_bytes", "total_bytes"), "some")
    rows = [{**row, **known} if row["usable_bytes"] > 0 else row for row in answer["results"]]
    return {**answer, "results": rows}


@contextmanager
def running_through(
    settings: Mapping[str, str] | None = None, user: Login | None = None, *, judged: bool
) -> Iterator[Through]:
    """A fresh Kafka behind a gateway, which has a login of its own if Kafka asks for one."""
    with running_kafka(settings=settings, login=user) as kafka, in_front_of(kafka, user, judged=judged) as through:
        yield through


@contextmanager
def in_front_of(kafka: KafkaCluster, user: Login | None = None, *, judged: bool) -> Iterator[Through]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {**judging(Path(folder)), **logging_in(user)} if judged else logging_in(user)
        with running_gateway(kafka.bootstrap, settings=settings) as gateway:
            through = Through(addresses(gateway.bootstrap, user), judged=judged)
            try:
                yield through
            finally:
                through.close()


def judging(folder: Path) -> dict[str, str]:
    """The settings of a gateway that judges and records everything and allows it."""
    (folder / "rules.toml").write_text(EVERYTHING_IS_JUDGED)
    return {"policy.rules.files": f"{folder}/rules.toml", "audit.dir": f"{folder}/audit"}


def logging_in(user: Login | None) -> dict[str, str]:
    if user is None:
        return {}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "upstream.security.protocol": "SASL_PLAINTEXT",
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": f'{module} required username="{user[0]}" password="{user[1]}";',
    }


def addresses(bootstrap: str, user: Login | None) -> dict[int, str]:
    """The gateway's address for each broker, by id."""
    with Wire(bootstrap, login=user) as wire:
        brokers = wire.ask("Metadata", 1, {"topics": []})["brokers"]
    return {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in brokers}


def put_all(rows: dict[str, Row], *, judged: bool) -> Iterator[str]:
    """Put all scenarios through gateways, count, and yield every difference without a name."""
    with running_through(judged=judged) as through:
        yield from counted(through, SCENARIOS, rows, judged=judged)
    with running_through(KAFKA_SETTINGS, login(ADMIN), judged=judged) as through:
        yield from counted(through, SECURED, rows, judged=judged)


def counted(
    through: Through, scenarios: Mapping[str, Sequence[Case]], rows: dict[str, Row], *, judged: bool
) -> Iterator[str]:
    for name, cases in scenarios.items():
        sys.stdout.write(f"{name}: {len(cases)} requests\n")
        sys.stdout.flush()
        for answered in through.put(name, cases):
            row = rows[answered.case.api]
            row.requests += not judged
            row.passed += not judged and not answered.differs
            row.judged += judged and not answered.differs
            row.differences |= set(answered.names)
            yield from answered.unnamed


def counts(rows: Mapping[str, Row]) -> Iterator[str]:
    requests, passed, judged = (
        sum(numbers) for numbers in zip(*((row.requests, row.passed, row.judged) for row in rows.values()), strict=True)
    )
    text = (
        f"{requests:,} requests of {len(rows)} APIs were put through a gateway without rules, and {passed:,} of them "
        f"answered as without a gateway; through the one that judges everything, {judged:,} of the {requests:,} were."
    )
    yield from textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def table(rows: Mapping[str, Row]) -> Iterator[str]:
    yield "| API | requests | equal through the gateway | equal if everything is judged | differences |"
    yield "|---|---|---|---|---|"
    for api, row in sorted(rows.items()):
        names = ", ".join(f"`{name}`" for name in sorted(row.differences))
        yield f"| {api} | {row.requests} | {row.passed} | {row.judged} | {names} |"


def main() -> int:
    rows: dict[str, Row] = defaultdict(Row)
    unnamed = []
    for judged in (False, True):
        for line in put_all(rows, judged=judged):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            unnamed.append(line)
    DOCUMENT.write_text(filled(DOCUMENT.read_text(), {"counts": counts(rows), "conformance": table(rows)}))
    sys.stdout.write(f"{len(unnamed)} differences have no name.\n" if unnamed else "Every difference has a name.\n")
    return int(bool(unnamed))


if __name__ == "__main__":
    sys.exit(main())
