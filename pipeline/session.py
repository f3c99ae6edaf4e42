"""Spark, started and ended: quiet unless asked otherwise, with every way in which it fails to start
told in a sentence.

Rule: a session lives as long as one command. Whatever is wrong with Java or the master is found
before anything is read or written.
"""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

LOCAL = "local[*]"
CONNECT_SECONDS = 5.0
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Of spark-submit: where Java's side is."""
STDERR = 2
CAUSE, TRACE = "Caused by: ", "Traceback (most recent call last)"
SENTENCE = 500
"""Characters; some of what Spark says holds a whole plan."""
TOO_OLD = "UnsupportedClassVersionError"
NO_JVM = "Error: Could not create the Java Virtual Machine"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET = """
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""
"""Of log4j, in the driver: what goes wrong reaches Python as an exception, and is told there.
Without a level of its own Spark would give the gateway one, and say so.
"""

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "minicontroller",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # otherwise other tools do not know that it is UTC
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.python.authenticate.socketTimeout": "2m",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # folders are listed sooner than a job for it has begun
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
"""Whoever wants others says so with --conf."""


class SparkUnavailableError(Exception):
    """Spark cannot be started; the message is a sentence that says why, and what to do."""


@contextmanager
def spark_session(
    master: str | None = None, *, settings: Mapping[str, str] | None = None, verbose: bool = False
) -> Iterator[SparkSession]:
    """Start a Spark session for the time of the block. Raises SparkUnavailableError.

    Without a master it is the one that spark-submit was given, if that started us, or this machine;
    settings of spark-submit that are not given here hold.
    """
    _check_java()
    submitted = _submitted()
    master = master or submitted.get("spark.master", LOCAL)
    _check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with TemporaryDirectory(prefix="minicontroller-spark-") as folder:
        chosen = {**SETTINGS, **submitted, **(settings or {})}
        if verbose:
            spark = _start(master, chosen)
        else:
            chosen[JAVA_OPTIONS] = f"{chosen.get(JAVA_OPTIONS, '')} {_quiet(Path(folder))}".strip()
            with _stderr_in(Path(folder) / "stderr"):
                spark = _start(master, chosen)
        try:
            yield spark
        finally:
            spark.stop()


def _submitted() -> dict[str, str]:
    """Return the settings of spark-submit, which only Java knows; none if we were started
    otherwise.
    """
    if SUBMITTED not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # noqa: SLF001 - until then a SparkConf knows nothing of Java's side
    return dict(SparkConf(loadDefaults=True).getAll())


def conf_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Read the options `--conf KEY=VALUE`. Raises ValueError with a sentence."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith("spark."):
            raise ValueError(f"--conf {pair}: write it as spark.KEY=VALUE.")
        settings[key] = value
    return settings


def _quiet(folder: Path) -> str:
    """Make an option with which Java logs nothing."""
    file = folder / "log4j2.properties"
    file.write_text(QUIET, encoding="utf-8")
    return f"-Dlog4j2.configurationFile={file.as_uri()}"


@contextmanager
def _stderr_in(file: Path) -> Iterator[None]:
    """Give what is started in the block this file as its stderr: Java warns of modules that Spark
    asks for. If the start fails, the error says what the file holds.
    """
    sys.stderr.flush()
    ours = os.dup(STDERR)
    with file.open("wb") as stream:
        os.dup2(stream.fileno(), STDERR)
    try:
        yield
    except SparkUnavailableError as error:
        said = _reason(file.read_text(encoding="utf-8", errors="replace").splitlines())
        raise SparkUnavailableError(f"Spark cannot be started: {said}" if said else str(error)) from None
    finally:
        os.dup2(ours, STDERR)
        os.close(ours)


def _reason(lines: Sequence[str]) -> str | None:
    """Return what Java said before it ended; what it says of its own options stands before its
    complaint.
    """
    if any(TOO_OLD in line for line in lines):
        return "this Java is too old, and Spark needs 17 or newer."
    for before, line in pairwise(("", *lines)):
        if line.startswith(("Error", "Exception")):
            return (
                before
                if before and line.startswith(NO_JVM)
                else line.rpartition("Exception: ")[2].removeprefix("Error: ")
            )
    return None


def _start(master: str, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise SparkUnavailableError(f"Spark cannot be started: {first_line(error)}") from None
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            raise SparkUnavailableError(
                f"Spark cannot be started with --master {master}: {first_line(error)}"
            ) from None
        raise


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise SparkUnavailableError(
            f"JAVA_HOME is {home}, but there is no bin/java in it: Spark needs Java, 17 or newer."
        )
    if not home and shutil.which("java") is None:
        raise SparkUnavailableError(
            "Spark needs Java, 17 or newer, and there is none: install one (Debian: apt install default-jre-headless)."
        )


def _check_master(master: str) -> None:
    """Refuse a master that cannot be reached: Spark itself would try for minutes."""
    if not master.startswith("spark://"):
        return
    failures = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except ValueError:
            raise SparkUnavailableError(f"--master {master}: write it as spark://HOST:PORT.") from None
        except OSError as error:
            failures.append(error.strerror or str(error))
        else:
            return
    raise SparkUnavailableError(f"No Spark master answers at {master}: {failures[-1]}.")


def first_line(error: BaseException) -> str:
    """Return what went wrong in the first place, out of all that Spark says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and TRACE not in line]
    told = [line for line in lines if "Exception: " in line or "Error: " in line]
    causes = [line for line in told if line.startswith(CAUSE)]
    chosen = (causes[-1:] or told or lines or [type(error).__name__])[0]
    return chosen.removeprefix(CAUSE).rpartition("Exception: ")[2][:SENTENCE]
