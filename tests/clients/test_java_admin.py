"""The Java AdminClient: Kafka's own client, of the 3.9 line and of 4.x."""

import pytest

from tests.clients.conftest import STORES
from tests.support.cluster import Cluster, other_ids
from tests.support.maven import VERSIONS, java_tests_hold, needs_maven, time_to_download


@pytest.mark.slow
@time_to_download
@needs_maven
@pytest.mark.usefixtures("coordinated")
@pytest.mark.parametrize(("cluster", "version"), list(zip(STORES, VERSIONS, strict=False)), indirect=["cluster"])
def test_the_java_admin_client_does_the_main_job(cluster: Cluster, version: str) -> None:
    """All tests in tests/java/admin-client hold with one version of kafka-clients on each store,
    which it cannot see; it starts from nodes that are not the controller.
    """
    bootstrap = ",".join(cluster.addresses[number] for number in other_ids(cluster))
    java_tests_hold(f"-Dkafka.version={version}", f"-Dbootstrap.servers={bootstrap}", f"-Dnodes={cluster.bootstrap}")
