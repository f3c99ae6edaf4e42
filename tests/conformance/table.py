"""The tables of docs/conformance.md: `python -m tests.conformance.table` puts every scenario to a
real Kafka and to ours, and writes them.

It writes the state that Kafka was left in, too, beside the recordings of its answers, and fails if
a difference has no name.
"""

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.beside import Both, Compared, running_both
from tests.conformance.case import Case
from tests.conformance.cases.acl_requests import ADMIN
from tests.conformance.scenario import KAFKA_SETTINGS, SCENARIOS, SECURED, SECURED_SETTINGS, login
from tests.conformance.state import State, write_changes
from tests.support.kafka import KAFKA_VERSION

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
WIDTH = 100

Key = tuple[str, int]
"""An API and a version of it."""


@dataclass
class Row:
    """The requests in one version of an API, and how often both were the same."""

    requests: int = 0
    code: int = 0
    text: int = 0
    state: int = 0
    differences: set[str] = field(default_factory=set)

    def add(self, compared: Compared) -> None:
        self.requests += 1
        self.code += not compared.answer
        self.text += not compared.text
        self.state += not compared.state
        self.differences |= compared.names


def put_all(both: Both, scenarios: Mapping[str, Sequence[Case]], rows: dict[Key, Row]) -> Iterator[str]:
    """Put all scenarios to both, count, and yield every difference without a name."""
    yield from (f"at the beginning: {line}" for line in both.begin())
    before: State = {}
    for name, cases in scenarios.items():
        sys.stdout.write(f"{name}: {len(cases)} requests\n")
        sys.stdout.flush()
        for case in cases:
            compared = both.put(case)
            rows[case.api, case.version].add(compared)
            yield from (f"{name} {case.key} {line}" for line in compared.unnamed)
        write_changes(name, before, both.state)
        before = both.state


def counts(rows: Mapping[Key, Row]) -> Iterator[str]:
    total = Row()
    for row in rows.values():
        total.requests += row.requests
        total.code += row.code
        total.text += row.text
        total.state += row.state
    secured = sum(len(cases) for cases in SECURED.values())
    text = (
        f"The reference is a real Apache Kafka {KAFKA_VERSION} in ZooKeeper mode. {total.requests:,} requests in every "
        f"version of {len({api for api, _ in rows})} APIs were put to its controller and to ours. {total.code:,} were "
        f"answered with the same codes and fields, {total.text:,} with the same texts, and {total.state:,} left the "
        f"same state behind; each other one differs on purpose. {secured:,} of them were sent to a cluster with SASL "
        "and an authorizer, by users with and without ACLs."
    )
    yield from textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def table(rows: Mapping[Key, Row]) -> Iterator[str]:
    yield "| API | version | requests | equal in code | equal in text | equal in state | differences |"
    yield "|---|---|---|---|---|---|---|"
    for (api, version), row in sorted(rows.items()):
        names = ", ".join(f"[{name}](#{name})" for name in sorted(row.differences))
        yield f"| {api} | {version} | {row.requests} | {row.code} | {row.text} | {row.state} | {names} |"


def filled(document: str, parts: Mapping[str, Iterable[str]]) -> str:
    """The document with these lines between its marks."""
    for name, lines in parts.items():
        before, _, rest = document.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        document = "\n".join([f"{before}<!-- {name} -->", *lines, f"{end}{after}"])
    return document


def main() -> int:
    rows: dict[Key, Row] = defaultdict(Row)
    with running_both() as both:
        unnamed = list(put_all(both, SCENARIOS, rows))
    with running_both(KAFKA_SETTINGS, SECURED_SETTINGS, login(ADMIN)) as both:
        unnamed += put_all(both, SECURED, rows)
    DOCUMENT.write_text(filled(DOCUMENT.read_text(), {"counts": counts(rows), "table": table(rows)}))
    for line in unnamed:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{len(unnamed)} differences have no name.\n" if unnamed else "Every difference has a name.\n")
    return int(bool(unnamed))


if __name__ == "__main__":
    sys.exit(main())
