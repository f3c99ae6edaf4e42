"""How Spark starts: quietly, and with a sentence if it does not; and what is told before it is
started at all.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest
from click import ClickException
from click.testing import CliRunner
from pyspark.sql import SparkSession

from minicontroller.pipeline.commands import failures_reported, pipeline
from minicontroller.pipeline.ending import remove
from minicontroller.pipeline.failures import first_line
from minicontroller.pipeline.ingest.batches import EVENT_BYTES
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.parallel import SMALL
from minicontroller.pipeline.schemas import Table
from minicontroller.pipeline.session import archive
from tests.audit.logs import a_log, write
from tests.cli.command import call
from tests.pipeline.backtest.asking import in_python
from tests.pipeline.by_hand import a_decision, write_tables
from tests.pipeline.one_session import in_one_process
from tests.support.spark import keep_classes
from tests.support.waiting import until

FAILED, CALLED_WRONGLY = 1, 2
SPARK_SECONDS = 300.0
SOON_SECONDS = 20.0  # two on an idle machine
"""A command ends within two seconds on a machine that has time for it."""
OF_JAVA_11 = (
    "java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main (class file version 61.0), up to 55.0"
)


IN_THE_WAY: Sequence[tuple[list[str], dict[str, str], str]] = [
    (["--master", "spark://127.0.0.1:1"], {}, "No Spark master answers at spark://127.0.0.1:1"),
    (["--master", "spark://127.0.0.1"], {}, "write it as spark://HOST:PORT"),
    (["--master", "sc://127.0.0.1:1/;user_id=a"], {}, "No Spark Connect server answers at sc://127.0.0.1:1"),
    ([], {"SPARK_REMOTE": "sc://127.0.0.1:1"}, "No Spark Connect server answers at sc://127.0.0.1:1"),
    ([], {"MASTER": "spark://127.0.0.1:1"}, "No Spark master answers at spark://127.0.0.1:1"),
    ([], {"SPARK_CONF_DIR": "."}, "No Spark master answers at spark://127.0.0.1:9"),
    ([], {"JAVA_HOME": "/nowhere"}, "there is no bin/java in it: Spark needs Java, 17 or newer"),
    ([], {"PATH": "/nowhere"}, "Spark needs Java, 17 or newer, and there is none"),
    (["--conf", "spark.driver.memory=none"], {}, "Spark cannot be started: Invalid maximum heap size: -Xmxnone"),
    (["--master", "nonsense"], {}, "Spark cannot be started: Master must"),  # Java runs from then on
]
"""Options and variables of a command, and what it says of them."""


def test_what_is_in_the_way(tmp_path: Path) -> None:
    """Without Java, or without the master that an option, the environment or a file names, the
    error is one sentence, without Spark's own words and without a trace.
    """
    write(tmp_path / "a.ndjson", a_log(1))
    (tmp_path / "spark-defaults.conf").write_text("spark.master  spark://127.0.0.1:9\n")
    ingest = ("ingest", "--audit", ".", "--tables", "tables")
    commands = [([*ingest, *options], variables) for options, variables, _ in IN_THE_WAY]
    for told, (options, _, said) in zip(in_one_process(commands, tmp_path), IN_THE_WAY, strict=True):
        assert told.code == FAILED, (options, told)
        assert said in told.stderr
        assert len(told.stderr.splitlines()) == 1, told.stderr


@pytest.mark.parametrize("option", ["--tables", "--audit"])
def test_an_address_that_is_not_served(option: str, tmp_path: Path) -> None:
    """An address of another scheme is refused, and no folder of that name is made."""
    write(tmp_path / "a.ndjson", a_log(1))
    places = {"--audit": ".", "--tables": "tables"} | {option: "ftp://host/tables"}
    arguments = [each for pair in places.items() for each in pair]
    told = call("pipeline", "ingest", *arguments, folder=tmp_path)
    assert told.code == CALLED_WRONGLY
    assert "ftp://host/tables: addresses begin with s3://" in told.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["a.ndjson"]


def test_spark_submit_says_which_master(tmp_path: Path) -> None:
    """Started by spark-submit, the program runs where that was told to; here nobody answers."""
    write(tmp_path / "a.ndjson", a_log(1))
    program = tmp_path / "program.py"
    program.write_text("from minicontroller.cli.main import main\n\nmain()\n")
    home = Path(pyspark.__file__).parent
    submit = [str(home / "bin" / "spark-submit"), "--master", "spark://127.0.0.1:1", str(program)]
    told = subprocess.run(
        [*submit, "pipeline", "ingest", "--audit", ".", "--tables", "tables"],
        cwd=tmp_path,
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=SPARK_SECONDS,
        check=False,
    )
    assert told.returncode == FAILED
    assert "Error: No Spark master answers at spark://127.0.0.1:1" in told.stdout  # spark-submit joins the two


def test_a_java_that_is_too_old(tmp_path: Path) -> None:
    """Java's own words about class files are told as what they mean."""
    write(tmp_path / "a.ndjson", a_log(1))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{OF_JAVA_11}' >&2\nexit 1\n")
    java.chmod(0o755)
    arguments = ("--audit", ".", "--tables", "tables")
    told = call("pipeline", "ingest", *arguments, folder=tmp_path, variables={"JAVA_HOME": str(tmp_path)})
    assert (told.code, told.stderr) == (
        FAILED,
        "Error: Spark cannot be started: this Java is too old, and Spark needs 17 or newer.\n",
    )


def a_copied_archive(cache: Path) -> Path:
    """Copy the archive that the first session on a machine has left."""
    keep_classes()
    left = archive()
    assert left is not None
    kept = cache / "minicontroller" / left.name
    kept.parent.mkdir(mode=0o700, parents=True)
    shutil.copyfile(left, kept)
    return kept


def test_an_archive_that_was_cut_off(tmp_path: Path) -> None:
    """It is no obstacle, and goes."""
    write(tmp_path / "a.ndjson", a_log(1))
    kept = a_copied_archive(tmp_path / "cache")
    os.truncate(kept, kept.stat().st_size // 2)
    told = call(
        *("pipeline", "ingest", "--audit", ".", "--tables", "tables", "--master", "local[1]"),
        folder=tmp_path, variables={"XDG_CACHE_HOME": str(tmp_path / "cache")}, within=SPARK_SECONDS,
    )  # fmt: skip
    assert told.stdout.endswith("3 new events from 1 file.\n"), told  # what Java says of a crash stands before
    assert list(kept.parent.iterdir()) == []


def test_where_there_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others could put code, and where no folder can be made, Java is told of no archive."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert archive() is not None
    (tmp_path / "minicontroller").chmod(0o777)
    assert archive() is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert archive() is None


def test_an_archive_of_other_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java refuses the archive of jars that have been installed anew, which therefore goes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    jars = tmp_path / "jars"
    jars.mkdir()
    kept = archive()
    assert kept is not None
    kept.touch()
    assert archive() == kept and kept.exists()
    installed = kept.stat().st_mtime_ns + 1_000_000
    os.utime(jars, ns=(installed, installed))
    assert archive() == kept and not kept.exists()


def test_ctrl_c_is_pythons_own(spark: SparkSession) -> None:
    """Pyspark's handler of Ctrl-C would talk to Java amid a talk, and print py4j's traces. A shell
    that runs the tests in the background has the process ignore Ctrl-C, and so it stays.
    """
    del spark
    assert signal.getsignal(signal.SIGINT) in {signal.default_int_handler, signal.SIG_IGN}


def ended(folder: Path, number: signal.Signals, is_time: Callable[[int], object], *arguments: str) -> int:
    """Give a command a signal when it is time, and return its exit code: it ends soon with a
    sentence, and leaves no process and no file behind.
    """
    (folder / "tmp").mkdir()
    command = [sys.executable, "-m", "minicontroller", "pipeline", *arguments, "--tables", "tables"]
    variables = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(
        command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        until(lambda: is_time(run.pid), within=SPARK_SECONDS)
        began = time.monotonic()
        os.killpg(run.pid, number) if number == signal.SIGINT else run.send_signal(number)
        _, said = run.communicate()
    assert time.monotonic() - began < SOON_SECONDS
    assert said == "Interrupted.\n"
    until(lambda: not members(run.pid), within=SPARK_SECONDS)
    assert list((folder / "tmp").iterdir()) == []
    return run.returncode


def test_ended_while_spark_starts(tmp_path: Path) -> None:
    """Whoever gives up as soon as Java runs leaves neither Java nor files behind."""
    write(tmp_path / "a.ndjson", a_log(1))
    code = ended(tmp_path, signal.SIGTERM, lambda run: len(members(run)) > 1, "ingest", "--audit", ".")
    assert (code, (tmp_path / "tables").exists()) == (143, False)


def test_ended_while_a_policy_judges(tmp_path: Path) -> None:
    """A policy that does not end for any exception holds nobody up, and the tables are whole."""
    write_tables(tmp_path / "tables", [a_decision(1)])
    body = f"""
        def validate_create_topic(self, request, cluster):
            open({str(tmp_path / "judging")!r}, "w").close()
            while True:
                try:
                    __import__("time").sleep(60)
                except BaseException:
                    pass
    """
    in_python(tmp_path, body)
    judging = tmp_path / "judging"
    code = ended(tmp_path, signal.SIGINT, lambda _: judging.exists(), "backtest", "candidate.py:Candidate")
    assert (code, list((tmp_path / "tables").glob(".*"))) == (130, [])


WRITING = """
import sys, time
folder, end = sys.argv[1], time.monotonic() + 0.3
for number in range(1_000_000):
    if time.monotonic() > end:
        break
    try:
        open(f"{folder}/{number}", "w").close()
    except FileNotFoundError:
        break
"""


def test_a_folder_goes_in_which_somebody_still_writes(tmp_path: Path) -> None:
    """A process that was killed may write for a moment yet."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", WRITING, str(folder)]):
        until(lambda: list(folder.iterdir()))
        remove(folder)
        assert not folder.exists()


STUCK = """
import subprocess, sys, time
from pathlib import Path
from minicontroller.pipeline.ending import ending, on_signals

ending.folders.add(Path(sys.argv[1]))
with on_signals(), ending.of_children():
    child = subprocess.Popen(["sleep", "600"])
    told = False
    while True:
        try:
            if not told:  # in here, because the signal comes as soon as this is read
                told = True
                print(child.pid, flush=True)
            time.sleep(60)
        except BaseException:
            pass
"""


def test_a_process_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """A thread ends what the main thread holds up, with the processes and files that belong to
    it.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [sys.executable, "-c", STUCK, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        child = Path("/proc") / run.stdout.readline().strip()
        assert child.exists()
        run.send_signal(signal.SIGTERM)
        assert run.communicate()[1] == "Interrupted.\n"
    assert (run.returncode, folder.exists()) == (143, False)
    until(lambda: not child.exists(), within=SOON_SECONDS)


def test_ended_from_outside(tmp_path: Path) -> None:
    """SIGTERM to all processes at once, Java and all, ends a run that follows the log as Ctrl-C
    does: with its summary, or without if that takes too long, and without a trace. An archive of
    Spark's classes stays what it is.
    """
    kept = a_copied_archive(tmp_path / "cache")
    size = kept.stat().st_size
    with write(tmp_path / "a.ndjson", a_log(1)).open("ab") as stream:
        stream.write(b"no event" * (SMALL * EVENT_BYTES // 8) + b"\n")  # so much that Spark is asked to read it
    command = [sys.executable, "-m", "minicontroller", "pipeline", "ingest", "--audit", ".", "--tables", "tables"]
    with subprocess.Popen(
        [*command, "--follow", "--master", "local[1]"],
        cwd=tmp_path, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as run:  # fmt: skip
        until((tmp_path / "tables" / Table.PROBLEMS.value / "_delta_log").exists, within=SPARK_SECONDS)
        for process in members(run.pid):
            with suppress(ProcessLookupError):  # it may have ended because another one did
                os.kill(process, signal.SIGTERM)
        said, complaints = run.communicate()
    assert (run.returncode, complaints) in {(0, ""), (143, "Interrupted.\n")}
    assert said.partition("\n")[0] in {"3 new events from 1 file.", *[""] * (run.returncode == 143)}
    assert [(each, each.stat().st_size) for each in kept.parent.iterdir()] == [(kept, size)]


def members(session: int) -> list[int]:
    """Return the processes of a session that run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def said_without_spark(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """With a master beside the session that may be there, and with a Java that is not, so that
    whatever starts Spark says something else.
    """
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = CliRunner().invoke(pipeline, [*arguments, "--master", "local[1]"])
    assert result.exit_code == FAILED, result.output
    return result.output


def test_tables_that_cannot_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, and where another run is at work, is told before Spark is
    started, and no folder is made for it.
    """
    tables = tmp_path / "new" / "tables"
    ingest = ("ingest", "--audit", str(tmp_path), "--tables")
    said = said_without_spark(*ingest, str(tables), monkeypatch=monkeypatch)
    assert "no bin/java" in said or "the Spark session that exists already" in said
    assert not tables.parent.exists()
    (tmp_path / "file").touch()
    said = said_without_spark(*ingest, str(tmp_path / "file" / "tables"), monkeypatch=monkeypatch)
    assert f"Nothing can be written into {tmp_path}/file: Not a directory." in said


def test_tables_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads them is told before Spark is started who makes them."""
    (tmp_path / "rules.toml").write_text("[[partitions]]\nmax = 3\n")
    for command in (("backtest", str(tmp_path / "rules.toml")), ("report", "--out", str(tmp_path / "page.html"))):
        said = said_without_spark(*command, "--tables", str(tmp_path), monkeypatch=monkeypatch)
        assert f"There are no tables in {tmp_path}: `minicontroller pipeline ingest" in said


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            (
                "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job aborted.\n\tat org.apache.X\n"
                "Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device\n\tat java.base/Y\n\t... 18 more"
            ),
            "A disk is full: free some space,",
        ),
        (
            (
                "Job aborted: Lost task 0.0: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                '  File "a.py", line 1\nValueError: too large\n'
            ),
            "ValueError: too large",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x.", "[PATH_NOT_FOUND] Path does not exist: file:/x."),
        ("Caused by: java.lang.OutOfMemoryError: Java heap space", "Spark's Java has too little memory: give it more"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker", "Spark's workers have another version of Python than this one:"),
        (
            (
                "Task 1 in stage 0.0 failed 4 times, most recent failure: Lost task 1.3: ExecutorLostFailure (executor 6 exited caused by "
                "one of the running tasks) Reason: Command exited with code 137\nDriver stacktrace:\n\tat org.apache.X"
            ),
            "Spark's workers ended repeatedly (Command exited with code 137): their own logs",
        ),
        ("", "Exception"),
    ],
)
def test_what_went_wrong_in_the_first_place(told: str, said: str) -> None:
    """A person is told the first of a long chain of Java's exceptions, or what can be done."""
    assert first_line(Exception(told)).startswith(said)


def test_a_table_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """Whichever command meets it, the file is named in a sentence; what is no failure of Spark's
    stays what it is.
    """
    (tmp_path / "a.parquet").write_text("nonsense, but long enough")
    with pytest.raises(ClickException) as raised, failures_reported(Location.local(tmp_path)):
        spark.read.schema("a int").parquet(str(tmp_path)).count()
    assert raised.value.message.startswith(f"Spark failed: file:{tmp_path}/a.parquet is not a Parquet file.")
    with pytest.raises(ValueError, match="mine"), failures_reported(Location.local(tmp_path)):
        raise ValueError("mine")
