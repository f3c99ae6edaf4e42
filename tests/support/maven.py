"""The tests in Java, by Maven: `tests/java/admin-client` with the kafka-clients of a given version."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1] / "java" / "admin-client"
MISSING = [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]
LIMIT_SECONDS = 270

VERSIONS = ["3.9.1", "4.1.0"]
"""Kafka's last line with ZooKeeper, and one after it, whose client negotiates other versions."""

needs_maven = pytest.mark.skipif(
    bool(MISSING), reason=f"{' and '.join(MISSING)} missing (Debian: apt install maven default-jdk-headless)"
)
time_to_download = pytest.mark.timeout(2 * LIMIT_SECONDS)  # the first run fetches Maven's plugins and the clients


def java_tests_hold(*arguments: str) -> None:
    """Without a look at the registry, unless something is missing: it would cost each run a few seconds."""
    run = maven("-o", *arguments)
    if run.returncode and "offline" in run.stdout + run.stderr:
        run = maven(*arguments)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def maven(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["mvn", "-q", "-B", "-f", str(PROJECT / "pom.xml"), *arguments, "test"]
    environment = {**os.environ, "MAVEN_OPTS": "-XX:TieredStopAtLevel=1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment)
