"""The Java AdminClient, by Maven: Kafka's own client, of the 3.9 line and of 4.x, which negotiates other versions."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, other_ids

PROJECT = Path(__file__).parents[1] / "java" / "admin-client"
MISSING = [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]
LIMIT_SECONDS = 270


def maven(*arguments: str) -> subprocess.CompletedProcess[str]:
    """All tests of the project."""
    command = ["mvn", "-q", "-B", "-f", str(PROJECT / "pom.xml"), *arguments, "test"]
    environment = {**os.environ, "MAVEN_OPTS": "-XX:TieredStopAtLevel=1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=environment)


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT_SECONDS)  # the first run downloads Maven's plugins and the clients
@pytest.mark.usefixtures("coordinated")
@pytest.mark.skipif(
    bool(MISSING), reason=f"{' and '.join(MISSING)} missing (Debian: apt install maven default-jdk-headless)"
)
@pytest.mark.parametrize("version", ["3.9.1", "4.1.0"])
def test_the_java_admin_client_does_the_main_job(cluster: Cluster, version: str) -> None:
    """All tests in tests/java/admin-client hold with that version of kafka-clients, which starts from nodes that are not the controller."""
    bootstrap = ",".join(cluster.addresses[number] for number in other_ids(cluster))
    arguments = [f"-Dkafka.version={version}", f"-Dbootstrap.servers={bootstrap}", f"-Dnodes={cluster.bootstrap}"]
    run = maven("-o", *arguments)
    if run.returncode and "offline" in run.stdout + run.stderr:
        run = maven(*arguments)  # what is needed has not been downloaded yet
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
