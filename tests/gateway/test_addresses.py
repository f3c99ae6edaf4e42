"""No answer that passes has an address of a broker: every API is asked in every version that is
advertised, before a Kafka 3.9 with ZooKeeper and the newest Kafka without it. Kafka's own classes
write the requests and read the responses.
"""

import uuid
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from operator import eq
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.record import MemoryRecordsBuilder

from minicontroller.client.configuration import Address
from minicontroller.gateway.apis import APIS
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.offset_fetch import OffsetFetchGroup, OffsetFetchRequest
from minicontroller.protocol.registry import KAFKA
from tests.gateway.test_frames import framed
from tests.gateway.test_node_endpoints import HEADER, Places, moved
from tests.gateway.test_passing import Stream, question, request
from tests.protocol.java_oracle import JavaOracle
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.kafka import KAFKA_VERSION, KafkaProcesses, kafka_libs
from tests.support.kafka_kraft import KRAFT, NEWEST_VERSION, ZOOKEEPER, Kafka
from tests.support.maven import needs_maven
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.wire import Wire

pytestmark = [needs_maven, pytest.mark.slow]

HOST, OWN_HOST = "127.0.0.1", "localhost"
WITH_ADDRESSES = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_ACLS)
PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
ASKS_FOR_GROUPS = range(8, 10)


class World(msgspec.Struct, frozen=True):
    """A Kafka, a gateway before it that has another host, and Kafka's codecs."""

    kafka: KafkaProcesses
    gateway: GatewayProcess
    oracle: JavaOracle


@contextmanager
def world_of(kafka: Kafka, brokers: int) -> Iterator[World]:
    with (
        kafka.running(brokers) as cluster,
        running_gateway(cluster.bootstrap, settings={"advertised.host": OWN_HOST}) as gateway,
        JavaOracle(kafka_libs(kafka.version)) as oracle,
    ):
        yield World(cluster, gateway, oracle)


@pytest.fixture(scope="module", name="newest")
def newest_fixture() -> Iterator[World]:
    with world_of(Kafka(NEWEST_VERSION, KRAFT), 2) as world:
        features = ("share.version", "group.version")
        updates = [{"feature": name, "maxVersionLevel": 1, "upgradeType": 1} for name in features]
        values = {"timeoutMs": 60_000, "featureUpdates": updates, "validateOnly": False}
        with Stream(world.gateway.bootstrap) as stream:
            stream.send(world.oracle.request("UpdateFeaturesRequest", 1, values))
            assert world.oracle.read("UpdateFeaturesResponse", 1, stream.frame()[5:]).plain["errorcode"] == 0
        yield world


def class_of(world: World, key: int) -> str:
    """Return the name of Kafka's class of a request."""
    if key == ApiKey.LIST_CLIENT_METRICS_RESOURCES and world.kafka.version == NEWEST_VERSION:
        return "ListConfigResourcesRequest"
    return "".join(part.capitalize() for part in ApiKey(key).name.split("_")) + "Request"


def asked(world: World, key: int, version: int) -> bytes:
    """Return a request that is answered, where it can with an address."""
    if key == ApiKey.PRODUCE:
        values: dict[str, Any] = {"transactionalId": None, "acks": 1, "timeoutMs": 1000, "topicData": []}
        return world.oracle.request(class_of(world, key), version, values)
    if key == ApiKey.OFFSET_FETCH and version in ASKS_FOR_GROUPS:  # without one there is no answer
        return request(key, version, OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g")]), 7)
    if key in WITH_ADDRESSES:
        return request(key, version, question(ApiKey(key), version), 7)
    return world.oracle.request(class_of(world, key), version)


def search(world: World) -> None:
    """Search each response for the host of the brokers and controllers. Their ports as numbers
    would be found by chance, too.
    """
    with Wire(world.gateway.bootstrap) as wire:
        rows = wire.ask("ApiVersions", 0)["api_keys"]
    assert {row["api_key"] for row in rows} <= APIS.keys()
    unanswered = set()
    for row in rows:
        oldest = row["min_version"] if row["api_key"] != ApiKey.PRODUCE or world.kafka.version != NEWEST_VERSION else 3
        for version in range(oldest, row["max_version"] + 1):
            name = f"{ApiKey(row['api_key']).name} {version}"
            with Stream(world.gateway.bootstrap) as stream:
                stream.send(asked(world, row["api_key"], version))
                frame = stream.frame()
            if frame[:4] != (7).to_bytes(4, "big"):
                unanswered.add(name)
            assert HOST.encode() not in frame, name
    assert unanswered == set()


def test_no_answer_of_kafka_3_9_has_an_address_of_a_broker() -> None:
    """No answer of an API of the last Kafka with ZooKeeper names a broker's address (U-3b)."""
    with world_of(Kafka(KAFKA_VERSION, ZOOKEEPER), 1) as world:
        search(world)


def test_no_answer_of_the_newest_kafka_has_an_address_of_a_broker(newest: World) -> None:
    """No answer of an API of the newest Kafka names a broker's address, those of share groups
    included (U-3b).
    """
    search(newest)


def test_a_cluster_that_is_newer(newest: World) -> None:
    """A client before a newer cluster gets the versions that the gateway knows, and the features
    that need no others; with them it works.
    """
    answers = []
    for address in (newest.kafka.addresses[1], newest.gateway.bootstrap):
        with Stream(address) as stream:
            message = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            stream.send(request(ApiKey.API_VERSIONS, 3, message))
            answer = KAFKA.decode_response(ApiKey.API_VERSIONS, 3, stream.frame())[1]
            assert isinstance(answer, ApiVersionsResponse)
            answers.append(answer)
    direct, through = ({row.api_key: row.max_version for row in answer.api_keys} for answer in answers)
    assert direct[ApiKey.METADATA] > through[ApiKey.METADATA] == APIS[ApiKey.METADATA].newest
    hidden = {
        f"{class_of(newest, key).removesuffix('Request')} {version}"
        for key, version in direct.items()
        if version > through.get(key, -1)
    }
    told = hidden_by_the_page()
    assert {each for each in hidden if each not in told and each.split()[0] not in told} == set()
    assert {each.name for each in answers[1].finalized_features} == {
        each.name for each in answers[0].finalized_features if each.name != "streams.version"
    }
    admin = AdminClient({"bootstrap.servers": newest.gateway.bootstrap})
    admin.create_topics([NewTopic("newer", 1, 1)])["newer"].result(PATIENCE_SECONDS)
    producer = Producer({"bootstrap.servers": newest.gateway.bootstrap, "transactional.id": "newer"})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce("newer", b"value")
    producer.commit_transaction(PATIENCE_SECONDS)
    for protocol in ("classic", "consumer"):
        settings = {"group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": newest.gateway.bootstrap, **settings})
        consumer.subscribe(["newer"])
        try:
            got = until(partial(consumer.poll, 0.5), right=lambda seen: seen is not None and not seen.error())
            assert got is not None
            assert got.value() == b"value"
        finally:
            consumer.close()


def hidden_by_the_page() -> set[str]:
    """Return what docs/gateway.md says to be hidden: names of APIs, some with a version."""
    rows = PAGE.read_text().partition("\n## What does not pass\n")[2].partition("\n## ")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| ")]
    return {each.strip() for cell in cells for each in cell.replace(" and ", ", ").split(",")}


def test_leaders_elsewhere_are_named_at_the_gateway(newest: World) -> None:
    """A broker that is asked for a partition of another one names that broker at its address of the
    gateway, and at its own if it is asked directly, wherever such a response has a place for it
    (U-3b).
    """
    admin = AdminClient({"bootstrap.servers": newest.gateway.bootstrap})
    admin.create_topics([NewTopic("lonely", 1, replica_assignment=[[1]])])["lonely"].result(PATIENCE_SECONDS)
    topic_id = until(partial(topic_id_of, newest.gateway.bootstrap, "lonely"))
    for address, wanted in (
        (newest.kafka.addresses[2], newest.kafka.addresses[1]),
        (newest.gateway.addresses[2], newest.gateway.addresses[1]),
    ):
        until(partial(leaders_told_by, newest, address, topic_id), right=partial(eq, [wanted] * 9))


def topic_id_of(address: str, topic: str) -> str:
    """Return the id of a topic as Kafka's JSON has it, empty if the broker does not know it yet."""
    with Wire(address) as wire:
        (row,) = wire.ask("Metadata", 12, {"topics": [{"name": topic}]})["topics"]
    if not row["topic_id"]:
        return ""
    return urlsafe_b64encode(uuid.UUID(row["topic_id"]).bytes).decode().rstrip("=")


def leaders_told_by(world: World, address: str, topic_id: str) -> list[str]:
    """Return the endpoints in the responses of a broker that lacks the partition, nine if it knows
    of the topic.
    """
    told = []
    with Stream(address) as stream:  # of which the session of the shared records is
        for name, version, values in wrong_leader(topic_id):
            stream.send(world.oracle.request(name + "Request", version, values))
            response = world.oracle.read(name + "Response", version, stream.frame()[5:])
            assert response.left == 0
            told += [f"{each['host']}:{each['port']}" for each in response.plain["nodeendpoints"]]
    return told


def wrong_leader(topic_id: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield requests for partition 0 of the topic in each version whose response has endpoints."""
    partition = {"partition": 0, "currentLeaderEpoch": -1, "fetchOffset": 0, "lastFetchedEpoch": -1}
    fetch: dict[str, Any] = {
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 1000,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
    }
    fetch |= {"forgottenTopicsData": [], "rackId": ""}
    partition |= {"logStartOffset": -1, "partitionMaxBytes": 0}
    for version in range(16, 19):
        yield "Fetch", version, fetch | {"topics": [{"topicId": topic_id, "partitions": [partition]}]}
    records = b64encode(batch_of_records()).decode()
    for version in range(10, 14):
        named = {"name": "lonely"} if version < 13 else {"topicId": topic_id}
        topics = [named | {"partitionData": [{"index": 0, "records": records}]}]
        yield "Produce", version, {"transactionalId": None, "acks": 1, "timeoutMs": 1000, "topicData": topics}
    member = {"groupId": "g", "memberId": urlsafe_b64encode(uuid.uuid4().bytes).decode()}
    shared = {
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 1000,
        "maxRecords": 1,
        "batchSize": 1,
        "forgottenTopicsData": [],
    }
    topics = [{"topicId": topic_id, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}]}]
    yield "ShareFetch", 1, {**member, **shared, "shareSessionEpoch": 0, "topics": topics}
    newer = {"shareAcquireMode": 0, "isRenewAck": False}
    yield "ShareFetch", 2, {**member, **shared, **newer, "shareSessionEpoch": 1, "topics": topics}


@pytest.mark.parametrize("name", ["ShareFetch", "ShareAcknowledge"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("host", ["g", OWN_HOST, "gateway.example.com"])
def test_endpoints_of_shared_records(newest: World, name: str, version: int, host: str) -> None:
    """A response keeps its length and everything but the addresses. If those of the gateway are too
    long for it, the endpoints are left out.
    """
    key = ApiKey.SHARE_FETCH if name == "ShareFetch" else ApiKey.SHARE_ACKNOWLEDGE
    for partitions, endpoints in product(range(3), range(4)):
        values = share_response(name, version, partitions, endpoints)
        frame = HEADER + newest.oracle.write(f"{name}Response", version, values)
        gateway = Places(host)
        out = moved(key, version, framed(frame), gateway, [9, 40, 77])
        assert len(out) == 4 + len(frame)
        before, after = (newest.oracle.read(f"{name}Response", version, data[5:]) for data in (frame, out[4:]))
        assert after.left == 0
        wanted = [each | {"host": host, "port": each["nodeid"]} for each in before.plain["nodeendpoints"]]
        fits = endpoints and len(host) <= len(HOST)
        assert after.plain == before.plain | {"nodeendpoints": wanted if fits else []}
        assert gateway.learned == {number: Address(HOST, 9092) for number in range(endpoints)}


def share_response(name: str, version: int, partitions: int, endpoints: int) -> dict[str, Any]:
    partition: dict[str, Any] = {
        "partitionIndex": 0,
        "errorCode": 6,
        "errorMessage": None,
        "currentLeader": {"leaderId": 1, "leaderEpoch": 2},
    }
    values: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": "x" * partitions}
    if name == "ShareFetch" or version > 1:
        values["acquisitionLockTimeoutMs"] = 1000
    if name == "ShareFetch":
        acquired = [{"firstOffset": 1, "lastOffset": 2, "deliveryCount": 3}] * partitions
        partition |= {"acknowledgeErrorCode": 0, "acknowledgeErrorMessage": "no", "acquiredRecords": acquired}
        partition |= {"records": b64encode(batch_of_records()).decode()}
    topic = {
        "topicId": urlsafe_b64encode(bytes(range(16))).decode().rstrip("="),
        "partitions": [partition] * partitions,
    }
    rows = [{"nodeId": number, "host": HOST, "port": 9092, "rack": "r" * number or None} for number in range(endpoints)]
    return values | {"responses": [topic] * partitions, "nodeEndpoints": rows}


def batch_of_records() -> bytes:
    batch = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1000)
    batch.append(timestamp=1, key=None, value=b"value")
    batch.close()
    return bytes(batch.buffer())
