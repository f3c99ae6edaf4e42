"""A lot of consecutive events, replayed: where columns tell what the candidate says of a request,
it is compared and counted in columns, and the rest is put to the candidate.

Rule: the result is the same as if each event were put to the candidate. Each event is applied to
the topics in its order, so what the candidate is asked, and what contradicts what, is the same as
well.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import RuleFinding
from ...policies.rules.vocabulary import ADMIN
from .encoded import Encoded, Flags, Numbers, flags, within
from .prefilter import UNKNOWN, Prefilter
from .reading import decoded, lines_of, numbers_of
from .replaying import DAY_MS, Backtest, Settled, Window
from .verdicts import ALLOWED, NO_POLICY, VIOLATED, Difference, Opinion, Outcome, difference_between

CHANGES = pa.array(["removal", "observed"])
"""Events that change a topic, and that no policy was asked about."""
COMPARED = ("decision", "rule", "policy_message")
COUNTED = ("principal", "operation", "day", "policy", "policy_hash", "outcome")
COLUMNS = frozenset(
    {
        *COMPARED,
        *COUNTED,
        "findings",
        "time",
        "kind",
        "resource",
        "validate_only",
        "elements",
        "effect",
        "asked_ms",
        "error",
    }
    - {"day", "outcome"}
)


class Sieve:
    """Puts a candidate's opinions on the events of some time beside the recorded ones."""

    def __init__(self, prefilter: Prefilter | None, window: Window) -> None:
        self._prefilter = prefilter
        self._window = window
        self.columns = () if prefilter is None else tuple(sorted(COLUMNS.union(prefilter.columns)))
        """What it needs, for `encoded.projection`."""

    def differences(self, backtest: Backtest, table: pa.Table) -> Iterator[Difference]:
        """Put the next events to a candidate, and yield where it differs. Raises
        UnreadableTableError.
        """
        if self._prefilter is None:
            fed = (backtest.feed(decoded(line), line) for line in lines_of(table))
            yield from (difference for difference in fed if difference is not None)
            return
        lot = _Lot(self._prefilter, table, self._window)
        is_light = lot.is_light
        rows = zip(lines_of(table), is_light.tolist(), lot.outcomes.tolist(), lot.doubts.tolist(), strict=True)
        for number, (line, may_be_carried, outcome, doubts) in enumerate(rows):
            if may_be_carried and backtest.carries(line):
                difference = None if outcome == UNKNOWN else backtest.settled(lot.outcome[outcome], line)
            else:
                is_light[number] = False
                difference = backtest.feed(decoded(line), line, self._prefilter.judge(doubts))
            if difference is not None:
                yield difference
        backtest.count(lot.settled(is_light), lot.unasked(is_light))


class _Lot:
    """What columns tell of consecutive events."""

    def __init__(self, prefilter: Prefilter, table: pa.Table, window: Window) -> None:
        self._encoded = encoded = Encoded(table)
        opinions, self.doubts = prefilter.sift(table, encoded)
        times = numbers_of(table, "time") // 1000
        is_within, is_plain = within(times, window), _plain(table)
        self._is_unasked = is_plain & is_within & _unasked(table)
        self.outcomes = np.full(table.num_rows, UNKNOWN)
        """The numbers of the outcomes of requests that are settled if the topic was as the event
        says.
        """
        rows = np.flatnonzero(is_plain & is_within & (opinions != UNKNOWN) & _comparable(table))
        self.outcome, self.outcomes[rows] = _outcomes(encoded, table, rows, prefilter.opinions, opinions[rows])
        self._is_settled = self.outcomes != UNKNOWN
        self.is_light = self._is_settled | self._is_unasked | (is_plain & ~is_within)
        """Which events need no more than to be carried."""
        self.is_light |= flags(pc.is_in(table.column("kind"), CHANGES))
        encoded.add("day", times // DAY_MS)
        encoded.add("outcome", self.outcomes)

    def settled(self, carried: Flags) -> Iterator[tuple[Settled, int]]:
        """Count requests that are settled, among those that were carried."""
        for (principal, operation, day, policy, policy_hash, outcome), count in self._counted(
            COUNTED, self._is_settled & carried
        ):
            yield (
                Settled(principal or "", operation, day, policy or "", policy_hash or "", self.outcome[outcome]),
                count,
            )

    def unasked(self, carried: Flags) -> Iterator[tuple[str, int]]:
        """Count decisions that no policy was asked about, by their errors."""
        for (error,), count in self._counted(("error",), self._is_unasked & carried):
            yield error, count

    def _counted(self, names: Sequence[str], wanted: Flags) -> Iterator[tuple[tuple[Any, ...], int]]:
        values, which = self._encoded.combinations(names, np.flatnonzero(wanted))
        return zip(values, np.bincount(which, minlength=len(values)).tolist(), strict=True)


def _plain(table: pa.Table) -> Flags:
    """Return which events are decisions about topics that did what they say. A validated element
    changes what later elements of its request see.
    """
    is_plain = flags(pc.equal(table.column("kind"), "decision")) & flags(pc.equal(table.column("resource"), "topic"))
    is_plain &= ~flags(table.column("validate_only")) | flags(pc.equal(table.column("elements"), 1))
    return is_plain & flags(pc.not_equal(table.column("effect"), "unknown"))


def _unasked(table: pa.Table) -> Flags:
    """Return which decisions about topics are none that a policy was asked about."""
    is_administration = flags(pc.is_in(table.column("operation"), pa.array(sorted(ADMIN))))
    return flags(pc.is_null(table.column("asked_ms"))) & ~is_administration


def _comparable(table: pa.Table) -> Flags:
    """Return which recorded opinions are compared without a look at why a policy failed."""
    decision = table.column("decision")
    return flags(pc.is_null(decision)) | flags(pc.is_in(decision, pa.array([ALLOWED, VIOLATED])))


def _outcomes(
    encoded: Encoded, table: pa.Table, rows: Numbers, opinions: Sequence[Opinion], now: Numbers
) -> tuple[list[Outcome], Numbers]:
    """Return the different outcomes in these rows, and for each row the number of its own, given
    the numbers of the candidate's opinions.
    """
    then, recorded = _recorded(encoded, table, rows)
    pairs, which = np.unique(recorded * len(opinions) + now, return_inverse=True)
    outcomes = []
    for pair in pairs.tolist():
        number, of_candidate = divmod(pair, len(opinions))
        one, other = then[number], opinions[of_candidate]
        outcomes.append(Outcome(one, other, difference_between(one, other)))
    return outcomes, which


def _recorded(encoded: Encoded, table: pa.Table, rows: Numbers) -> tuple[list[Opinion], Numbers]:
    """Return the different recorded opinions in these rows, and for each row the number of its
    own.
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
        decision, rule, message = values[number]
        opinions.append(NO_POLICY if decision is None else Opinion(decision, rule, message, known[of_findings]))
    return opinions, which
