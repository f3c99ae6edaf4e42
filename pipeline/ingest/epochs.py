"""The table `controller_epochs`, from the state alone."""

from collections.abc import Iterator
from typing import Any

from .limits import microseconds
from .state import State


def epoch_rows(state: State) -> Iterator[dict[str, Any]]:
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
