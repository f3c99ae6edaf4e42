"""Clients of others produce, consume, commit and have transactions on `up --records`, and see what
they saw at a real Kafka 3.9.2.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.records.clients import RECORDED, WORKING, differences, seen_by, with_records
from tests.support.cluster import MiniCluster
from tests.support.maven import needs_maven

RUN = [name for name in WORKING if name != "Java 3.9.2"]
"""The Java clients of one version only: the two have the same script."""
EXPECTED = json.loads(RECORDED.read_text())


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with with_records() as cluster:
        yield cluster


@needs_maven
@pytest.mark.slow
@pytest.mark.parametrize("client", RUN)
def test_sees_what_it_sees_at_kafka(cluster: MiniCluster, client: str, tmp_path: Path) -> None:
    """Every step and all that is left behind are the same."""
    address = cluster.bootstrap.split(",")[0]
    assert differences(EXPECTED[client], seen_by(client, address, address, tmp_path / "none")) == []
