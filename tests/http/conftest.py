"""A cluster whose HTTP port is asked from outside."""

from collections.abc import Iterator

import pytest

from tests.support.cluster import MiniCluster, running_cluster

POLICY = """
from minicontroller.policies import PolicyViolation, TopicManagementPolicy


class Teams(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if not request.topic.startswith("team-"):
            raise PolicyViolation("A topic begins with its team.")
"""


@pytest.fixture(name="cluster", scope="module")
def running_with_policy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniCluster]:
    file = tmp_path_factory.mktemp("policy") / "teams.py"
    file.write_text(POLICY)
    with running_cluster(settings={"topic.management.policy.class.name": f"{file}:Teams"}) as cluster:
        yield cluster
