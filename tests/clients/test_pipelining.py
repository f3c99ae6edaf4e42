"""Requests that a client sends without waiting for the answers: carried out, and answered, one
after the other, at every node.
"""

from collections.abc import Iterator

import pytest

from tests.clients.test_any_node import WAIT_MS, new, of_topic
from tests.support.cluster import Cluster, unlike_kafka
from tests.support.wire import Body, Wire, read_answer

pytestmark = unlike_kafka("a Kafka broker in ZooKeeper mode forwards nothing")

ROUNDS = 200
AT_ONCE = 10

Question = tuple[str, int, Body]


@pytest.fixture(params=[1, 2, 3], ids=lambda node: f"node-{node}")
def wire(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Wire]:
    """A connection to each node in turn: two of them are not the controller."""
    with Wire(cluster.addresses[request.param]) as connection:
        yield connection


def pipelined(wire: Wire, *questions: Question) -> list[Body]:
    """All are sent before the first answer is read."""
    wire.send(b"".join(wire.frame(api, version, body) for api, version, body in questions))
    return [read_answer(api, version, wire.receive()) for api, version, _ in questions]


def creating(topic: str) -> Question:
    return "CreateTopics", 7, {"topics": [new(topic)], "timeout_ms": WAIT_MS}


def deleting(topic: str) -> Question:
    return "DeleteTopics", 5, {"topic_names": [topic], "timeout_ms": WAIT_MS}


def setting(topic: str, value: str) -> Question:
    return "IncrementalAlterConfigs", 1, of_topic(topic, value, config_operation=0)


def describing(topic: str) -> Question:
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": ["retention.ms"]}
    return "DescribeConfigs", 1, {"resources": [resource]}


def knowing(topic: str) -> Question:
    return "Metadata", 9, {"topics": [{"name": topic}], "allow_auto_topic_creation": False}


def test_the_last_of_two_changes_holds(wire: Wire, topic: str) -> None:
    """SET a, SET b ends in b, and what is read behind them is b, every time."""
    pipelined(wire, creating(topic))
    ends = []
    for _ in range(ROUNDS // AT_ONCE):
        answers = pipelined(wire, *(AT_ONCE * [setting(topic, "1000"), setting(topic, "2000"), describing(topic)]))
        assert {row["error_code"] for answer in answers if "responses" in answer for row in answer["responses"]} == {0}
        ends += [answer["results"][0]["configs"][0]["value"] for answer in answers if "results" in answer]
    assert ends == ROUNDS * ["2000"]


def test_what_was_created_is_known_behind_that(wire: Wire, topic: str) -> None:
    """CREATE x, METADATA x knows x, and DescribeConfigs too, every time."""
    for number in range(ROUNDS // AT_ONCE):
        name = f"{topic}-{number}"
        created, known, described = pipelined(wire, creating(name), knowing(name), describing(name))
        assert created["topics"][0]["error_code"] == 0
        assert (known["topics"][0]["error_code"], len(known["topics"][0]["partitions"])) == (0, 2)
        assert described["results"][0]["error_code"] == 0


def test_a_creation_behind_a_deletion_comes_after_it(wire: Wire, topic: str) -> None:
    """A creation sent behind a deletion either creates the topic again or finds it still being
    deleted (36, as in Kafka); then it does not exist afterwards.
    """
    for number in range(ROUNDS // AT_ONCE):
        name = f"{topic}-{number}"
        first, deleted, second, known = pipelined(wire, creating(name), deleting(name), creating(name), knowing(name))
        assert (deleted["responses"][0]["error_code"], known["topics"][0]["error_code"]) in {(0, 0), (0, 3)}
        made, found = second["topics"][0], known["topics"][0]
        assert (made["error_code"], found["error_code"]) in {(0, 0), (36, 3)}
        assert found["error_code"] or made["topic_id"] != first["topics"][0]["topic_id"]
