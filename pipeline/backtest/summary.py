"""The results of a back-test in numbers and tables, for the terminal, the page and programs alike.

It is made of what was counted and of nothing else, so that the same history and the same candidate
give the same bytes, on whatever machine.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from typing import Any

import msgspec

from ...audit.event import NOT_AUTHENTICATED
from ..page.files import iso, plain_table
from ..page.tables import Column, ReportTable
from ..page.tables import ValueKind as Holds
from .candidate import LoadedCandidate
from .results import DENIED_BY, Results
from .running import BacktestRequest
from .tally import Tally
from .verdicts import DifferenceKind

TITLES: Mapping[DifferenceKind, str] = {
    DifferenceKind.NEWLY_DENIED: "newly denied",
    DifferenceKind.NEWLY_ALLOWED: "newly allowed",
    DifferenceKind.OTHER_MESSAGE: "another message",
    DifferenceKind.BROKEN: "candidate fails",
    DifferenceKind.TIMED_OUT: "candidate too slow",
    DifferenceKind.RECORDED_BROKEN: "policy failed then",
    DifferenceKind.MOOT: "moot",
}
MOST_ROWS = 10_000
"""How many rows of a table the JSON document has at most."""
NO_RULE = "(no rule)"
NO_POLICY = "(none)"

Counted = Mapping[str, Any]
_name = partial(Column, kind=Holds.NAME)
_count = partial(Column, kind=Holds.COUNT, sums=True)


class BacktestSummary(msgspec.Struct, frozen=True):
    candidate: Counted
    history: Counted
    """The history that the candidate was tried on, and what it lacks."""
    totals: Counted
    existing: Counted
    """How many topics there are today, and how many of them the candidate refuses."""
    tables: tuple[ReportTable, ...]

    @property
    def document(self) -> Counted:
        parts = {name: getattr(self, name) for name in ("candidate", "history", "totals", "existing")}
        return parts | {"tables": [plain_table(table.cut(MOST_ROWS)) for table in self.tables]}

    @property
    def differences(self) -> int:
        return sum(self.totals["differences"].values())

    def fails_on(self, what: str) -> int:
        """Return how many there are of what the exit code may depend on."""
        other = {
            "changed": self.differences,
            "errors": self.totals["errors"] + self.totals["rule_errors"],
            "existing": self.existing["refused"],
        }
        number: int = (other | self.totals["differences"])[what]
        return number


def summarize(
    found: LoadedCandidate, request: BacktestRequest, clusters: Iterable[str], results: Results
) -> BacktestSummary:
    tally, candidate, window = results.tally, found.candidate, request.window
    in_force = list(tally.beginning("in-force"))
    refused = list(tally.beginning("refused"))
    tried = {
        "name": candidate.name,
        "policy_hash": candidate.policy_hash,
        "timeout_ms": candidate.timeout_ms,
        # decisions for which the log says that this very policy was asked
        "in_force": sum(number for (_, digest), number in in_force if digest and digest == candidate.policy_hash),
        "suspicions": list(found.nondeterministic_calls),
        "reads": list(found.reads),
        "deeds": sorted(tally.side_effects),
        "asked_again": tally.of("asked-again"),
        "unsteady": tally.of("note", "unsteady"),
        # where it said something else when it was asked again
        "notes": tally.notes.get("unsteady", []),
    }
    history = {
        "clusters": sorted(clusters),
        "since": None if window.since_ms is None else iso(window.since_ms * 1000),
        "until": None if window.until_ms is None else iso(window.until_ms * 1000),
        "counterfactual": request.counterfactual,
        "asked": tally.of("asked"),
        # requests of these that passed whatever a policy said of them
        "observed": sum(number for _, number in tally.beginning("observed")),
        # decisions that were not the policy's to make, by the error's name
        "not_asked": tally.by("not-asked"),
        # decisions of operations that only later versions know
        "unknown_operations": tally.by("unknown-operation"),
        # decisions about brokers and the like, which are not replayed
        "other_resources": _any_of(tally, "other-resource"),
        # decisions that neither policy judges, such as those about ACLs, by operation
        "unjudged": _any_of(tally, "unjudged"),
        # events that no file had
        "missing": tally.of("missing"),
        # requests that were put to the candidate, or moot, while not all topics were known
        "uncertain": tally.of("uncertain"),
        # configs whose values the log does not show, and in how many questions they were
        "hidden": tally.by("hidden"),
        "hidden_differences": tally.of("hidden-differences"),
        "notes": {about: notes for about, notes in sorted(tally.notes.items()) if about != "unsteady"},
        # how many notes there would be
        "counts": {about: number for about, number in tally.by("note").items() if about != "unsteady"},
    }
    totals = {
        "same": tally.of("label", "same"),
        "differences": {kind.value: tally.of("label", kind.value) for kind in DifferenceKind},
        # what was recorded, what the candidate says, how often
        "verdicts": [(*keys, number) for keys, number in tally.beginning("verdicts")],
        # verdicts that are none: the candidate failed or took too long, whatever was recorded
        "errors": tally.of("errors"),
        # rules that could not be evaluated, and therefore denied
        "rule_errors": sum(tally.by("rule-error", "candidate").values()),
        # with --counterfactual: why; and topics that would be `missing`, `more` or `otherwise`
        "moot": tally.by("moot"),
        "parted": tally.by("parted"),
    }
    existing = {
        "topics": tally.of("existing"),
        "refused": sum(number for _, number in refused),
        # cluster, rule, how many
        "by_rule": [(*keys, number) for keys, number in refused],
    }
    return BacktestSummary(tried, history, totals, existing, tuple(_tables(tally, found)))


def _any_of(tally: Tally, about: str) -> dict[str, int]:
    return {name: number for name, number in tally.by(about).items() if number}


def _tables(tally: Tally, found: LoadedCandidate) -> Iterator[ReportTable]:
    """Yield the tables of names with differences, of what is newly denied on each day, of rules,
    those of the candidate that found nothing included, and of the policies that were in force.
    """
    yield _by(tally, "rule", "Rules that make the difference", NO_RULE, asked=False)
    yield _by(tally, "principal", "Principals", NOT_AUTHENTICATED)
    yield _by(tally, "topic", "Topics", asked=False)
    yield _by(tally, "operation", "Operations")
    yield _by(tally, "day", "Days")
    for about, nameless in (("rule", NO_RULE), ("principal", NOT_AUTHENTICATED)):
        columns = _name("day", "Day"), _name(about, about.capitalize()), _count("newly_denied", "Newly denied")
        of_days = tally.beginning(f"{DENIED_BY}{about}")
        denied = sorted((_day(day), name or nameless, number) for (day, name), number in of_days)
        yield ReportTable(f"{DENIED_BY}{about}", f"Newly denied, by {about} and day", columns, denied)
    rules = _name("rule", "Rule"), Column("action", "Action", Holds.TEXT)
    said = _count("recorded", "Findings then"), _count("candidate", "Findings of the candidate")
    counts: dict[tuple[str, ...], Counter[str]] = {rule: Counter() for rule in found.rules}
    counts.update(_counts(tally, "finding"))
    most_first = sorted(counts, key=lambda rule: (-counts[rule]["candidate"], -counts[rule]["recorded"], rule))
    findings = [(*rule, counts[rule]["recorded"], counts[rule]["candidate"]) for rule in most_first]
    yield ReportTable("findings", "Objections of rules to requests", (*rules, *said), findings)
    of_policy = _name("policy", "Policy then"), _name("policy_hash", "SHA-256")
    numbers = _count("requests", "Requests"), _count("observed", "Not enforced")
    in_force, observed = (dict(tally.beginning(about)) for about in ("in-force", "observed"))
    both = {policy: in_force.get(policy, 0) + observed.get(policy, 0) for policy in sorted({*in_force, *observed})}
    policies = [
        (policy[0] or NO_POLICY, policy[1], number, observed.get(policy, 0))
        for policy, number in sorted(both.items(), key=lambda found: -found[1])
    ]
    yield ReportTable("in_force", "Policies in force then", (*of_policy, *numbers), policies)


def _by(tally: Tally, name: str, title: str, nameless: str = "", *, asked: bool = True) -> ReportTable:
    """Make a table of the names with differences, most first; or of all days."""
    kinds = [kind for kind in DifferenceKind if tally.of("label", kind.value)]
    columns = [_name(name, name.capitalize())]
    columns += [_count(kind.value.replace("-", "_"), TITLES[kind].capitalize()) for kind in kinds]
    columns += [_count("requests", "Requests")] if asked else []
    rows = list[tuple[Any, ...]]()
    for (each,), found in _counts(tally, name).items():
        label = _day(each) if name == "day" else each or nameless
        rows.append((label, *(found[kind.value] for kind in kinds), *([found.total()] if asked else [])))
    if name == "day":
        return ReportTable("by_day", title, tuple(columns), sorted(rows))
    kinds_end = len(kinds) + 1
    differing = [row for row in rows if any(row[1:kinds_end])]
    differing.sort(key=lambda row: (-sum(row[1:kinds_end]), row))
    return ReportTable(f"by_{name}", title, tuple(columns), differing)


def _counts(tally: Tally, about: str) -> Mapping[tuple[str, ...], Counter[str]]:
    counts = defaultdict[tuple[str, ...], Counter[str]](Counter)
    for (what, *names), number in tally.beginning(about):
        counts[tuple(names)][what] = number
    return counts


def _day(number: str) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=int(number))).isoformat()
    except OverflowError:
        return "beyond all years"
