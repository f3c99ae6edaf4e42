"""Finds out what rows of events say about the log: which places they have, and which events matter
for the history as a whole.

Rule: taken from the columns, so that a block costs the same however many events it has; only at a
break, and at a mark, Python goes to work.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import Dropped, decode
from .columns import DECISION, LINE
from .places import Run
from .report import MAX_REASON, Mark, Stretch

SNAPSHOT_BEGIN = "snapshot_begin"
MARKS = (SNAPSHOT_BEGIN, "snapshot_end", "dropped")


def stretch_on(stretches: list[Stretch], rows: pa.RecordBatch, read: int) -> None:
    """Add rows to the last stretch, and begin another one where they do not go on from the row
    before. `read` is which of the share's reads they are of.
    """
    if not rows.num_rows:
        return
    epoch, sequence = rows.column("epoch").to_numpy(), rows.column("sequence").to_numpy()
    cluster = rows.column("cluster_id").dictionary_encode()
    codes = cluster.indices.to_numpy()
    goes_on = (sequence[1:] - sequence[:-1] == 1) & (epoch[1:] == epoch[:-1]) & (codes[1:] == codes[:-1])
    firsts = np.concatenate(([0], np.flatnonzero(~goes_on) + 1))
    lasts = np.append(firsts[1:], rows.num_rows) - 1
    decisions = np.add.reduceat(pc.equal(rows.column("kind"), DECISION).cast(pa.int64()).to_numpy(), firsts)
    ms = rows.column("time").cast(pa.int64()).to_numpy() // 1000
    for first, last, count in zip(firsts.tolist(), lasts.tolist(), decisions.tolist(), strict=True):
        place = cluster.dictionary[codes[first]].as_py(), int(epoch[first])
        run = Run(int(sequence[first]), int(sequence[last]), int(ms[first]), int(ms[last]))
        if stretches and _follows(stretches[-1], place, run, read):
            stretches[-1].run.last, stretches[-1].run.last_ms = run.last, run.last_ms
            stretches[-1].decisions += count
        else:
            begins = run.first == 1 and rows.column("kind")[first].as_py() == SNAPSHOT_BEGIN
            node = rows.column("decided_node")[first].as_py()
            stretches.append(Stretch(*place, run, node, count, begins, read))


def _follows(stretch: Stretch, place: tuple[str, int], run: Run, read: int) -> bool:
    return (stretch.cluster_id, stretch.epoch) == place and stretch.run.last + 1 == run.first and stretch.read == read


def marks_of(rows: pa.RecordBatch) -> Iterator[Mark]:
    """Yield the marks among rows of events, in their order."""
    marked = rows.select(["kind", LINE]).filter(pc.is_in(rows.column("kind"), pa.array(MARKS)))
    for row in marked.to_pylist():
        event = decode(row[LINE])
        told = ("", 0, 0)
        if isinstance(event, Dropped):
            told = (event.reason[:MAX_REASON], event.first_sequence, event.last_sequence)
        yield Mark(event.cluster_id, event.epoch, event.sequence, row["kind"], event.time_ms, *told)
