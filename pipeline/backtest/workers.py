"""The work of Spark's workers in a back-test: from a slice and its topics to differences and a
tally, in a Parquet file.

Questions and comparisons are those of `replaying.py`. A worker holds one piece of its slice and the
cluster's topics. It returns a `Failure` for a policy that cannot be loaded or a table that cannot
be read, because Spark would retry an exception and report it as a trace.
"""

import gc
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ...policies.load_errors import PolicyLoadError
from ...policies.rules.mistakes import RuleFileError
from .batches import ColumnarReplay, one_by_one
from .candidate import Candidate
from .counterfactual import Counterfactual
from .existing import LogEnd, refused
from .reading import UnreadableTableError, tables_of
from .recorded import RecordedTimeline
from .replaying import ALWAYS, NOWHERE, Backtest, Window
from .slices import Slice
from .tally import Tally
from .timelines import Timeline
from .topics import states_after, topics_today

NEW_OBJECTS = 50_000
"""How many new objects there are before Python looks for cycles. Events have none, but a
candidate's exceptions may; with Python's own number, 700, the search takes a tenth of the time.
"""
OUT_ROWS, OUT_BYTES = 2_000, 16 << 20
"""How many rows are written at once, or after how many bytes of JSON: a topic may have megabytes.
"""
DIFFERENCE, TALLY, REFUSED = "difference", "tally", "refused"

OUT_ARROW = pa.schema(
    [
        ("what", pa.string()),
        ("cluster_id", pa.string()),
        ("epoch", pa.int32()),
        ("sequence", pa.int64()),
        ("time", pa.timestamp("ms", "UTC")),
        *((name, pa.string()) for name in ("kind", "principal", "operation", "topic", "rule")),
        *((name, pa.string()) for name in ("recorded", "recorded_message", "candidate", "candidate_message")),
        ("is_certain", pa.bool_()),
        ("is_steady", pa.bool_()),
        ("hidden", pa.list_(pa.string())),
        ("body", pa.string()),
    ]
)
"""The columns of the workers' answers; `body` is the difference, the tally or the refused topic as
JSON.
"""
REPEATED = [field.name for field in OUT_ARROW if field.name != "body"]
"""Columns whose values are worth a dictionary."""


_columns_of = attrgetter(
    *("cluster_id", "epoch", "sequence", "time_ms", "kind", "principal", "operation", "topic", "rule"),
    *("recorded.decision", "recorded.message", "candidate.decision", "candidate.message"),
    *("is_certain", "is_steady", "hidden"),
)
"""Reads what is between `what` and `body` of a difference."""
Row = tuple[Any, ...]
"""A row with the columns of OUT_ARROW."""


Head = TypeVar("Head")
Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


class Failure(NamedTuple):
    """The reason, as a sentence, why a worker could not do its task."""

    text: str


class Job(msgspec.Struct, frozen=True):
    """The parameters of a back-test that every worker is given."""

    candidate: Candidate
    window: Window = ALWAYS
    counterfactual: bool = False


class Task(msgspec.Struct, Generic[Head], frozen=True):
    """The task of one worker: a slice, or the end of a log, and the files of `topic_history` that
    describe its topics.
    """

    head: Head
    history: tuple[str, ...] = ()


Work = Callable[[Task[Any]], Iterator[Row]]


def failures_returned(work: Callable[[Piece], Answer], piece: Piece) -> Answer | Failure:
    """Return the work's answer, or a Failure for an error that a retry would repeat. Raises
    OSError.
    """
    try:
        return work(piece)
    except (PolicyLoadError, RuleFileError, UnreadableTableError) as error:
        return Failure(str(error))


def answer(work: Work, folder: Path, task: Task[Any]) -> str | Failure:
    """Write what a task answers to a file of its own, and return the file's name. Raises
    OSError.
    """
    return failures_returned(lambda rows: _write(rows, folder), work(task))


def _write(rows: Iterator[Row], folder: Path) -> str:
    """Write rows under a name that no other file has, because Spark may have a task done twice."""
    file = folder / f"{uuid4().hex}.parquet"
    try:
        with pq.ParquetWriter(file, OUT_ARROW, compression="lz4", use_dictionary=REPEATED) as writer:
            while batch := list(_written_at_once(rows)):
                columns = zip(zip(*batch, strict=True), OUT_ARROW.types, strict=True)
                arrays = [pa.array(values, type_) for values, type_ in columns]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=OUT_ARROW))
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file.name


def _written_at_once(rows: Iterator[Row]) -> Iterator[Row]:
    size = 0
    for row in islice(rows, OUT_ROWS):
        yield row
        size += len(row[-1])
        if size >= OUT_BYTES:
            return


def replay(job: Job, task: Task[Slice]) -> Iterator[Row]:
    """Replay one slice. Raises PolicyLoadError, RuleFileError, UnreadableTableError."""
    gc.set_threshold(NEW_OBJECTS)
    slice_ = task.head
    known = None if slice_.after == NOWHERE else dict(states_after(task.history, slice_.after))
    with job.candidate.sandboxed() as sandbox:
        timeline: Timeline = Counterfactual(known) if job.counterfactual else RecordedTimeline(known)
        backtest = Backtest(sandbox, timeline, after=slice_.after, window=job.window)
        sieve = None if job.counterfactual else ColumnarReplay(sandbox, job.window)
        for table in tables_of(slice_.pieces, () if sieve is None else sieve.columns):
            for difference in one_by_one(backtest, table) if sieve is None else sieve.differences(backtest, table):
                yield (DIFFERENCE, *_columns_of(difference), _as_json(difference))
    tally = backtest.tally()
    if isinstance(timeline, Counterfactual):
        timeline.report(tally, slice_.cluster_id)
    yield _row(TALLY, tally.encode().encode(), cluster_id=slice_.cluster_id)


def judge_existing(job: Job, task: Task[LogEnd]) -> Iterator[Row]:
    """Judge the existing topics of one cluster. Raises PolicyLoadError, RuleFileError,
    UnreadableTableError.
    """
    now, there = task.head, {each.topic: each for each in topics_today(task.history)}
    with job.candidate.sandboxed() as sandbox:
        for each in refused(sandbox, there, now):
            yield _row(
                REFUSED, _as_json(each), cluster_id=each.cluster_id, topic=each.topic, principal=each.principal, rule=each.candidate.rule,
                candidate=each.candidate.decision, candidate_message=each.candidate.message,
            )  # fmt: skip
    tally = Tally()
    tally.counts["existing",] = len(there)
    tally.side_effects |= sandbox.side_effects
    yield _row(TALLY, tally.encode().encode(), cluster_id=now.cluster_id)


def _as_json(value: object) -> bytes:
    _encoder.encode_into(value, _buffer)
    return bytes(_buffer)


_encoder, _buffer = msgspec.json.Encoder(), bytearray()
"""A buffer that has room for the last value saves most of the time for the next."""


def _row(what: str, body: bytes, **values: object) -> Row:
    named = {"what": what, "body": body, **values}
    return tuple(map(named.get, OUT_ARROW.names))
