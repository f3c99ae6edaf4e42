"""What came of a back-test, in numbers and lists: for the terminal, the page and programs alike.

Rule: made of what was counted and of nothing else, so that the same history and the same candidate
give the same bytes, on whatever machine.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta

import msgspec

from ...audit.event import NOT_AUTHENTICATED
from ..page.sheet import Column, Sheet, Value
from ..page.sheet import Kind as Holds
from .candidate import Found
from .results import Results
from .running import Wish
from .tally import Note, Tally
from .verdicts import Kind

CHANGES = (Kind.NEWLY_DENIED, Kind.NEWLY_ALLOWED, Kind.OTHER_MESSAGE)
ERRORS = (Kind.BROKEN, Kind.TIMED_OUT)
TITLES: Mapping[Kind, str] = {
    Kind.NEWLY_DENIED: "newly denied",
    Kind.NEWLY_ALLOWED: "newly allowed",
    Kind.OTHER_MESSAGE: "another message",
    Kind.BROKEN: "candidate fails",
    Kind.TIMED_OUT: "candidate too slow",
    Kind.RECORDED_BROKEN: "policy failed then",
    Kind.MOOT: "moot",
}
DENIED_BY = "denied_by_"
"""What the names of the tables over time begin with."""
NO_RULE = "(no rule)"
NO_POLICY = "(none)"


class Tried(msgspec.Struct, frozen=True):
    """The candidate that was tried."""

    name: str
    policy_hash: str
    timeout_ms: int
    in_force: int
    """Decisions for which the log says that this very policy was asked."""
    suspicions: list[str]
    reads: list[str]
    deeds: list[str]
    asked_again: int
    unsteady: int
    notes: list[Note]
    """Where it said something else when it was asked again."""


class History(msgspec.Struct, frozen=True):
    """The history that the candidate was tried on, and what that lacks."""

    clusters: list[str]
    since: str | None
    until: str | None
    counterfactual: bool
    asked: int
    not_asked: dict[str, int]
    """Decisions that were not the policy's to make, by the error's name."""
    unknown_operations: dict[str, int]
    """Decisions of operations that only later versions know, by operation."""
    other_resources: dict[str, int]
    """Decisions about brokers and the like, which are not replayed."""
    unjudged: dict[str, int]
    """Decisions that neither policy judges, such as those about ACLs, by operation."""
    missing: int
    """Events that no file had."""
    uncertain: int
    """Requests that were put to the candidate, or moot, while not all topics were known."""
    hidden: dict[str, int]
    """Configs whose values the log does not show, and in how many questions they were."""
    hidden_differences: int
    notes: dict[str, list[Note]]
    counts: dict[str, int]
    """How many notes there would be of each kind."""


class Totals(msgspec.Struct, frozen=True):
    same: int
    differences: dict[str, int]
    """By kind; all kinds are there."""
    verdicts: list[tuple[str, str, int]]
    """What was recorded, what the candidate says, how often."""
    errors: int
    """Verdicts that are none: the candidate failed or took too long, whatever was recorded."""
    rule_errors: int
    """Rules that could not be evaluated, and therefore denied."""
    moot: dict[str, int]
    """With --counterfactual: why."""
    parted: dict[str, int]
    """With --counterfactual: topics that would be `missing`, `more` or `otherwise` at the end of
    the period.
    """


class Existing(msgspec.Struct, frozen=True):
    """What the candidate says of the topics of today."""

    topics: int
    refused: int
    by_rule: list[tuple[str, str, int]]
    """Cluster, rule, how many."""


class Summary(msgspec.Struct, frozen=True):
    candidate: Tried
    history: History
    totals: Totals
    existing: Existing
    sheets: tuple[Sheet, ...]
    """By rule, principal, topic, day and operation; what is newly denied on each day, by rule and
    principal; which rules found how much; and under which policies it was decided then.
    """

    @property
    def differences(self) -> int:
        return sum(self.totals.differences.values())

    def fails_on(self, what: str) -> int:
        """Return how many there are of what the exit code may depend on."""
        kinds = self.totals.differences
        return {
            "newly-denied": kinds[Kind.NEWLY_DENIED.value],
            "newly-allowed": kinds[Kind.NEWLY_ALLOWED.value],
            "changed": self.differences,
            "errors": self.totals.errors + self.totals.rule_errors,
            "existing": self.existing.refused,
        }[what]


def summarized(found: Found, wish: Wish, clusters: Iterable[str], results: Results) -> Summary:
    tally, candidate = results.tally, found.candidate
    labels = tally.by("label")
    in_force = [
        (keys, count) for keys, count in tally.beginning("in-force") if keys[1] == candidate.policy_hash and keys[1]
    ]
    tried = Tried(
        name=candidate.name,
        policy_hash=candidate.policy_hash,
        timeout_ms=candidate.timeout_ms,
        in_force=sum(count for _, count in in_force),
        suspicions=list(found.suspicions),
        reads=list(found.reads),
        deeds=sorted(tally.deeds),
        asked_again=tally.of("asked-again"),
        unsteady=tally.of("note", "unsteady"),
        notes=tally.notes.get("unsteady", []),
    )
    history = History(
        clusters=sorted(clusters),
        since=_moment(wish.window.since_ms),
        until=_moment(wish.window.until_ms),
        counterfactual=wish.counterfactual,
        asked=tally.of("asked"),
        not_asked=tally.by("not-asked"),
        unknown_operations=tally.by("unknown-operation"),
        other_resources={name: count for name, count in tally.by("other-resource").items() if count},
        unjudged={name: count for name, count in tally.by("unjudged").items() if count},
        missing=tally.of("missing"),
        uncertain=tally.of("uncertain"),
        hidden=tally.by("hidden"),
        hidden_differences=tally.of("hidden-differences"),
        notes={about: notes for about, notes in sorted(tally.notes.items()) if about != "unsteady"},
        counts={about: count for about, count in tally.by("note").items() if about != "unsteady"},
    )
    totals = Totals(
        same=labels.get("same", 0),
        differences={kind.value: labels.get(kind.value, 0) for kind in Kind},
        verdicts=[(keys[0], keys[1], count) for keys, count in tally.beginning("verdicts")],
        errors=tally.of("errors"),
        rule_errors=sum(count for _, count in tally.beginning("rule-error", "candidate")),
        moot=tally.by("moot"),
        parted=tally.by("parted"),
    )
    by_rule = [(cluster, rule, count) for (cluster, rule), count in sorted(results.refused_by_rule.items())]
    existing = Existing(tally.of("existing"), sum(results.refused_by_rule.values()), by_rule)
    return Summary(tried, history, totals, existing, tuple(_sheets(results)))


# ------------------------------------------------------------------ tables


def _sheets(results: Results) -> Iterable[Sheet]:
    tally = results.tally
    kinds = [kind for kind in Kind if tally.of("label", kind.value)]
    yield _by(kinds, "rule", "Rules that make the difference", _of(results, "rule", NO_RULE))
    yield _by(kinds, "principal", "Principals", _counted(tally, "principal", NOT_AUTHENTICATED), asked=True)
    yield _by(kinds, "topic", "Topics", _of(results, "topic", ""))
    yield _by(kinds, "operation", "Operations", _counted(tally, "operation", ""), asked=True)
    days = {_day(int(day)): counts for day, counts in _counted(tally, "day", "").items()}
    yield _by(kinds, "day", "Days", days, asked=True, in_order=True)
    yield _denied(results, "rule", "Newly denied, by rule and day", NO_RULE)
    yield _denied(results, "principal", "Newly denied, by principal and day", NOT_AUTHENTICATED)
    yield _rules(results)
    columns = (
        Column("policy", "Policy then", Holds.NAME),
        Column("policy_hash", "SHA-256", Holds.NAME),
        Column("requests", "Requests", Holds.COUNT, sums=True),
    )
    in_force = sorted(tally.beginning("in-force"), key=lambda found: (-found[1], found[0]))
    rows = [(name or NO_POLICY, digest, count) for (name, digest), count in in_force]
    yield Sheet("in_force", "Policies in force then", columns, rows)


Counts = Mapping[str, Mapping[str, int]]
"""By name, and then by kind."""


def _by(
    kinds: list[Kind], name: str, title: str, counts: Counts, *, asked: bool = False, in_order: bool = False
) -> Sheet:
    """Make a table of names with differences, most first, or of all names `in_order`."""
    columns = [Column(name, name.capitalize(), Holds.NAME)]
    columns += [
        Column(kind.value.replace("-", "_"), TITLES[kind].capitalize(), Holds.COUNT, sums=True) for kind in kinds
    ]
    if asked:
        columns.append(Column("requests", "Requests", Holds.COUNT, sums=True))
    rows: list[tuple[int, tuple[Value, ...]]] = []
    for each, found in counts.items():
        differences = [found.get(kind.value, 0) for kind in kinds]
        if any(differences) or in_order:
            row: tuple[Value, ...] = (each, *differences, *([sum(found.values())] if asked else []))
            rows.append((0 if in_order else -sum(differences), row))
    return Sheet(f"by_{name}", title, tuple(columns), [row for _, row in sorted(rows)])


def _denied(results: Results, about: str, title: str, nameless: str) -> Sheet:
    """Make a table of what is newly denied on each day; the page draws it."""
    columns = (
        Column("day", "Day", Holds.NAME),
        Column(about, about.capitalize(), Holds.NAME),
        Column("newly_denied", TITLES[Kind.NEWLY_DENIED].capitalize(), Holds.COUNT, sums=True),
    )
    rows = [
        (_day(day), name or nameless, count) for (which, day, name), count in results.denied.items() if which == about
    ]
    return Sheet(f"{DENIED_BY}{about}", title, columns, sorted(rows))


def _of(results: Results, about: str, nameless: str) -> Counts:
    counts: dict[str, dict[str, int]] = {}
    for (which, name, kind), count in results.counts.items():
        if which == about:
            counts.setdefault(name or nameless, {})[kind] = count
    return counts


def _counted(tally: Tally, about: str, nameless: str) -> Counts:
    counts: dict[str, dict[str, int]] = {}
    for (kind, name), count in tally.beginning(about):
        counts.setdefault(name or nameless, {})[kind] = count
    return counts


def _rules(results: Results) -> Sheet:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for (which, rule, action), count in results.tally.beginning("finding"):
        found.setdefault((rule, action), {})[which] = count
    columns = (
        Column("rule", "Rule", Holds.NAME),
        Column("action", "Action", Holds.TEXT),
        Column("recorded", "Findings then", Holds.COUNT, sums=True),
        Column("candidate", "Findings of the candidate", Holds.COUNT, sums=True),
    )
    most_first = sorted(
        found, key=lambda rule: (-found[rule].get("candidate", 0), -found[rule].get("recorded", 0), rule)
    )
    rows = [(*rule, found[rule].get("recorded", 0), found[rule].get("candidate", 0)) for rule in most_first]
    return Sheet("findings", "What rules had against requests", columns, rows)


def _day(number: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
    except OverflowError:
        return "beyond all years"


def _moment(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
