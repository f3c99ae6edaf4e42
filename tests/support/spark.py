"""A Spark cluster of processes: a master and workers, from the jars that pyspark carries, whose
Python has what the pipeline needs but not the pipeline itself.
"""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.support.waiting import until

HOME = Path(pyspark.__file__).parent
ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)", re.ASCII)
REGISTERED = "Successfully registered with master"


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


@contextmanager
def standalone(folder: Path, python: Path = Path(sys.executable)) -> Iterator[str]:
    """Run a master and a worker with two cores; yield the master's address."""
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(python)}
    start = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.{0}.{1}"]

    @contextmanager
    def running(part: str, *options: str) -> Iterator[Path]:
        log = folder / f"{part}.log"
        command = [word.format(part, part.title()) for word in start]
        with log.open("wb") as stream:
            process = subprocess.Popen([*command, *options], env=environment, cwd=folder, stdout=stream, stderr=stream)
        try:
            yield log
        finally:
            process.terminate()
            process.wait()

    with running("master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0") as log:
        found = until(lambda: ADDRESS.search(log.read_text()))
        assert found is not None
        address = found.group(1)
        work = ("--work-dir", str(folder / "work"), "--cores", "2", "--memory", "1g", "--webui-port", "0")
        with running("worker", "--host", "127.0.0.1", *work, address) as said:
            until(lambda: REGISTERED in said.read_text())
            yield address
