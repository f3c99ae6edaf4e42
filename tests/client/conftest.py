"""The clusters that the commands are tried on: ours, and a real Kafka 3.9.1."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.installed import Installed
from tests.support.cluster import Cluster, running_cluster
from tests.support.kafka import running_kafka
from tests.support.maven import needs_maven


@pytest.fixture(
    scope="session", params=["minicontroller", pytest.param("kafka", marks=[pytest.mark.slow, needs_maven])]
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three nodes."""
    with running_kafka() if request.param == "kafka" else running_cluster() as running:
        yield running


@pytest.fixture
def command(cluster: Cluster, tmp_path: Path) -> Installed:
    """`minicontroller`, called from an empty folder, and asking that cluster."""
    return Installed(cluster.bootstrap, tmp_path)
