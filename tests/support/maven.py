"""Maven, and what it runs in `tests/java/admin-client`, with the kafka-clients of a given version.

One Maven at a time, whichever process of the tests wants it: neither its repository nor a project's
`target` bears two.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "minicontroller"
"""The directory in which all checkouts keep what they downloaded or built."""

PROJECT = Path(__file__).parents[1] / "java" / "admin-client"
MISSING = [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]
LIMIT_SECONDS = 270
"""The seconds that one Maven may take once it no longer waits for others."""

VERSIONS = ["3.9.2", "4.4.0"]
"""Kafka's last line with ZooKeeper, and one after it, whose client negotiates other versions."""

needs_maven = pytest.mark.skipif(
    bool(MISSING), reason=f"{' and '.join(MISSING)} missing (Debian: apt install maven default-jdk-headless)"
)
time_to_download = pytest.mark.timeout(2 * LIMIT_SECONDS)  # the first run fetches Maven's plugins and the clients


def java_tests_hold(*arguments: str) -> None:
    """Without a look at the registry, unless something is missing: it would cost each run a few
    seconds.
    """
    with alone():
        run = maven(PROJECT / "pom.xml", "-o", *arguments, "test")
        if run.returncode and "offline" in run.stdout + run.stderr:
            run = maven(PROJECT / "pom.xml", *arguments, "test")
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def maven(pom: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["mvn", "-q", "-B", "-f", str(pom), *arguments]
    environment = {**os.environ, "MAVEN_OPTS": "-XX:TieredStopAtLevel=1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment)


@contextmanager
def alone() -> Iterator[None]:
    """While the block lasts nobody else runs Maven."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(folder: Path, pom: Path, *arguments: str) -> Path:
    """A folder of the cache, whole. Where it is not yet there, Maven makes it: an argument's `{}`
    is the place to make it at.
    """
    if not folder.exists():
        with alone(), tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            made = Path(temporary, "made")
            if not folder.exists():
                run = maven(pom, *(argument.format(made) for argument in arguments))
                assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
                folder.parent.mkdir(parents=True, exist_ok=True)
                made.rename(folder)
    return folder
