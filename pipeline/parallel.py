"""Maps a function over pieces of work on Spark's workers, one piece to a task.

It uses DataFrames only, so it also works with Spark Connect. Spark may run a task twice, even at
the same time: a task writes files under unique names, and the driver reads only those that an
answer names. An OSError comes back as an answer, because Spark would retry an exception and lose
its type.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession, is_remote
from pyspark.sql.functions import spark_partition_id

from .failures import lost

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")

ParallelMap = Callable[..., list[Any]]
"""`map_on_workers` for one session and location."""
NUMBERED = "number long, answer binary"
SMALL = 10_000
"""How many events at most are gone through without Spark: a job takes a second, however little
there is.
"""
FOR_ALL_CORES = 1 << 20
"""How many rows it takes for each core to get some."""


def map_on_workers(
    spark: SparkSession,
    work: Callable[[Piece], Answer],
    pieces: Sequence[Piece],
    place: object,
    *,
    events: int | None = None,
) -> list[Answer]:
    """Do the work on each piece by Spark's workers, and return the answers in the order of the
    pieces. If they are said to have few events, this process does the work. Raises the first
    OSError, which names `place` if it names no file; and Spark's errors.
    """
    if not pieces or (events is not None and events <= SMALL):
        answers = [_attempted(work, piece) for piece in pieces]
    else:
        count = len(pieces)
        task = partial(_answered, work, [pickle.dumps(piece) for piece in pieces])
        with lost():
            rows = spark.range(0, count, 1, count).mapInArrow(task, NUMBERED).collect()
        answers = [pickle.loads(row.answer) for row in sorted(rows)]  # noqa: S301 - written by our own tasks
    for answer in answers:
        if isinstance(answer, OSError):
            raise OSError(answer.errno, answer.strerror, answer.filename or str(place))
    return [answer for answer in answers if not isinstance(answer, OSError)]


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks Spark does at once, as far as it knows now."""
    if is_remote():
        return spark.range(FOR_ALL_CORES).select(spark_partition_id()).distinct().count()
    return spark.sparkContext.defaultParallelism


def _answered(
    work: Callable[[Piece], Answer], pieces: Sequence[bytes], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do the pieces with a task's numbers; each is pickled alone, since all workers get all."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            answer = _attempted(work, pickle.loads(pieces[number]))  # noqa: S301 - written by the driver
            yield pa.record_batch({"number": [number], "answer": [pickle.dumps(answer)]})


def _attempted(work: Callable[[Piece], Answer], piece: Piece) -> Answer | OSError:
    """Return what comes of a piece; an error has nothing but what survives pickling."""
    try:
        return work(piece)
    except OSError as error:
        return OSError(error.errno, error.strerror or str(error), error.filename and str(error.filename))
