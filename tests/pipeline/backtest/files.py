"""Files of the table `events`, as workers find them."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from minicontroller.audit.event import AuditEvent, encode
from minicontroller.pipeline.backtest.slices import Piece
from minicontroller.pipeline.ingest.columns import event_rows


def written(file: Path, found: Sequence[AuditEvent], *, line: str | None = None) -> Piece:
    """A file of the table with these events; `line` stands in the place of what they are."""
    rows = pa.Table.from_batches([event_rows([encode(event).strip() for event in found])]).drop_columns(["cluster_id"])
    if line is not None:
        at = rows.schema.get_field_index("event")
        rows = rows.set_column(at, rows.schema.field(at), pa.array([line] * len(found)))
    pq.write_table(rows, file, row_group_size=3)
    places = sorted((event.epoch, event.sequence) for event in found)
    return Piece(places[0], places[-1], (str(file),))
