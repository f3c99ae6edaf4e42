"""Where clients stumble: each trap of the survey of clients, by its number there, as far as it
concerns what is served here.

Not here: ACLs, SCRAM, changes of reassignments (10, in part; 14 for ACLs) and members of groups
(16), which are not served, while reassignments are listed; 3 is `test_any_node.py`, 7 and 8 in
every version are the conformance suite's.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient

from tests.support.cluster import Cluster, controller_id, unlike_kafka
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire, request_frame

TOPIC = 2
NOT_ASKED = None  # how kafka-python shows -2147483648


@pytest.fixture
def wire(cluster: Cluster) -> Any:
    """A connection to the controller, which is where a real Kafka wants its writes."""
    with Wire(cluster.addresses[controller_id(cluster)]) as connection:
        yield connection


def create(wire: Wire, topic: str, version: int = 7, **more: Any) -> dict[str, Any]:
    wish = {"name": topic, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": [], **more}
    (row,) = wire.ask("CreateTopics", version, {"topics": [wish], "timeout_ms": 10_000})["topics"]
    assert isinstance(row, dict)
    return row


@pytest.mark.parametrize("version", range(2, 13))
def test_trap_1_the_cluster_id_is_never_null(cluster: Cluster, version: int) -> None:
    """Trap 1: a null cluster id kills confluent-kafka's process; every node tells the same id of 22
    characters in every version.
    """
    ids = set()
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            ids.add(wire.ask("Metadata", version, {"topics": []})["cluster_id"])
    (cluster_id,) = ids
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", cluster_id)


@pytest.mark.parametrize("version", range(1, 13))
def test_trap_2_the_controller_is_a_listed_broker(cluster: Cluster, version: int) -> None:
    """Traps 2 and 5: a controller of -1, or one that is not in the list of brokers, or an empty
    list stops clients.
    """
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            answer = wire.ask("Metadata", version, {"topics": []})
        listed = {broker["node_id"] for broker in answer["brokers"]}
        assert listed == set(cluster.addresses)
        assert answer["controller_id"] in listed


@unlike_kafka("a Kafka broker in ZooKeeper mode forwards nothing")
def test_trap_3_no_node_answers_not_controller(cluster: Cluster, topic: str) -> None:
    """Trap 3: NOT_CONTROLLER is badly handled by clients, so no node ever answers it to a write."""
    for number, address in cluster.addresses.items():
        with Wire(address) as wire:
            assert create(wire, f"{topic}-{number}")["error_code"] == 0


def test_trap_4_every_advertised_broker_listens(cluster: Cluster) -> None:
    """Trap 4: clients ask all brokers; each listens at its own address, and answers for itself as
    ListGroups wants it.
    """
    assert len(set(cluster.addresses.values())) == len(cluster.addresses)
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            assert wire.ask("ListGroups", 5, {}) == {"throttle_time_ms": 0, "error_code": 0, "groups": []}


def test_trap_6_nobody_is_throttled(wire: Wire, topic: str) -> None:
    """Trap 6: clients sleep as long as throttle_time_ms says; it is 0."""
    made = wire.ask("CreateTopics", 7, {"topics": [{"name": topic}], "timeout_ms": 10_000})
    gone = wire.ask("DeleteTopics", 5, {"topic_names": [topic], "timeout_ms": 10_000})
    seen = [wire.ask("Metadata", 12, {"topics": []}), wire.ask("ApiVersions", 2, {}), wire.ask("ListGroups", 5, {})]
    assert {answer["throttle_time_ms"] for answer in [made, gone, *seen]} == {0}


@pytest.mark.parametrize("version", range(4))
def test_trap_7_early_versions_always_create(
    wire: Wire, topic: str, everywhere: Callable[..., None], version: int
) -> None:
    """Trap 7: Metadata v0 to v3 has no flag: naming a topic makes it."""
    (row,) = wire.ask("Metadata", version, {"topics": [{"name": topic}]})["topics"]
    assert row["error_code"] == 5
    everywhere(topic, partitions=1)


def test_trap_7_later_versions_create_when_told(wire: Wire, topic: str) -> None:
    """Trap 7: from v4 on a topic is only made with the flag; naming none makes none, whatever the
    flag.
    """
    body = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    for _ in range(2):
        (row,) = wire.ask("Metadata", 12, body)["topics"]
        assert row["error_code"] == 3
    assert wire.ask("Metadata", 12, {"topics": [], "allow_auto_topic_creation": True})["topics"] == []


def test_trap_8_all_topics_or_none(wire: Wire, topic: str) -> None:
    """Trap 8: in v0 an empty list means all topics; from v1 on null means all and an empty list
    none.
    """
    create(wire, topic)
    everything = {row["name"] for row in wire.ask("Metadata", 0, {"topics": []})["topics"]}
    assert topic in everything
    for version in range(1, 13):
        assert wire.ask("Metadata", version, {"topics": []})["topics"] == []
        assert {row["name"] for row in wire.ask("Metadata", version, {"topics": None})["topics"]} == everything


def test_trap_9_topic_ids(wire: Wire, topic: str) -> None:
    """Trap 9: an id finds its topic; an unknown id is UNKNOWN_TOPIC_ID with a null name; a zero id
    beside a name is no id.
    """
    topic_id = create(wire, topic)["topic_id"]
    (row,) = wire.ask("Metadata", 12, {"topics": [{"name": None, "topic_id": topic_id}]})["topics"]
    assert (row["error_code"], row["name"], row["topic_id"]) == (0, topic, topic_id)
    unknown = topic_id[:-4] + ("0000" if topic_id[-4:] != "0000" else "1111")
    (row,) = wire.ask("Metadata", 12, {"topics": [{"name": None, "topic_id": unknown}]})["topics"]
    assert (row["error_code"], row["name"]) == (100, None)
    zero = "00000000-0000-0000-0000-000000000000"
    (row,) = wire.ask("Metadata", 12, {"topics": [{"name": topic, "topic_id": zero}]})["topics"]
    assert (row["error_code"], row["topic_id"]) == (0, topic_id)


def test_trap_10_null_against_empty(wire: Wire, topic: str) -> None:
    """Trap 10: null keys of DescribeConfigs are all of them (an empty list too, in Kafka); null
    rows of CreatePartitions are chosen.
    """
    create(wire, topic)
    counts = []
    for keys in (None, [], ["retention.ms"]):
        resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": keys}
        counts.append(len(wire.ask("DescribeConfigs", 4, {"resources": [resource]})["results"][0]["configs"]))
    assert counts == [36, 36, 1]
    grown = {"topics": [{"name": topic, "count": 2, "assignments": None}], "timeout_ms": 10_000}
    assert wire.ask("CreatePartitions", 3, grown)["results"][0]["error_code"] == 0
    none = {"topics": [{"name": topic, "count": 3, "assignments": []}], "timeout_ms": 10_000}
    assert wire.ask("CreatePartitions", 3, none)["results"][0]["error_code"] == 39


def test_trap_11_answers_name_what_was_asked(wire: Wire, topic: str) -> None:
    """Trap 11: librdkafka rejects a whole answer with a row too many, or of another name: one row a
    resource, in the request's order.
    """
    names = [f"{topic}-{n}" for n in range(4)]
    wish = {"topics": [{"name": name} for name in names], "timeout_ms": 10_000}
    assert [row["name"] for row in wire.ask("CreateTopics", 4, wish)["topics"]] == names
    resources = [
        {"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in reversed(names)
    ]
    results = wire.ask("DescribeConfigs", 1, {"resources": resources})["results"]
    assert [row["resource_name"] for row in results] == names[::-1]


def test_trap_12_no_time_to_wait(confluent: AdminClient, topic: str, everywhere: Callable[..., None]) -> None:
    """Trap 12: with operation_timeout 0 librdkafka hides REQUEST_TIMED_OUT: the call succeeds, and
    the topic comes.
    """
    confluent.create_topics([NewTopic(topic, 1, 1)], operation_timeout=0)[topic].result()
    everywhere(topic)


def test_trap_13_every_config_has_a_source_and_a_type(wire: Wire, topic: str) -> None:
    """Trap 13: kafka-python raises on sources and types that it does not know: all are filled in,
    in each answer with configs.
    """
    made = create(wire, topic)
    assert {config["config_source"] for config in made["configs"]} <= set(range(1, 9))
    own = next(iter(wire.ask("DescribeCluster", 1, {})["brokers"]))["broker_id"]
    for kind, name in ((TOPIC, topic), (4, "")):
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        (result,) = wire.ask("DescribeConfigs", 4, {"resources": [resource], "include_synonyms": True})["results"]
        for config in result["configs"]:
            assert config["config_source"] in range(1, 9)
            assert config["config_type"] in range(1, 10)
            assert all(synonym["source"] in range(1, 9) for synonym in config["synonyms"])
    assert own


def test_trap_13_every_config_of_a_node(cluster: Cluster) -> None:
    """Trap 13, for nodes: hundreds of keys, each with a source and a type; what is secret shows no
    value.
    """
    for number, address in cluster.addresses.items():
        resource = {"resource_type": 4, "resource_name": str(number), "configuration_keys": None}
        with Wire(address) as wire:
            (result,) = wire.ask("DescribeConfigs", 4, {"resources": [resource], "include_synonyms": True})["results"]
        assert len(result["configs"]) > 50
        for config in result["configs"]:
            assert config["config_source"] in range(1, 9)
            assert config["config_type"] in range(1, 10)
            assert config["is_sensitive"] == (config["config_type"] == 9)
            assert config["value"] is None or not config["is_sensitive"]


def test_trap_14_operations_that_clients_know(wire: Wire, topic: str) -> None:
    """Trap 14: not asked for means none told; asked for, only operations 3 to 14, which
    kafka-python can name.
    """
    create(wire, topic)
    body = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    (row,) = wire.ask("Metadata", 12, body)["topics"]
    assert row["authorized_operations"] is NOT_ASKED
    (row,) = wire.ask("Metadata", 12, {**body, "include_topic_authorized_operations": True})["topics"]
    assert row["authorized_operations"] == [3, 4, 5, 6, 7, 8, 10, 11]
    cluster = wire.ask("DescribeCluster", 1, {"include_cluster_authorized_operations": True})
    assert cluster["authorized_operations"] == [5, 7, 8, 9, 10, 11, 12]


@pytest.mark.usefixtures("coordinated")
@pytest.mark.parametrize("states", [["Stable"], ["STABLE"], ["empty"], ["no such state"]])
@pytest.mark.parametrize("types", [["Classic"], ["classic"], []])
def test_trap_15_filters_of_groups_in_any_case(wire: Wire, states: list[str], types: list[str]) -> None:
    """Trap 15: filters come in every case; none is an error."""
    answer = wire.ask("ListGroups", 5, {"states_filter": states, "types_filter": types})
    assert (answer["error_code"], answer["groups"]) == (0, [])


@pytest.mark.parametrize("api_key", [19, 3, 32])
def test_trap_18_a_version_that_is_not_offered_ends_the_connection(cluster: Cluster, api_key: int) -> None:
    """Trap 18: kafkajs and old Sarama send what is not offered: the connection ends, and nothing
    hangs.
    """
    frame = bytearray(request_frame("ApiVersions", 0, {}))
    frame[4:6], frame[6:8] = api_key.to_bytes(2, "big"), (99).to_bytes(2, "big")
    with Wire(cluster.bootstrap.split(",")[0]) as wire, pytest.raises(ConnectionEndedError):
        wire.exchange(bytes(frame))


def test_trap_19_the_address_that_was_dialled(cluster: Cluster) -> None:
    """Trap 19: nodes advertise the addresses that the client was given."""
    assert sorted(cluster.bootstrap.split(",")) == sorted(cluster.addresses.values())


def test_trap_20_answers_within_the_clients_patience(cluster: Cluster, topic: str) -> None:
    """Trap 20: a client that waits 4 s gets its answer in that time, and resends nothing."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        client.create_topics([NewTopic(topic, 3, 3)], request_timeout=60)[topic].result()
    except KafkaException as error:
        pytest.fail(f"no answer in time: {error}")


def test_traps_of_old_clients_without_api_versions(cluster: Cluster, topic: str) -> None:
    """Old Sarama sends its first request without ApiVersions, in the oldest versions: it is
    answered.
    """
    with Wire(cluster.addresses[controller_id(cluster)]) as wire:
        assert create(wire, topic, version=0) == {"name": topic, "error_code": 0}
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]}
        body = {"resources": [resource]}
        seen = until(lambda: wire.ask("DescribeConfigs", 0, body)["results"][0]["configs"])
    assert seen[0]["value"] == "604800000"


def test_kafka_python_starts_with_an_empty_list_of_topics(cluster: Cluster) -> None:
    """A bootstrap that asks for no topics with the flag for creation set makes nothing (trap 7)."""
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        before = wire.ask("Metadata", 1, {"topics": None})["topics"]
        KafkaAdminClient(bootstrap_servers=cluster.bootstrap).close()
        after = wire.ask("Metadata", 1, {"topics": None})["topics"]
    assert {row["name"] for row in before} == {row["name"] for row in after}
