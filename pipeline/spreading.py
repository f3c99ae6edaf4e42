"""Work that Spark deals out to its workers, a piece to each task.

Rule: what goes wrong comes back as an answer. Between processes exceptions lose what they mean, and
Spark would try again what fails.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from pyspark import RDD
from pyspark.sql import SparkSession

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


class Failed(NamedTuple):
    """An OSError on its way from a worker to the driver."""

    number: int | None
    text: str
    file: str


def by_workers(
    spark: SparkSession, work: Callable[[Piece], Answer], pieces: Sequence[Piece], folder: Path
) -> list[Answer]:
    """Do the work on each piece by Spark's workers, and return the answers in the order of the
    pieces. Raises the first OSError, which names `folder` if it names no file; and Spark's errors.
    """
    if not pieces:
        return []
    return answers_of(spark.sparkContext.parallelize(pieces, len(pieces)), work, folder)


def answers_of(pieces: "RDD[Piece]", work: Callable[[Piece], Answer], folder: Path) -> list[Answer]:
    """Do the work on pieces that Spark has already, and return the answers as `by_workers` does."""
    answers: list[Answer] = []
    for answer in pieces.map(partial(_attempted, work, folder)).collect():
        if isinstance(answer, Failed):
            raise OSError(*answer)
        answers.append(answer)
    return answers


def _attempted(work: Callable[[Piece], Answer], folder: Path, piece: Piece) -> Answer | Failed:
    try:
        return work(piece)
    except OSError as error:
        return Failed(error.errno, error.strerror or str(error), str(error.filename or folder))
