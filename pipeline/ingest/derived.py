"""The tables that are made of the events: topic history, controller epochs, problems.

Rule: each is changed by one commit, which carries the number of the change of the events that it
has reached; so each of them fits to the events of some moment.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..datafiles import NewFile
from ..schemas import Table
from ..spreading import Deal
from .limits import microseconds
from .problems import problem_rows
from .state import Ledger, State
from .topic_history import Stale, changes


def derive(deal: Deal, cores: int, ledger: Ledger) -> None:
    """Bring the derived tables up to date with the events; the work is dealt out to so many cores.
    Raises TablesError, OSError and what `deal` raises.
    """
    history = ledger.tables.snapshot(Table.TOPIC_HISTORY)
    if history.change < ledger.number:
        stale = {
            name: Stale.since(cluster.changed_from, cluster)
            for name, cluster in ledger.state.clusters.items()
            if cluster.changed_from is not None
        }
        new = changes(deal, cores, ledger.tables.location, events=ledger.events, history=history, stale=stale)
        ledger.tables.commit(history, ledger.number, *new)
        ledger.has_history()
    _replace(ledger, Table.CONTROLLER_EPOCHS, _epoch_rows(ledger.state))
    _replace(ledger, Table.PROBLEMS, problem_rows(ledger.state))
    ledger.follow_with_quarantine()


def _replace(ledger: Ledger, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Replace a small table as a whole, unless it is up to date."""
    before = ledger.tables.snapshot(table)
    if before.change < ledger.number:
        file = NewFile(ledger.tables.location, table)
        file.write(pa.RecordBatch.from_pylist(list(rows), table.schema))
        ledger.tables.commit(before, ledger.number, [file.finish()], before.files)


def _epoch_rows(state: State) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of epochs, in order."""
    for cluster_id, cluster in sorted(state.clusters.items()):
        for number, epoch in sorted(cluster.epochs.items()):
            if not epoch.runs:
                continue
            first, last = epoch.runs[0], epoch.runs[-1]
            yield {
                "cluster_id": cluster_id,
                "epoch": number,
                "node": epoch.node,
                "first_sequence": first.first,
                "last_sequence": last.last,
                "events": epoch.events,
                "decisions": epoch.decisions,
                "missing": epoch.missing,
                "duplicates": epoch.duplicates,
                "began": microseconds(first.first_ms),
                "ended": microseconds(last.last_ms),
                "begins_with_snapshot": epoch.begins_with_snapshot,
            }
