"""Spark's clusters and a server of Spark Connect, from the jars that pyspark carries, whose Python
has what the pipeline needs but not the pipeline itself.

`python -m tests.support.spark` has Spark's classes kept before the tests, so that no test waits
until Java has written them.
"""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from minicontroller.pipeline.session import archive
from tests.support.waiting import until

HOME = Path(pyspark.__file__).parent
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CONNECT_STARTED = re.compile(r"Spark Connect server started at: \S+:([0-9]+)", re.ASCII)

SESSION = """
from minicontroller.pipeline.parallel import map_on_workers
from minicontroller.pipeline.session import spark_session

with spark_session("local[1]") as spark:
    map_on_workers(spark, len, ["work"], None)
"""


def keep_classes() -> None:
    """Start and end Spark, unless its classes are kept already."""
    kept = archive()
    if kept is not None and not kept.exists():
        # Java holds the pipe, so that this returns when the classes are written
        subprocess.run([sys.executable, "-c", SESSION], stdout=subprocess.PIPE, check=True)


def java_options() -> str:
    """Return options by which the Javas of a cluster start in half the time: they use the classes
    that are kept here for Spark on one machine.
    """
    kept = archive()
    classes = f" -XX:SharedArchiveFile={kept}" if kept is not None and kept.exists() else ""
    return f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC{classes}"


def soon_started() -> dict[str, str]:
    """Return settings with these options for driver and executors."""
    return {f"spark.{part}.extraJavaOptions": java_options() for part in ("driver", "executor")}


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Return settings as spark-submit takes them."""
    return [option for key, value in settings.items() for option in ("--conf", f"{key}={value}")]


def home(folder: Path) -> Path:
    """Make a home of Spark whose cluster keeps its files in this folder."""
    made = folder / "spark"
    made.mkdir()
    for part in HOME.iterdir():
        (made / part.name).symlink_to(part)
    return made


def bare_python(folder: Path) -> Path:
    """Make an environment with all libraries of this one, and without the program itself: it is
    installed by a .pth file, which Python reads in an environment's own folder only.
    """
    made = folder / "bare"
    venv.create(made, symlinks=True)
    [packages] = made.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    python = made / "bin" / "python"
    assert subprocess.run(
        [python, "-c", "import minicontroller"], cwd=folder, capture_output=True, check=False
    ).returncode
    return python


def _environment(python: Path) -> dict[str, str]:
    spark = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": java_options()}
    return {**os.environ, **spark, "PYSPARK_PYTHON": str(python)}


@contextmanager
def _running(log: Path, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Run a command in the folder of its log within the block."""
    with log.open("wb") as stream:
        process = subprocess.Popen(command, env=environment, cwd=log.parent, stdout=stream, stderr=stream)
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


@contextmanager
def connect_server(folder: Path, python: Path) -> Iterator[str]:
    """Run a server of Spark Connect on two cores; yield its address."""
    submit = (str(HOME / "bin" / "spark-submit"), "--master", "local[2]", "--class", CONNECT_SERVER)
    settings = as_options({"spark.connect.grpc.binding.port": "0", "spark.ui.enabled": "false", **soon_started()})
    with _running(folder / "server.log", [*submit, *settings, "spark-internal"], _environment(python)) as log:
        found = until(lambda: CONNECT_STARTED.search(log.read_text()))
        assert found is not None
        yield f"sc://127.0.0.1:{found.group(1)}"


if __name__ == "__main__":
    keep_classes()
