"""The queries for the tables of a report, and the titles of their columns. The order of rows is
total, so that the same aggregates give the same table: null comes first in ascending order and last
in descending order (`aggregates.connection`).
"""

from collections.abc import Mapping

import msgspec

from ..page.tables import Column, ReportTable, ValueKind
from .aggregates import AggregateDatabase

MOST_ROWS = 1000
"""How many rows a table has at most, unless it has to have all: whoever wants more asks the tables
themselves.
"""

_KINDS = {
    ValueKind.NAME: "action api cluster_id error file kind name operation prefix rule software topic",
    ValueKind.PRINCIPAL: "principal",
    ValueKind.TEXT: "message reason text way",
    ValueKind.COUNT: "applied asked changes created deleted errors events failed files findings first_minute forwarded growth lines local missing "
    "names partitions partitions_before principals problems refused rules topics topics_before unknown validated would_be_refused",
    ValueKind.SHARE: "share",
    ValueKind.MICROSECONDS: "p50_us p90_us p99_us silence_us slowest_us",
    ValueKind.TIME: "began first last time",
    ValueKind.NUMBER: "epoch first_sequence last_sequence line node node_before received_node seconds",
}
_NO_SUMS = {"files", "names", "principals", "rules"}
"""Counts of different values, which cannot be added."""
_TITLES = (
    "api: API; applied: Carried out; asked: Requested; began: First event; cluster_id: Cluster; errors: In error; failed: It failed; "
    "first: First event; first_minute: In the first minute; first_sequence: From; growth: More partitions; last_sequence: To; "
    "local: Decided there; message: The latest reason; names: Topics; node: To node; node_before: From node; p50_us: p50; p90_us: p90; "
    "p99_us: p99; received_node: Node; rule: Rule, or policy; seconds: Seconds from the change; silence_us: Without events; "
    "slowest_us: Slowest; software: Client and version; text: Problem; time: From; unknown: In doubt; validated: Only validated"
)
"""The titles of columns that people read otherwise than programs."""
_TITLE_OF = dict(title.split(": ") for title in _TITLES.split("; "))
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}


class TableQuery(msgspec.Struct, frozen=True):
    """A report table and the query that computes it from aggregates. The query also gives the
    columns of `order`. In the title, `{step}` is replaced by the axis' step; `titles` replace the
    usual titles of columns.
    """

    name: str
    title: str
    columns: str
    query: str
    order: str
    titles: Mapping[str, str] = {}
    most: int | None = MOST_ROWS
    on_page: bool = True
    """Whether people see the table; one that is long, and shown by a plot, is for programs only."""
    compares: bool = False
    """Whether a single row means nothing to people."""

    def of(self, aggregates: AggregateDatabase, step: str) -> ReportTable:
        """Run the query, and return its first rows with the number and the sums of all rows."""
        columns = tuple(self._column(name) for name in self.columns.split())
        summed = [column.name for column in columns if column.sums]
        aggregates.execute(f"CREATE OR REPLACE TEMP TABLE asked AS {self.query}")
        names = ", ".join(column.name for column in columns)
        limit = "" if self.most is None else f" LIMIT {self.most}"
        first = aggregates.execute(f"SELECT {names} FROM asked ORDER BY {self.order}{limit}").fetchall()
        sums = ", ".join(("count(*)", *(f"coalesce(sum({name}), 0)" for name in summed)))
        [(number, *totals)] = aggregates.execute(f"SELECT {sums} FROM asked").fetchall()
        totals_by_name = dict(zip(summed, totals, strict=True))
        return ReportTable(self.name, self.title.format(step=step), columns, first, number, totals_by_name)

    def _column(self, name: str) -> Column:
        title = self.titles.get(name) or _TITLE_OF.get(name) or name.capitalize().replace("_", " ")
        kind = _KIND_OF[name]
        return Column(name, title, kind, sums=kind is ValueKind.COUNT and name not in _NO_SUMS)


def different(column: str) -> str:
    """Count the different values of a column, null among them."""
    return f"count(DISTINCT {{'value': {column}}})"
