"""Replays batches of consecutive events, and compares and counts verdicts in columns. Where the
columns determine the candidate's verdict, the candidate is not asked.

The result is the same as if the candidate were asked about each event. Each event is applied to the
topics in its order, so questions and contradictions are the same, too.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import Effect, RuleFinding
from ...policies.rules.vocabulary import ADMIN
from ...policies.verdict import Verdict
from .encoded import Encoded, Flags, Numbers, flags, within
from .prefilter import COLUMNS, UNKNOWN, CodePrefilter, Prefilter, asked, prefilter_of
from .reading import decoded, lines_of, numbers_of
from .replaying import DAY_MS, Backtest, Settled, Window
from .sandbox import Sandbox
from .verdicts import NO_POLICY, ComparedVerdicts, Difference, Opinion, difference_between, opinion, passed

CHANGES = pa.array(["removal", "observed"])
"""Events that change a topic, and that no policy was asked about."""
COMPARED = ("decision", "rule", "policy_message", "enforced")
COUNTED = ("principal", "operation", "day", "policy", "policy_hash", "enforced", "outcome")
MADE = {"day", "outcome"}
READ = {
    *COLUMNS,
    *COMPARED,
    *COUNTED,
    "findings",
    "time",
    "validate_only",
    "elements",
    "effect",
    "error",
    "error_code",
} - MADE


def one_by_one(backtest: Backtest, table: pa.Table) -> Iterator[Difference]:
    """Put each of the next events to a candidate by itself. Raises UnreadableTableError."""
    for line in lines_of(table):
        if (difference := backtest.feed(decoded(line), line)) is not None:
            yield difference


class ColumnarReplay:
    """Compares a candidate's verdicts on the events of a window with the recorded ones."""

    def __init__(self, sandbox: Sandbox, window: Window) -> None:
        self._sandbox = sandbox
        self._window = window
        self._prefilter = prefilter_of(sandbox)
        self.columns = tuple(sorted(READ.union(self._prefilter.columns)))
        """The names of the columns that the replay needs, for `encoded.projection`."""

    def differences(self, backtest: Backtest, table: pa.Table) -> Iterator[Difference]:
        """Put the next events to a candidate, and yield where it differs. Raises
        UnreadableTableError.
        """
        lot = _Batch(self._sandbox, self._prefilter, table, self._window)
        ways = zip(lines_of(table), lot.is_light, lot.differs, lot.is_asked, strict=True)
        for number, (line, is_light, differs, is_asked) in enumerate(ways):
            if is_light and backtest.carries(line):
                difference = backtest.settled(lot.outcome(number), line) if differs else None
            else:
                judge = self._prefilter.judge(lot.doubts[number])
                if is_asked and (question := backtest.question(line)) is not None:
                    verdict = backtest.ask(question, judge)
                    outcome = lot.compared(number, verdict, self._sandbox.timed_out)
                    difference = backtest.answered(question, verdict, outcome, line)
                else:
                    lot.leaves_out(number)
                    difference = backtest.feed(decoded(line), line, judge)
            if difference is not None:
                yield difference
        backtest.count(lot.settled(), lot.unasked())


class _Batch:
    """Consecutive events in columns, and the outcomes of the requests among them."""

    def __init__(self, sandbox: Sandbox, prefilter: Prefilter | CodePrefilter, table: pa.Table, window: Window) -> None:
        self._names = sandbox.names
        self._encoded = encoded = Encoded(table)
        times, is_failed = numbers_of(table, "time") // 1000, _failed(table)
        is_asked = asked(table) & ~is_failed
        is_plain, is_within = _plain(table), within(times, window)
        self._is_unasked = is_plain & is_within & (is_failed | flags(pc.is_null(table.column("asked_ms"))))
        is_told = is_plain & is_within & is_asked
        self._then, recorded = _recorded(encoded, table, np.flatnonzero(is_told))
        opinions, doubts = prefilter.sift(table, encoded, is_asked)
        is_settled = is_told & (opinions != UNKNOWN)
        self._outcome: list[ComparedVerdicts] = []
        self._numbers: dict[object, int] = {}
        """The numbers of outcomes, by the recorded opinion and the candidate's verdict."""
        outcomes, differs = np.full(table.num_rows, UNKNOWN), np.zeros(table.num_rows, np.bool_)
        outcomes[is_settled] = self._outcomes_of(recorded[is_settled], opinions[is_settled], prefilter.opinions)
        differs[is_settled] = np.array([each.kind is not None for each in self._outcome], np.bool_)[
            outcomes[is_settled]
        ]
        is_light = is_settled | self._is_unasked | (is_plain & ~is_within)
        is_light |= flags(pc.is_in(table.column("kind"), CHANGES))
        self.is_light, self.differs = is_light.tolist(), differs.tolist()
        """Whether it is enough that `Backtest.carries` takes an event, and whether its two verdicts
        differ.
        """
        self.is_asked, self.doubts = (is_told & ~is_settled).tolist(), doubts.tolist()
        """Whether an event is a request that the candidate is asked about, and the bits of the
        rules that may object.
        """
        self._outcomes: list[int] = outcomes.tolist()
        self._recorded: list[int] = recorded.tolist()
        encoded.add("day", times // DAY_MS)

    def _outcomes_of(self, recorded: Numbers, now: Numbers, opinions: Sequence[Opinion]) -> Numbers:
        """Return the numbers of the outcomes of requests, given those of the recorded opinions and
        of the candidate's.
        """
        which: Numbers
        pairs, which = np.unique(recorded * len(opinions) + now, return_inverse=True)
        for number, of_candidate in (divmod(pair, len(opinions)) for pair in pairs.tolist()):
            then, other = self._then[number], opinions[of_candidate]
            self._outcome.append(ComparedVerdicts(then, other, difference_between(then, other)))
        return which

    def outcome(self, number: int) -> ComparedVerdicts:
        return self._outcome[self._outcomes[number]]

    def compared(self, number: int, verdict: Verdict, timed_out: bool) -> ComparedVerdicts:
        """Compare the candidate's verdict on an event with the recorded one."""
        of = self._recorded[number]
        is_plain = verdict.message is None and not verdict.findings
        key = of if is_plain else (of, verdict.decision, verdict.message, verdict.findings, timed_out)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._outcome)
            then, now = self._then[of], opinion(verdict, names=self._names)
            self._outcome.append(ComparedVerdicts(then, now, difference_between(then, now, timed_out=timed_out)))
        self._outcomes[number] = found
        return self._outcome[found]

    def leaves_out(self, number: int) -> None:
        """Leave an event out of the counts, because `Backtest.feed` counts it."""
        self._outcomes[number] = UNKNOWN
        self._is_unasked[number] = False

    def settled(self) -> Iterator[tuple[Settled, int]]:
        """Count requests by what they have come to."""
        outcomes = np.array(self._outcomes, np.int64)
        self._encoded.add("outcome", outcomes)
        for (principal, operation, day, policy, policy_hash, enforced, outcome), count in self._counted(
            COUNTED, outcomes != UNKNOWN
        ):
            named = principal or "", operation, day, policy or "", policy_hash or "", enforced is not False
            yield Settled(*named, self._outcome[outcome]), count

    def unasked(self) -> Iterator[tuple[str, int]]:
        """Count decisions that no policy was asked about, by their errors."""
        for (error,), count in self._counted(("error",), self._is_unasked):
            yield error, count

    def _counted(self, names: Sequence[str], wanted: Flags) -> Iterator[tuple[tuple[Any, ...], int]]:
        values, which = self._encoded.combinations(names, np.flatnonzero(wanted))
        return zip(values, np.bincount(which, minlength=len(values)).tolist(), strict=True)


def _plain(table: pa.Table) -> Flags:
    """Return which events are decisions that change topics, and did what they say. A validated
    element changes what later elements of its request see.
    """
    is_plain = flags(pc.equal(table.column("kind"), "decision")) & flags(pc.equal(table.column("resource"), "topic"))
    is_plain &= ~flags(pc.is_in(table.column("operation"), pa.array(sorted(ADMIN))))
    is_plain &= ~flags(table.column("validate_only")) | flags(pc.equal(table.column("elements"), 1))
    return is_plain & flags(pc.not_equal(table.column("effect"), "unknown"))


def _failed(table: pa.Table) -> Flags:
    is_failed = flags(pc.equal(table.column("enforced"), pa.scalar(False))) & flags(
        pc.equal(table.column("effect"), Effect.NONE.value)
    )
    return is_failed & flags(pc.not_equal(table.column("error_code"), 0))


def _recorded(encoded: Encoded, table: pa.Table, rows: Numbers) -> tuple[list[Opinion], Numbers]:
    """Return the different recorded opinions in these rows, and for each event the number of its
    own, or UNKNOWN.
    """
    values, which = encoded.combinations(COMPARED, rows)
    findings: dict[tuple[RuleFinding, ...], int] = {(): 0}
    column, numbers = table.column("findings"), np.zeros(len(rows), np.int64)
    found = np.flatnonzero(flags(pc.greater(pc.list_value_length(column), 0))[rows])
    for row, each in zip(found.tolist(), column.take(pa.array(rows[found])).to_pylist(), strict=True):
        numbers[row] = findings.setdefault(tuple(RuleFinding(**finding) for finding in each), len(findings))
    known = list(findings)
    different, which = np.unique(which * len(known) + numbers, return_inverse=True)
    opinions = []
    for number, of_findings in (divmod(each, len(known)) for each in different.tolist()):
        decision, rule, message, enforced = values[number]
        found_by_rules = known[of_findings]
        if decision is None:
            opinions.append(NO_POLICY)
        elif enforced is False:
            opinions.append(passed(found_by_rules))
        else:
            opinions.append(Opinion(decision, rule, message, found_by_rules))
    recorded = np.full(table.num_rows, UNKNOWN)
    recorded[rows] = which
    return opinions, recorded
