"""The table `topic_history`, made of what the events of a cluster told of its topics.

Rule: at every place in the log it shows the topics that `policies.audit_replay.Replay` has there; a
gap ends all that was known. It is made anew as a whole, so it does not depend on the order in which
events arrived; portion by portion, each with some of the topics, so memory does not depend on the
length of the history.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..tables import Table
from .arrow import arrow_schema
from .barriers import SNAPSHOT, Barrier, Numbers, Segments
from .limits import folder_name, microseconds
from .mentions import BUCKETS, FOLDER
from .mentions import SCHEMA as MENTIONS
from .outputs import COMPRESSION

Flags = npt.NDArray[np.bool_]
Barriers = Mapping[str, list[Barrier]]
"""By cluster."""

SCHEMA = arrow_schema(Table.TOPIC_HISTORY.schema, without=Table.TOPIC_HISTORY.partitioned_by)
PORTION_ROWS = 200_000
NOWHERE = -1
PORTION_BYTES = 16 << 20
"""As Parquet has them before it compresses them, which is less than they take in memory."""
CHANGE = ("epoch", "sequence", "time", "cause", "principal")
"""What is told of a row's begin and of its end."""


class Portion(msgspec.Struct, frozen=True):
    """Some topics of a cluster, with all that was told of them."""

    number: int
    cluster_id: str
    first: int
    end: int
    """The buckets from `first` to before `end`."""
    barriers: list[Barrier]


def portions(tables: Path, clusters: Barriers, most_rows: int = PORTION_ROWS) -> list[Portion]:
    """Divide the topics of these clusters into portions small enough for one worker. Raises
    OSError.
    """
    found: list[Portion] = []
    for cluster_id, barriers in clusters.items():
        metadata = [pq.read_metadata(file) for file in _files(tables, cluster_id)]
        groups = [each.row_group(index) for each in metadata for index in range(each.num_row_groups)]
        rows, size = (sum(getattr(each, name) for each in groups) for name in ("num_rows", "total_byte_size"))
        count = min(BUCKETS, max(1, -(-rows // most_rows), -(-size // PORTION_BYTES)))
        edges = [number * BUCKETS // count for number in range(count + 1)]
        found += [
            Portion(number, cluster_id, edges[number], edges[number + 1], barriers) for number in range(count) if rows
        ]
    return found


def write_portion(portion: Portion, tables: Path, folder: str) -> None:
    """Write the topic history of a portion to `folder`, which is relative to `tables`. Raises
    OSError.
    """
    wanted = (pc.field("bucket") >= portion.first) & (pc.field("bucket") < portion.end)
    files = list(map(str, _files(tables, portion.cluster_id)))
    told = ds.dataset(files, schema=MENTIONS, format="parquet").to_table(filter=wanted, use_threads=False)
    target = tables / folder / folder_name("cluster_id", portion.cluster_id)
    target.mkdir(parents=True, exist_ok=True)
    rows = topic_history(told, portion.barriers)
    pq.write_table(rows, target / f"{portion.number:05}.parquet", compression=COMPRESSION)


def _files(tables: Path, cluster_id: str) -> list[Path]:
    return sorted((tables / FOLDER / folder_name("cluster_id", cluster_id)).glob("*.parquet"))


def topic_history(told: pa.Table, barriers: list[Barrier]) -> pa.Table:
    """Make the rows of topic history of some topics of a cluster, in the order of topics and log.

    A run is what was told of a topic one after the other and is the same, with nothing in between
    but the end of the snapshot that tells the next: it is a row, which lasts until what follows it,
    or until the barrier that ends its segment.
    """
    told, segment = _in_order(told, Places(barriers))
    count = told.num_rows
    epoch, sequence, digest, inside = (_numbers(told, name) for name in ("epoch", "sequence", "digest", "in_snapshot"))
    topic = _codes(told.column("topic"))
    is_near = (np.diff(segment) == inside[1:]) | ((np.diff(epoch) == 0) & (np.diff(sequence) == 0))
    follows = (np.diff(topic) == 0) & is_near
    begins = np.ones(count, np.bool_)
    begins[1:] = ~(follows & (np.diff(digest) == 0))
    first = np.flatnonzero(begins)
    last = np.append(first, count)[1:] - 1
    is_followed = np.append(follows, np.zeros(1, np.bool_))[last]
    end = np.where(is_followed, last + 1, np.where(segment[last] < len(barriers), count + segment[last], NOWHERE))
    is_empty = (
        is_followed
        & (epoch[first] == np.append(epoch, 0)[last + 1])
        & (sequence[first] == np.append(sequence, 0)[last + 1])
    )
    kept = ~is_empty & pc.is_valid(told.column("topic_id")).to_numpy()[first]
    return _rows(told, _changes(told, barriers), first[kept], end[kept])


def _in_order(told: pa.Table, places: "Places") -> tuple[pa.Table, Numbers]:
    """Sort what was told by topic and by the place where it takes effect, and return it with these
    places' segments. What takes no effect is left out.
    """
    epoch, origin, inside = (_numbers(told, name) for name in ("epoch", "sequence", "in_snapshot"))
    sequence, segment, takes_effect = places.of(epoch, origin, inside.astype(np.bool_))
    order = np.lexsort((origin, sequence, epoch, _codes(told.column("topic"))))
    order = order[takes_effect[order]]
    placed = told.set_column(told.schema.get_field_index("sequence"), "sequence", pa.array(sequence))
    return placed.take(pa.array(order)).combine_chunks(), segment[order]


def _codes(texts: pa.ChunkedArray) -> Numbers:
    """Number texts in their order."""
    found = texts.combine_chunks().dictionary_encode()
    rank = np.argsort(pc.sort_indices(found.dictionary).to_numpy())
    codes: Numbers = rank[found.indices.to_numpy()]
    return codes


def _numbers(table: pa.Table, name: str) -> Numbers:
    numbers: Numbers = table.column(name).cast(pa.int64()).to_numpy()
    return numbers


def _changes(told: pa.Table, barriers: list[Barrier]) -> pa.Table:
    """Return the mentions as changes, and behind them the barriers."""
    own = told.select(("epoch", "sequence", "from_time", "cause", "principal")).rename_columns(CHANGE)
    columns = (
        [each.epoch for each in barriers],
        [each.sequence for each in barriers],
        [microseconds(each.time_ms) for each in barriers],
        [each.cause for each in barriers],
        [None] * len(barriers),
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, own.schema, strict=True)]
    return pa.concat_tables([own, pa.Table.from_arrays(arrays, schema=own.schema)]).combine_chunks()


def _rows(told: pa.Table, changes: pa.Table, first: Numbers, end: Numbers) -> pa.Table:
    begun, until = changes.take(pa.array(first)), changes.take(pa.array(end, mask=end == NOWHERE))
    of = told.take(pa.array(first))
    partitions, factor = _counts(of.column("replicas").combine_chunks())
    columns: dict[str, pa.ChunkedArray | Numbers] = {
        **{name: of.column(name) for name in of.column_names},
        "partitions": partitions,
        "replication_factor": factor,
        **{f"from_{name}": begun.column(name) for name in CHANGE},
        **{f"until_{name}": until.column(name) for name in CHANGE},
    }
    return pa.Table.from_arrays(
        [
            column if isinstance(column := columns[field.name], pa.ChunkedArray) else pa.array(column, field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )


def _counts(replicas: pa.ListArray) -> tuple[Numbers, Numbers]:
    """Count the partitions of each topic, and the replicas of its first one, 0 if it has none."""
    partitions = replicas.value_lengths().to_numpy()
    rows = np.append(replicas.flatten().value_lengths().to_numpy(), 0)
    return partitions, np.where(partitions > 0, rows[np.cumsum(partitions) - partitions], 0)


class Places:
    """Where mentions of one cluster take effect, many at once: those of a snapshot at its end. `n`
    is their number.
    """

    def __init__(self, found: list[Barrier]) -> None:
        self._segments = Segments((each.epoch, each.sequence) for each in found)
        snapshots = [barrier for barrier in found if barrier.cause == SNAPSHOT]
        self._ends = Segments((each.epoch, each.sequence) for each in snapshots)
        self._snapshots = np.array([(each.epoch, each.begin, each.sequence) for each in snapshots], np.int64)

    def of(self, epochs: Numbers, sequences: Numbers, in_snapshot: Flags) -> tuple[Numbers, Numbers, Flags]:
        """Find for each mention the place and segment where it takes effect, and whether it does:
        one of a snapshot without an end does not. [n]
        """
        takes_effect = ~in_snapshot
        if len(self._snapshots):
            at = np.minimum(self._ends.number(epochs, sequences), len(self._snapshots) - 1)
            its_epoch, begin, end = self._snapshots[at].T
            takes_effect |= (its_epoch == epochs) & (begin < sequences) & (sequences < end)
            sequences = np.where(in_snapshot, end, sequences)
        return sequences, self._segments.number(epochs, sequences), takes_effect
