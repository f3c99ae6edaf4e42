"""Kafka's own clients, Kafka Streams among them, which go all ways in one process of Java."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.gateway.clients.worlds import FORBIDDEN, Access
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import CACHE, kept
from tests.support.programs import TESTS

PROGRAMS = TESTS / "java" / "clients"
LOG4J = TESTS / "java" / "kafka-tools" / "log4j.properties"
LIMIT_SECONDS = 400
STREAMS = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>minicontroller</groupId><artifactId>streams</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><version>{0}</version></dependency>
  </dependencies>
</project>
"""


def by_java(accesses: Sequence[Access], program: str, libs: Path) -> list[list[str]]:
    """Return the lines that a program of tests/java/clients prints, for each way."""
    command = [*java(libs, f"-Dlog4j.configuration=file:{LOG4J}"), str(PROGRAMS / f"{program}.java")]
    with tempfile.TemporaryDirectory() as folder:
        for access in accesses:
            file = Path(folder, f"{access.way}.properties")
            file.write_text("".join(f"{key}={value}\n" for key, value in access.java().items()))
            command += [str(file), access.prefix, f"{access.prefix}{FORBIDDEN}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return [
        [line.removeprefix(f"{number} ") for line in lines if line.startswith(f"{number} ")]
        for number in range(len(accesses))
    ]


def clients_of(accesses: Sequence[Access], version: str) -> list[list[str]]:
    """Go through administration, records, groups of both protocols, and transactions."""
    return by_java(accesses, "Clients", kafka_libs(version))


def streams_of(accesses: Sequence[Access], version: str) -> list[list[str]]:
    """Count words exactly once, with a store that is restored from its changelog."""
    return by_java(accesses, "WordCount", _streams_libs(version))


def share_groups_of(accesses: Sequence[Access], version: str) -> list[list[str]]:
    """Have two members of a share group read records."""
    return by_java(accesses, "Share", kafka_libs(version))


def _streams_libs(version: str) -> Path:
    libs = CACHE / f"kafka-streams-{version}"
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as pom:
        pom.write(STREAMS.format(version))
        pom.flush()
        return kept(libs, Path(pom.name), "dependency:copy-dependencies", "-DoutputDirectory={}")
