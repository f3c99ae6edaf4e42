"""The selection of a report: a period, some clusters, and their events. Times select events but do
not order them. Each decision has one outcome, which all questions share.
"""

from collections.abc import Sequence
from functools import cached_property

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from ..datafiles import DataFile, dataset
from ..delta import Tables
from ..failures import PipelineError
from ..periods import Axis, Spread, axis, worth_showing
from ..schemas import CLUSTER, Table
from .aggregates import COUNT, Aggregate, AggregateRequest, compute_aggregates, connection


class NothingSelectedError(PipelineError):
    """There is nothing to report on."""


_OUTCOME = """
    CASE WHEN effect != 'none' THEN effect WHEN error_code = 0 THEN 'validated' WHEN enforced = false THEN 'error'
    WHEN decision = 'violated' THEN 'refused' WHEN decision = 'broken' THEN 'broken' ELSE 'error' END
"""
DAYS = Aggregate(
    "days",
    ("cluster_id", "day"),
    {"first": "min(time)", "last": "max(time)", "events": COUNT, "decisions": "count_if(kind = 'decision')"},
)
COLUMNS = (
    "cluster_id epoch sequence time kind principal api operation software received_node decided_node resource name latency_us "
    "effect error_code error message decision enforced rule policy policy_message findings unjudged"
)


class Selection:
    """The events that a report is about, and the aggregates that were counted of them. Times are
    microseconds since 1970: `since` is within, `until` is not. No clusters means all.
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
        self.since, self.until, self.clusters = since, until, tuple(dict.fromkeys(clusters))
        self.aggregates = connection()
        self._spark, self._tables, self._snapshots = spark, tables.location, tables.snapshots()

    def count(self, *wanted: AggregateRequest) -> None:
        """Count what is wanted of the clusters' rows in one go. Raises OSError, Spark's errors."""
        compute_aggregates(
            self._spark, self._tables, [(each, self.files(each.table)) for each in wanted], self.aggregates
        )

    def files(self, table: Table) -> list[DataFile]:
        """Return a table's files that may have rows of the clusters and, of events, the period."""
        return [
            file
            for file in self._snapshots[table].files
            if (not self.clusters or file.cluster_id is None or file.cluster_id in self.clusters)
            and (table is not Table.EVENTS or self._may_hold(file))
        ]

    def load(self, *tables: Table) -> None:
        """Copy small tables to the aggregates: the rows of the clusters, and rows without one."""
        for table in tables:
            found = dataset(self._tables, table, self.files(table))
            if self.clusters:
                found = found.filter(ds.field(CLUSTER).is_null() | ds.field(CLUSTER).isin(self.clusters))
            self.aggregates.from_arrow(found.to_table()).create(table.value)

    def _may_hold(self, file: DataFile) -> bool:
        low, high = file.low.get("time"), file.high.get("time")
        is_later = self.until is not None and low is not None and int(low) >= self.until
        cut_off = 1000  # statistics of times may be cut off to milliseconds
        is_earlier = self.since is not None and high is not None and int(high) + cut_off <= self.since
        return not (is_later or is_earlier)

    def within(self, first: str, last: str) -> str:
        """Return the condition that some of the time from `first` to `last` is in the period."""
        limits = [f"{last} >= {self.since}"] if self.since is not None else []
        limits += [f"{first} < {self.until}"] if self.until is not None else []
        return " AND ".join(limits) or "true"

    @property
    def events(self) -> str:
        """The query for the events of the period, with their time in microseconds."""
        source = "(SELECT * REPLACE (epoch_us(time) AS time) FROM source)"
        return f"SELECT * FROM {source} WHERE {self.within('time', 'time')}"

    @property
    def decisions(self) -> str:
        """The query for the decisions, with `outcome`, `way` (`local`, `forwarded`, `unknown`),
        `step` on the axis, and `blamed`: the rule, or else the policy.
        """
        return f"""
            SELECT *, {_OUTCOME} AS outcome,
                CASE received_node WHEN -1 THEN 'unknown' WHEN decided_node THEN 'local' ELSE 'forwarded' END AS way,
                {self.axis.column("time")} AS step,
                CASE WHEN rule != '' THEN rule ELSE policy END AS blamed
            FROM ({self.events}) WHERE kind = 'decision'
        """

    @property
    def days(self) -> AggregateRequest:
        """The counts that are needed before anything is known of the selection."""
        return AggregateRequest(Table.EVENTS, "cluster_id day time kind", self.events, (DAYS,))

    @cached_property
    def _days(self) -> list[Spread]:
        days = self.aggregates.execute("SELECT first, last, events FROM days ORDER BY ALL")
        return [Spread(*row) for row in days.fetchall()]

    @property
    def number(self) -> int:
        return sum(spread.count for spread in self._days)

    @cached_property
    def axis(self) -> Axis:
        """The axis of the time of nearly all events, whose steps the aggregates get as a table."""
        found = axis(*worth_showing(self._days)) if self._days else axis(self.since or 0, self.since or 0)
        steps = "SELECT unnest(range($1))::INTEGER AS step, unnest($2::BIGINT[]) AS time"
        self.aggregates.execute(f"CREATE TABLE steps AS {steps}", (found.steps, found.starts[:-1]))
        return found

    @property
    def beside_the_axis(self) -> int:
        """How many events no plot over time shows, to within a day."""
        first, last = self.axis.starts[0], self.axis.starts[-1]
        return sum(spread.count for spread in self._days if spread.last < first or spread.first >= last)

    def check(self) -> None:
        """Raise NothingSelectedError for an unknown cluster, or an end before the beginning."""
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise NothingSelectedError("--until has to be later than --since.")
        if self.clusters:
            known = sorted(self._snapshots[Table.EVENTS].of_clusters())
            if missing := [name for name in self.clusters if name not in known]:
                raise NothingSelectedError(
                    f"There is no cluster {missing[0]} in {self._tables}: there is {', '.join(known) or 'none'}."
                )
