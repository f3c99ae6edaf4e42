"""A lot of consecutive events, replayed: what certainly passes is counted in columns, and the rest
is put to the candidate.

Rule: the result is the same as if each event were put to the candidate. Each event is applied to
the topics in its order, so what the candidate is asked, and what contradicts what, is the same as
well.
"""

from collections.abc import Iterator, Mapping
from itertools import starmap

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .encoded import Encoded, Flags, flags, within
from .prefilter import Prefilter
from .reading import decoded, lines_of, numbers_of
from .replaying import DAY_MS, Backtest, Passed, Window
from .verdicts import Difference

CHANGES = pa.array(["removal", "observed"])
"""Events that change a topic, and that no policy was asked about."""
COUNTED = ("principal", "operation", "policy", "policy_hash")


class Sieve:
    """Finds the events that certainly pass a candidate's rules, among those of some time."""

    def __init__(self, prefilter: Prefilter | None, window: Window) -> None:
        self._prefilter = prefilter
        self._window = window
        self.columns = () if prefilter is None else (*prefilter.columns, *COUNTED, "time")
        """What it needs, for `encoded.projection`."""

    def differences(self, backtest: Backtest, table: pa.Table) -> Iterator[Difference]:
        """Put the next events to a candidate, and yield where it differs. Raises
        UnreadableTableError.
        """
        if self._prefilter is None:
            fed = (backtest.feed(decoded(line), line) for line in lines_of(table))
            yield from (difference for difference in fed if difference is not None)
            return
        certain, doubts = self._prefilter.sift(table)
        certain &= within(numbers_of(table, "time") // 1000, self._window)
        light = certain | flags(pc.is_in(table.column("kind"), CHANGES))
        rows = enumerate(zip(lines_of(table), light.tolist(), doubts.tolist(), strict=True))
        for number, (line, is_light, may_object) in rows:
            if is_light and backtest.carries(line):
                continue
            certain[number] = False
            if (difference := backtest.feed(decoded(line), line, self._prefilter.judge(may_object))) is not None:
                yield difference
        backtest.count(self._counted(table, certain))

    def _counted(self, table: pa.Table, certain: Flags) -> Mapping[Passed, int]:
        """Count events that passed, by what they have in common."""
        rows = np.flatnonzero(certain)
        if not len(rows):
            return {}
        days = pa.array(numbers_of(table, "time") // 1000 // DAY_MS)
        encoded = Encoded(table.append_column("day", days))
        values, which = encoded.combinations(("principal", "operation", "day", "policy", "policy_hash"), rows)
        counts = np.bincount(which, minlength=len(values)).tolist()
        found: dict[Passed, int] = {}
        for passed, count in zip(starmap(_passed, values), counts, strict=True):
            found[passed] = found.get(passed, 0) + count
        return found


def _passed(principal: str | None, operation: str, day: int, policy: str | None, policy_hash: str | None) -> Passed:
    return Passed(principal or "", operation, day, policy or "", policy_hash or "")
