"""The table `topic_history`, brought up to date by Spark's tasks after events came.

First, tasks read the events from the first changed place on, and the rows that last there, and
write what these tell of topics into runs. Then each task takes a portion of the topics out of all
runs, and makes its rows, part by part in the order of the log. Rows that have ended and rows that
last are in separate files, so that the next change leaves the former as they are.

Rule: memory depends neither on the length of the history nor on how unevenly topics change.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..delta import TARGET_BYTES, DataFile, NewFile, Snapshot, batches
from ..location import Location
from ..schemas import Table
from .barriers import Barrier, Place, Places, begin_of_change
from .lasting import before, continued, history_rows
from .runs import Portion, Run, joined, portions, taken, written
from .told import OF_EVENTS, known_by, told_by

SOURCE_ROWS = 200_000
"""Of the files that one task reads, unless one file has more."""
BATCH_BYTES = 32 << 20
"""Of what becomes a run, if its rows have more."""
SMALL_BYTES = 8 << 20
MOST_SMALL = 16
"""Files of ended rows in a cluster that are small; if there are more, they become one."""


class Sizes(NamedTuple):
    """How much work is done at once: rows, and bytes of what is told of topics in memory."""

    run_rows: int = 131_072
    """Rows of files from which a run is made."""
    portion: int = 128 << 20
    """What one task takes out of the runs, all parts together."""
    least: int = 8 << 20
    """A portion, if there are cores for more."""
    part: int = 32 << 20
    """What becomes rows at once, or as much as a run and those that overlap with it have more."""


SIZES = Sizes()

Deal = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Does work on pieces, and returns the answers in their order."""


class Stale(NamedTuple):
    """A cluster whose topic history does not have everything yet."""

    place: Place
    """The first one that is new."""
    barriers: Sequence[Barrier]
    """Of the whole log."""

    @property
    def begin(self) -> Place:
        return begin_of_change(self.place, self.barriers)


class Changes(NamedTuple):
    """What one commit adds to the table and removes from it."""

    adds: list[DataFile]
    removes: list[DataFile]


class Source(NamedTuple):
    """Files of a cluster that one task reads."""

    cluster_id: str
    table: Table
    files: list[DataFile]


class Told(NamedTuple):
    """What one task wrote of its source."""

    runs: list[Run]
    kept: list[DataFile]
    """Rows of the topic history that do not change."""


class Part(NamedTuple):
    """A part of a cluster's log, from `begin` on, and what is told there."""

    begin: Place
    runs: list[Run]


class Plan(NamedTuple):
    """How the rows of a cluster are made."""

    barriers: Sequence[Barrier]
    known: list[Run]
    parts: list[Part]
    portions: list[Portion]


def changes(
    deal: Deal,
    cores: int,
    tables: Location,
    *,
    events: Snapshot,
    history: Snapshot,
    stale: Mapping[str, Stale],
    sizes: Sizes = SIZES,
) -> Changes:
    """Write the files that bring the topic history of some clusters up to date with their events,
    and say what to commit. The work is dealt out to so many cores. Raises OSError and what `deal`
    raises.
    """
    of_events, of_history = events.of_clusters(), history.of_clusters()
    removes = {name: changed(of_history.get(name, ()), each.begin) for name, each in stale.items()}
    new = {
        name: [file for file in of_events.get(name, ()) if _reaches(file, each.begin)] for name, each in stale.items()
    }
    sources = [*_sources(Table.TOPIC_HISTORY, removes), *_sources(Table.EVENTS, new)]
    told: list[Told] = deal(partial(tell, tables=tables, stale=stale, run_rows=sizes.run_rows), sources)
    runs = [run for found in told for run in found.runs]
    plans = {
        name: _plan(each, [run for run in runs if run.cluster_id == name], cores, sizes) for name, each in stale.items()
    }
    dealt = [portion for plan in plans.values() for portion in plan.portions]
    made: list[list[DataFile]] = deal(partial(make, tables=tables, plans=plans, part_bytes=sizes.part), dealt)
    for run in runs:
        tables.filesystem().delete_file(run.path)
    adds = [*(found.kept for found in told), *made]
    return Changes([file for files in adds for file in files], [file for files in removes.values() for file in files])


# ------------------------------------------------------------------ what to read


def changed(files: Sequence[DataFile], begin: Place) -> list[DataFile]:
    """Return the files of the topic history that have rows which last at `begin` or begin later,
    and the small ones if there are many.
    """
    found = [file for file in files if file.nulls.get("until_epoch", 1) or _reaches(file, begin, "until_")]
    small = [file for file in files if file.size < SMALL_BYTES and file not in found]
    return [*found, *small] if len(small) > MOST_SMALL else found


def _reaches(file: DataFile, place: Place, prefix: str = "") -> bool:
    """Whether a file may have a place from `place` on."""
    epoch, sequence = (file.high.get(f"{prefix}{name}") for name in ("epoch", "sequence"))
    return epoch is None or sequence is None or (int(epoch), int(sequence)) >= place


def _begin(file: DataFile, prefix: str = "") -> Place:
    """Return a place before which a file has none."""
    epoch, sequence = (int(file.low.get(f"{prefix}{name}", 0)) for name in ("epoch", "sequence"))
    return epoch, sequence


def _sources(table: Table, files: Mapping[str, Sequence[DataFile]]) -> Iterator[Source]:
    """Divide files among tasks, in the order of the log."""
    prefix = "from_" if table is Table.TOPIC_HISTORY else ""
    for cluster_id, some in files.items():
        waiting: list[DataFile] = []
        for file in sorted(some, key=lambda each: _begin(each, prefix)):
            if waiting and sum(each.rows for each in waiting) + file.rows > SOURCE_ROWS:
                yield Source(cluster_id, table, waiting)
                waiting = []
            waiting.append(file)
        if waiting:
            yield Source(cluster_id, table, waiting)


def _plan(stale: Stale, runs: Sequence[Run], cores: int, sizes: Sizes) -> Plan:
    size = sum(run.size for run in runs)
    count = max(-(-size // sizes.portion), min(cores, -(-size // sizes.least)))
    dealt = portions(runs[0].cluster_id, count) if runs else []
    return Plan(stale.barriers, [run for run in runs if run.is_known], list(_parts(stale, runs)), dealt)


def _parts(stale: Stale, runs: Sequence[Run]) -> Iterator[Part]:
    """Divide a log into parts as small as its runs, of which those of a part overlap."""
    part, end = Part(stale.begin, []), stale.begin
    for run in sorted((run for run in runs if not run.is_known), key=lambda each: each.low):
        if part.runs and run.low > end:
            yield part
            part = Part(run.low, [])
        part.runs.append(run)
        end = max(end, run.high)
    yield part


# ------------------------------------------------------------------ what tasks do


def tell(source: Source, tables: Location, stale: Mapping[str, Stale], run_rows: int) -> Told:
    """Write what some files tell of topics. Raises OSError."""
    begin, places = stale[source.cluster_id].begin, Places(stale[source.cluster_id].barriers)
    kept = _Files(tables, source.cluster_id)

    def told() -> Iterator[pa.RecordBatch]:
        if source.table is Table.EVENTS:
            is_all_new = all(_begin(file) >= begin for file in source.files)
            for events in _batches(tables, source, OF_EVENTS, run_rows, None if is_all_new else _is_from(begin)):
                yield told_by(events, places)
            return
        for rows in _batches(tables, source, source.table.in_files.names, run_rows):
            has_ended = _is_before(rows, "until", begin)
            kept.write_ended(rows.filter(has_ended), begin)
            yield known_by(rows, pc.and_not(_is_before(rows, "from", begin), has_ended))

    is_known = source.table is Table.TOPIC_HISTORY
    runs = [written(tables, source.cluster_id, rows, is_known=is_known) for rows in told() if rows.num_rows]
    return Told(runs, kept.finish())


def make(portion: Portion, tables: Location, plans: Mapping[str, Plan], part_bytes: int) -> list[DataFile]:
    """Write the rows of a portion, and return the files. Raises OSError."""
    plan, files = plans[portion.cluster_id], _Files(tables, portion.cluster_id)

    def told(runs: Sequence[Run]) -> Iterator[pa.RecordBatch]:
        for run in runs:
            yield from taken(tables, run, portion)

    known, waiting, begin = joined([*told(plan.known)]), list[pa.RecordBatch](), plan.parts[0].begin
    ends = [*(part.begin for part in plan.parts[1:]), None]
    last = max([plan.parts[-1].begin, *(run.high for part in plan.parts for run in part.runs)])
    for part, end in zip(plan.parts, ends, strict=True):
        waiting += told(part.runs)
        if end is None or sum(each.nbytes for each in waiting) >= part_bytes:
            barriers = plan.barriers if end is None else before(plan.barriers, end)
            ended, known = continued(known, waiting, begin, barriers)
            files.write_ended(ended, last)
            waiting, begin = [], end or begin
    finished = files.finish()
    files.write(history_rows(known))
    return [*finished, *files.finish()]


class _Files:
    """The files of rows of one cluster that a task writes."""

    def __init__(self, tables: Location, cluster_id: str) -> None:
        self._of = tables, Table.TOPIC_HISTORY, cluster_id
        self._open: dict[bool, NewFile] = {}
        self._finished: list[DataFile] = []

    def write_ended(self, rows: pa.RecordBatch, last: Place) -> None:
        """Write rows that have ended. Those that ended in the last epoch are in files of their own:
        the highest sequence of a file says where it ends only if all are of one epoch.
        """
        is_of_last = pc.equal(rows.column("until_epoch"), last[0])
        self.write(rows.filter(pc.invert(is_of_last)))
        self.write(rows.filter(is_of_last), is_of_last=True)

    def write(self, rows: pa.RecordBatch, *, is_of_last: bool = False) -> None:
        """Write rows with the columns of the table's files. Raises OSError."""
        if rows.num_rows:
            file = self._open[is_of_last] = self._open.get(is_of_last) or NewFile(*self._of)
            file.write(rows)
            if file.size >= TARGET_BYTES:
                self._finished.append(self._open.pop(is_of_last).finish())

    def finish(self) -> list[DataFile]:
        """Return what was written since the last time. Raises OSError."""
        found = [*self._finished, *(file.finish() for file in self._open.values())]
        self._finished, self._open = [], {}
        return found


def _batches(
    tables: Location, source: Source, names: Sequence[str], rows: int, wanted: ds.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Read some columns; rows that follow each other in a file do so in a batch."""
    waiting: list[pa.RecordBatch] = []
    options = {"filter": wanted, "batch_size": rows, "use_threads": False}
    for batch in batches(tables, source.table, source.files, list(names), **options):
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= rows or sum(each.nbytes for each in waiting) >= BATCH_BYTES:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def _is_from(place: Place) -> ds.Expression:
    epoch, sequence = place
    return (ds.field("epoch") > epoch) | ((ds.field("epoch") == epoch) & (ds.field("sequence") >= sequence))


def _is_before(rows: pa.RecordBatch, end: str, place: Place) -> pa.BooleanArray:
    """Whether rows begin, or end, before a place."""
    epoch, sequence = place
    found = pc.or_(
        pc.less(rows.column(f"{end}_epoch"), epoch),
        pc.and_(pc.equal(rows.column(f"{end}_epoch"), epoch), pc.less(rows.column(f"{end}_sequence"), sequence)),
    )
    return pc.fill_null(found, False)
