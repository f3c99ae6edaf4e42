"""What a report is about: a stretch of time, some clusters, and their events.

Rule: time selects events, and orders none. What was decided has one outcome, which all questions
share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ..page.sheet import as_datetime
from ..periods import Axis, Spread, axis, worth_showing
from ..tables import Table, Tables


class NothingSelectedError(Exception):
    """There is nothing to report on; the message is a sentence that says why."""


@dataclass(frozen=True)
class ClusterSpread:
    """Which times the events of one cluster cover."""

    cluster_id: str
    events: int
    decisions: int
    first: int
    last: int


class Selection:
    """The events that a report is about. Times are microseconds since 1970: `since` is within,
    `until` is not. No clusters means all.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        *,
        since: int | None = None,
        until: int | None = None,
        clusters: Sequence[str] = (),
    ) -> None:
        self.spark = spark
        self.since = since
        self.until = until
        self.clusters = tuple(dict.fromkeys(clusters))
        self._tables = tables

    def table(self, table: Table) -> DataFrame:
        """Return the rows of a table that belong to the clusters, or to none."""
        rows = self._tables.read(self.spark, table)
        if self.clusters and "cluster_id" in rows.columns:
            rows = rows.where(f.col("cluster_id").isNull() | f.col("cluster_id").isin(*self.clusters))
        return rows

    @cached_property
    def events(self) -> DataFrame:
        """The events of the period; a filter by `day` spares the reading of all other folders."""
        rows = self.table(Table.EVENTS)
        if self.since is not None:
            rows = rows.where((f.col("time") >= _time(self.since)) & (f.col("day") >= _day(self.since)))
        if self.until is not None:
            rows = rows.where((f.col("time") < _time(self.until)) & (f.col("day") <= _day(self.until)))
        return rows

    @cached_property
    def decisions(self) -> DataFrame:
        """The decisions, with `outcome`, `way` (`local`, `forwarded`, `unknown`), `step` on the
        axis, and `blamed`: the rule, or else the policy.
        """
        way = f.when(f.col("received_node") == -1, "unknown")
        return self.events.where(f.col("kind") == "decision").withColumns(
            {
                "outcome": _outcome(),
                "way": way.when(f.col("received_node") == f.col("decided_node"), "local").otherwise("forwarded"),
                "step": self.axis.column(f.col("time")),
                "blamed": f.when(f.col("rule") != "", f.col("rule")).otherwise(f.col("policy")),
            }
        )

    # ------------------------------------------------------------------ what there is

    @cached_property
    def _days(self) -> list[tuple[str, Spread, int]]:
        """Count events and decisions by cluster and day."""
        micros = f.unix_micros("time")
        rows = (
            self.events.groupBy("cluster_id", f.unix_date("day"))
            .agg(f.min(micros), f.max(micros), f.count("*"), f.count_if(f.col("kind") == "decision"))
            .collect()
        )
        return [(row[0], Spread(row[2], row[3], row[4]), row[5]) for row in rows]

    @cached_property
    def spreads(self) -> list[ClusterSpread]:
        """The spread of each cluster, in the order of their names."""
        found = []
        for cluster in sorted({name for name, _, _ in self._days}):
            days = [spread for name, spread, _ in self._days if name == cluster]
            decisions = sum(count for name, _, count in self._days if name == cluster)
            first, last = min(day.first for day in days), max(day.last for day in days)
            found.append(ClusterSpread(cluster, sum(day.count for day in days), decisions, first, last))
        return found

    @property
    def decided(self) -> int:
        """How many changes were asked for."""
        return sum(spread.decisions for spread in self.spreads)

    @cached_property
    def axis(self) -> Axis:
        """The axis of the time of nearly all events; a few whose clock was wrong may
        be beside it.
        """
        if not self._days:
            return axis(self.since or 0, self.since or 0)
        return axis(*worth_showing(spread for _, spread, _ in self._days))

    @property
    def beside_the_axis(self) -> int:
        """How many events no plot over time shows, to within a day."""
        first, last = self.axis.starts[0], self.axis.starts[-1]
        return sum(spread.count for _, spread, _ in self._days if spread.last < first or spread.first >= last)

    def check(self) -> None:
        """Raise NothingSelectedError for a cluster that is not there, or an end before the
        beginning.
        """
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise NothingSelectedError("--until has to be later than --since.")
        if self.clusters:
            names = self._tables.read(self.spark, Table.EVENTS).select("cluster_id").distinct().collect()
            known = sorted(row[0] for row in names)
            if missing := [name for name in self.clusters if name not in known]:
                raise NothingSelectedError(
                    f"There is no cluster {missing[0]} in {self._tables.folder}: there is {', '.join(known) or 'none'}."
                )


def _outcome() -> Column:
    return (
        f.when(f.col("effect") != "none", f.col("effect"))
        .when(f.col("error_code") == 0, "validated")
        .when(f.col("decision") == "violated", "refused")
        .when(f.col("decision") == "broken", "broken")
        .otherwise("error")
    )


def _time(microseconds: int) -> Column:
    return f.timestamp_micros(f.lit(microseconds))


def _day(microseconds: int) -> Column:
    when = as_datetime(microseconds)
    return f.lit(date.max if when is None else when.date())
