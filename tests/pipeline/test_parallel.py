"""Work on Spark's workers: every piece is answered, in order, and what fails says which file."""

import errno
import importlib
import os
import signal
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from minicontroller.pipeline.failures import first_line, is_sparks
from minicontroller.pipeline.parallel import SMALL, map_on_workers, parallelism

MEGABYTE = 1 << 20


def test_answers_come_in_the_order_of_their_pieces(spark: SparkSession) -> None:
    """There are more pieces than cores, and Python objects are answered as they are."""
    assert map_on_workers(spark, lambda piece: (piece, {piece}), range(7), "here") == [(n, {n}) for n in range(7)]
    assert map_on_workers(spark, str, [], "here") == []


def test_little_is_done_without_a_job(spark: SparkSession) -> None:
    """Pieces with few events are worked on in this process, in order; with more, by the workers."""
    processes = [
        map_on_workers(spark, lambda _: os.getpid(), [1, 2], "here", events=each) for each in (SMALL, SMALL + 1)
    ]
    assert processes[0] == [os.getpid()] * 2
    assert os.getpid() not in processes[1]


def test_large_pieces_and_large_answers(spark: SparkSession) -> None:
    """Megabytes go to the workers and come back, whatever Spark's limit of a batch."""
    pieces = [bytes([number]) * MEGABYTE for number in range(12)]
    assert map_on_workers(spark, bytes.swapcase, pieces, "here") == [piece.swapcase() for piece in pieces]


def test_an_error_of_a_file_is_one_at_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """It says what is wrong with which file; and names the place of the work if it knows no
    file.
    """
    with pytest.raises(FileNotFoundError) as missing:
        map_on_workers(spark, Path.read_bytes, [tmp_path / "a", tmp_path / "b"], tmp_path)
    assert (missing.value.filename, missing.value.strerror) == (str(tmp_path / "a"), os.strerror(errno.ENOENT))
    with pytest.raises(OSError, match="is slow today") as raised:
        map_on_workers(spark, _complain, [1], tmp_path)
    assert raised.value.filename == str(tmp_path)


def _complain(_piece: int) -> None:
    raise OSError("the store is slow today")


def test_a_mistake_is_a_failure_of_spark(spark: SparkSession) -> None:
    """What is no error of a file is Spark's to tell."""
    with pytest.raises(PythonException, match="invalid literal"):
        map_on_workers(spark, int, ["no number"], "here")


def test_the_number_of_tasks_at_once(spark: SparkSession) -> None:
    """The session of the tests has two threads."""
    assert parallelism(spark) == 2


def needs_a_module(_piece: int) -> None:
    importlib.import_module("not_on_the_workers")


def test_what_workers_lack_is_told_with_what_to_do(spark: SparkSession) -> None:
    """A module that is not installed there; and a process that the system ends."""
    with pytest.raises(PythonException) as lacking:
        map_on_workers(spark, needs_a_module, [1], "here")
    assert first_line(lacking.value).startswith("Spark's workers have no Python module not_on_the_workers: install")
    with pytest.raises(Exception, match="exited unexpectedly") as ended:
        map_on_workers(spark, lambda signal_: os.kill(os.getpid(), signal_), [signal.SIGKILL], "here")
    assert is_sparks(ended.value)
    assert "run fewer tasks at the same time" in first_line(ended.value)
