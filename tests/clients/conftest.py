"""One cluster for all tests of clients on each store; every test names its own topics."""

from collections.abc import Callable, Iterator
from functools import partial
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient

from tests.support.cluster import ON_KAFKA, SAME_AS_KAFKA, Cluster, running_any, until_everywhere
from tests.support.nodes import running_nodes
from tests.support.waiting import until
from tests.support.wire import Wire
from tests.support.zookeeper import ZooKeeperServer

STORES = ["kafka"] if ON_KAFKA else ["memory", "zookeeper"]


@pytest.fixture(scope="session", params=STORES)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes: of `up` on the embedded store, and of `serve`, each with one PLAINTEXT listener,
    on ZooKeeper.
    """
    if request.param == "zookeeper":
        zookeeper: ZooKeeperServer = request.getfixturevalue("zookeeper")
        settings = SAME_AS_KAFKA | {"metadata.completion": "cluster"}
        with running_nodes(tmp_path_factory.mktemp("nodes"), [f"{zookeeper.connect}/clients"] * 3, settings) as nodes:
            yield nodes
    else:
        with running_any(request.param) as running:
            yield running


@pytest.fixture(scope="session")
def confluent(cluster: Cluster) -> AdminClient:
    """librdkafka, by way of confluent-kafka."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


@pytest.fixture(scope="module")
def python_admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    """kafka-python. Closed after each module: its thread draws from the global random numbers,
    which Hypothesis watches elsewhere.
    """
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"t-{uuid4()}"


@pytest.fixture
def everywhere(cluster: Cluster) -> Callable[..., None]:
    """Waits until every node shows a topic: a client that asks any node must not be told of an
    older time.
    """
    return partial(until_everywhere, cluster)


@pytest.fixture
def create(confluent: AdminClient, everywhere: Callable[..., None]) -> Callable[..., None]:
    """Makes topics with confluent-kafka and waits until every node shows them: the next question
    may go to any node.
    """

    def create_and_wait(*topics: NewTopic) -> None:
        for name, future in confluent.create_topics(list(topics)).items():
            future.result()
            everywhere(name)

    return create_and_wait


@pytest.fixture
def made(create: Callable[..., None], topic: str) -> None:
    """The topic exists, with two partitions of one replica."""
    create(NewTopic(topic, 2, 1))


@pytest.fixture(scope="session")
def coordinated(cluster: Cluster) -> None:
    """The topic of the group coordinators is made when it is first needed; librdkafka asks three
    times only, then it waits for ever.
    """
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            ask = partial(wire.ask, "FindCoordinator", 1, {"key": "any"})
            until(ask, right=lambda answer: answer["error_code"] == 0)
