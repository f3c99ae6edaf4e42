"""Kafka's znodes: what a real Kafka wrote is read, and written again byte for byte.

The vectors in `tests/vectors/znodes/` were recorded from Apache Kafka 3.9.1 (see `record.py`
there); the rest pins what older versions wrote and what no Kafka writes.
"""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.entities import NO_TOPIC_ID, Broker, Endpoint, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import (
    acls,
    broker_notifications,
    cluster,
    configs,
    layout,
    registrations,
    tokens,
    topics,
)
from minicontroller.cluster.znodes.cluster import (
    NO_FEATURES,
    ControllerZnode,
    decode_cluster_id,
    decode_controller,
    decode_controller_epoch,
    encode_cluster_id,
    encode_controller,
    encode_controller_epoch,
    features_are_disabled,
)
from minicontroller.cluster.znodes.configs import (
    decode_config,
    decode_config_change,
    encode_config,
    encode_config_change,
)
from minicontroller.cluster.znodes.content import MalformedZnodeError
from minicontroller.cluster.znodes.entity_names import sanitized
from minicontroller.cluster.znodes.topics import (
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
    uuid_bytes,
    uuid_text,
)
from minicontroller.controller.active import control_requests
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.registry import KAFKA

pytestmark = pytest.mark.slow

VECTORS = Path(__file__).parent.parent / "vectors" / "znodes"
ROWS = [
    (file.stem, *line.split("\t"))
    for file in sorted(VECTORS.glob("*.tsv"))
    for line in file.read_text().splitlines()
    if not line.startswith("#")
]
DATA = {(file, path): None if data == "null" else data.encode() for file, path, data in ROWS}
NOT_OURS = {"/latest_producer_id_block", "/admin/reassign_partitions"}


def rewritten(path: str, data: bytes) -> bytes:
    """Return a znode as we write it after we have read it."""
    names = path.split("/")[1:]
    if path.startswith("/brokers/ids/"):
        return registrations.encode_broker(
            registrations.decode_broker(int(names[2]), data, 7), int(json.loads(data)["timestamp"])
        )
    if path.endswith("/state"):
        return encode_partition_state(decode_partition_state(Partition(()), data, 0))
    if path.startswith("/brokers/topics/"):
        return encode_topic(decode_topic(names[2], data))
    if (pattern := acls.pattern_at(path)) is not None:
        assert acls.acl_path(pattern) == path
        return acls.encode_acls(acls.decode_acls(data))
    if path.startswith(acls.LITERAL_CHANGES):
        return acls.encode_acl_change(acls.decode_literal_acl_change(data))[1]
    if path.startswith(acls.EXTENDED_CHANGES):
        return acls.encode_acl_change(acls.decode_extended_acl_change(data))[1]
    if path.startswith(tokens.ROOT):
        return tokens.encode_token(tokens.decode_token(names[2], data, 0))
    if path.startswith(tokens.CHANGES):
        return tokens.encode_token_change(tokens.decode_token_change(data))
    if path.startswith("/config/changes/"):
        return encode_config_change("/".join(decode_config_change(data)))
    if path.startswith("/config/"):
        return encode_config(decode_config(data))
    if path == layout.CONTROLLER:
        return encode_controller(decode_controller(data).broker_id, int(json.loads(data)["timestamp"]))
    if path == layout.CONTROLLER_EPOCH:
        return encode_controller_epoch(decode_controller_epoch(data))
    if path == layout.CLUSTER_ID:
        return encode_cluster_id(decode_cluster_id(data))
    assert path == layout.FEATURE
    return NO_FEATURES


@pytest.mark.parametrize("file", sorted({file for file, _ in DATA}))
def test_znodes_are_byte_for_byte_what_kafka_writes(file: str) -> None:
    """Every znode of a real cluster, read and written again, is the same down to the order of its
    keys.
    """
    seen = {path: data for (name, path), data in DATA.items() if name == file and data is not None}
    ours = {path: data if path in NOT_OURS else rewritten(path, data) for path, data in seen.items()}
    assert ours == seen
    assert "/brokers/ids/1" in seen


def test_znodes_without_data_are_kafka_s() -> None:
    """What Kafka leaves without data is what we create without: the top-level paths, the
    partitions, the deletion marks.
    """
    administered = {path for (file, path), data in DATA.items() if file == "administered" and data is None}
    assert set(layout.PERSISTENT_PATHS) - {layout.LATEST_PRODUCER_ID_BLOCK} <= administered
    assert {layout.partitions_path("orders"), layout.partition_path("orders", 0)} <= administered
    assert DATA["frozen", layout.delete_topic_path("orders")] is None
    assert {path for (file, path) in DATA if file == "secured"} >= set(layout.PERSISTENT_PATHS)
    authorized = {path for (file, path), data in DATA.items() if file == "authorized" and data is None}
    assert {*acls.ACL_PATHS, *tokens.PATHS} <= authorized


def test_paths_are_kafka_s() -> None:
    """The paths of a topic, a broker and their configs are where Kafka has them."""
    paths = {
        layout.topic_path("orders"),
        layout.partition_state_path("orders", 2),
        layout.topic_config_path("orders"),
        layout.broker_config_path("1"),
        layout.broker_config_path(layout.DEFAULT_ENTITY),
        layout.broker_path(2),
        f"{layout.CONFIG_CHANGE_PREFIX}0000000000",
        f"/config/users/{sanitized('a*b')}/clients/{layout.DEFAULT_ENTITY}",
    }
    assert paths <= {path for file, path in DATA if file == "administered"}


def test_a_topic_is_read_whole() -> None:
    """The assignment in order of preference, the id in 16 bytes, and a reassignment under way."""
    topic = decode_topic("many-configs", DATA["frozen", "/brokers/topics/many-configs"])
    assert uuid_text(topic.topic_id) in str(DATA["frozen", "/brokers/topics/many-configs"])
    (partition,) = topic.partitions
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ((3, 1), (3,), (1,))
    assert not partition.has_state
    wide = decode_topic("wide-100", DATA["administered", "/brokers/topics/wide-100"])
    assert len(wide.partitions) == 100
    assert all(len(set(partition.replicas)) == 2 for partition in wide.partitions)


def test_a_partition_s_state_is_read_into_the_partition() -> None:
    """Leader, epochs and ISR come from the state, the version of the znode is the partition epoch,
    the assignment stays.
    """
    before = Partition((3, 2, 1), adding_replicas=(3,), removing_replicas=(1,))
    after = decode_partition_state(before, DATA["failed", layout.partition_state_path("orders", 0)], 4)
    assert after == Partition((3, 2, 1), -1, 3, (3,), 1, 4, 0, (3,), (1,))


def test_a_recovering_leader_is_written_as_such() -> None:
    """leader_recovery_state is there only while a leader recovers; its place among the keys follows
    from Kafka's map.
    """
    partition = Partition((1,), 1, 2, (1,), 3, 0, leader_recovery_state=1)
    data = encode_partition_state(partition)
    assert data == b'{"controller_epoch":3,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":2,"isr":[1]}'
    assert decode_partition_state(Partition((1,)), data, 0) == partition


MOVING = (
    b'{"partitions":{"11":[3,1,2],"12":[1,2],"13":[3,1,2],"14":[1,2],"15":[1,2],"16":[1,2],"17":[3,1,2],"18":[1,2],'
    b'"19":[1,2],"0":[3,1,2],"1":[1,2],"2":[3,1,2],"3":[3,1,2],"4":[3,1,2],"5":[3,1,2],"6":[3,1,2],"7":[3,1,2],'
    b'"8":[3,1,2],"9":[3,1,2],"10":[3,1,2]},"topic_id":"jrxTjiujRuCZQNCq77kFcg","adding_replicas":{"11":[3],"13":[3],'
    b'"17":[3],"0":[3],"2":[3],"3":[3],"4":[3],"5":[3],"6":[3],"7":[3],"8":[3],"9":[3],"10":[3]},"removing_replicas":'
    b'{"11":[2],"13":[2],"17":[2],"0":[2],"2":[2],"3":[2],"4":[2],"5":[2],"6":[2],"7":[2],"8":[2],"9":[2],"10":[2]},'
    b'"version":3}'
)
"""Kafka 3.9.1 wrote this while thirteen of twenty partitions moved from brokers 1 and 2 to 3 and
1.
"""


def test_a_topic_that_moves() -> None:
    """The replicas that partitions gain and lose stand in Kafka's order."""
    topic = decode_topic("mid", MOVING)
    assert encode_topic(topic) == MOVING
    assert (topic.partitions[11].adding_replicas, topic.partitions[11].removing_replicas) == ((3,), (2,))
    assert not topic.partitions[12].is_moving


def test_a_topic_without_an_id_stays_without() -> None:
    """A topic from before Kafka 2.8 is read and written without an id, as versions 1 and 2 are."""
    topic = decode_topic("old", b'{"version":1,"partitions":{"0":[1,2]}}')
    assert topic == Topic("old", NO_TOPIC_ID, (Partition((1, 2)),))
    assert decode_topic("old", b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{}}') == topic
    assert encode_topic(topic) == (
        b'{"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{},"version":3}'
    )


OLD_REGISTRATIONS = [
    (b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1"}', [Endpoint("PLAINTEXT", "h", 9092)], None),
    (
        b'{"version":2,"host":"h","port":9092,"endpoints":["PLAINTEXT://h:9092","SSL://h:9093"],"timestamp":"1"}',
        [Endpoint("PLAINTEXT", "h", 9092), Endpoint("SSL", "h", 9093, "SSL")],
        None,
    ),
    (b'{"version":3,"endpoints":["SASL_SSL://:1"],"rack":"r"}', [Endpoint("SASL_SSL", "", 1, "SASL_SSL")], "r"),
    (
        b'{"version":4,"endpoints":["IN://[::1]:9092"],"listener_security_protocol_map":{"IN":"SSL"},"rack":null,"x":[]}',
        [Endpoint("IN", "::1", 9092, "SSL")],
        None,
    ),
]


@pytest.mark.parametrize(("data", "endpoints", "rack"), OLD_REGISTRATIONS, ids=["v1", "v2", "v3", "v4"])
def test_registrations_of_older_brokers_are_read(data: bytes, endpoints: list[Endpoint], rack: str | None) -> None:
    """Versions 1 to 4 are read: host and port alone, listeners named after their protocols, a rack,
    a map of protocols.
    """
    assert registrations.decode_broker(5, data, 77) == Broker(5, tuple(endpoints), rack, 77)


def test_an_ipv6_address_is_written_in_brackets() -> None:
    """A host with colons is bracketed, and read back."""
    broker = Broker(1, (Endpoint("IN", "fe80::1%eth0", 9092, "SSL"),), epoch=3)
    data = registrations.encode_broker(broker, 1)
    assert b'"endpoints":["IN://[fe80::1%eth0]:9092"]' in data
    assert registrations.decode_broker(1, data, 3) == broker


def test_config_changes_of_version_1_are_read() -> None:
    """Before KIP-55 a notification had the type and the name of the entity."""
    old = b'{"version":1,"entity_type":"clients","entity_name":"x"}'
    assert decode_config_change(old) == ("clients", "x")
    path = decode_config_change(b'{"version":2,"entity_path":"users/a/clients/<default>"}')
    assert path == ("users", "a/clients/<default>")


def test_a_config_znode_without_data_configures_nothing() -> None:
    """Kafka has such znodes between others."""
    assert dict(decode_config(None)) == dict(decode_config(b"")) == {}
    assert encode_config({}) == b'{"version":1,"config":{}}'


def test_a_controller_of_a_kraft_quorum_is_seen() -> None:
    """A migration shows in the controller's znode; version 1 did not have that key."""
    assert decode_controller(b'{"version":1,"brokerid":3,"timestamp":"1"}').kraft_controller_epoch == -1
    migrating = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
    assert decode_controller(migrating) == ControllerZnode(
        version=2, broker_id=3000, timestamp="1", kraft_controller_epoch=5
    )


def test_notifications_of_brokers_are_read() -> None:
    """What brokers before 2.7 tell of their ISRs, and any broker of a failed log directory."""
    partitions = [broker_notifications.NotifiedPartition("a", 0), broker_notifications.NotifiedPartition("b", 7)]
    data = broker_notifications.encode_isr_change(partitions)
    assert data == b'{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"b","partition":7}]}'
    assert broker_notifications.decode_isr_change(data) == partitions
    assert broker_notifications.encode_log_dir_event(3) == b'{"version":1,"broker":3,"event":1}'
    assert broker_notifications.decode_log_dir_event(b'{"version":1,"broker":3,"event":1,"more":0}') == 3


def test_ids_are_kafka_s_text() -> None:
    """An id is 22 characters of url-safe base64."""
    assert uuid_text(bytes(16)) == "A" * 22
    assert uuid_bytes("5eeOS_cdQKO1xUArm-11kA").hex() == "e5e78e4bf71d40a3b5c5402b9bed7590"
    assert uuid_text(bytes.fromhex("e5e78e4bf71d40a3b5c5402b9bed7590")) == "5eeOS_cdQKO1xUArm-11kA"
    for text in ("", "short", "5eeOS_cdQKO1xUArm-11kAAA", "né"):
        with pytest.raises(MalformedZnodeError):
            uuid_bytes(text)


def decode_broker(data: bytes | None) -> Broker:
    return registrations.decode_broker(1, data, 1)


def decode_assignment(data: bytes | None) -> Topic:
    return decode_topic("t", data)


def decode_state(data: bytes | None) -> Partition:
    return decode_partition_state(Partition((1,)), data, 0)


Decoder = Callable[[bytes | None], object]
DECODERS: list[Decoder] = [
    decode_broker,
    decode_assignment,
    decode_state,
    decode_controller,
    decode_controller_epoch,
    decode_cluster_id,
    decode_config,
    decode_config_change,
    broker_notifications.decode_isr_change,
    broker_notifications.decode_log_dir_event,
    features_are_disabled,
]
SENSELESS: list[tuple[Decoder, bytes | None]] = [
    *((decode, b"{") for decode in DECODERS),
    *((decode, b"\xff\xfe") for decode in DECODERS),
    *((decode, None) for decode in DECODERS if decode is not decode_config),
    (decode_broker, b'{"version":0,"host":"h","port":1}'),
    (decode_broker, b'{"version":5,"endpoints":["nothing"]}'),
    (decode_broker, b'{"version":5,"endpoints":["A://h:x"]}'),
    (decode_broker, b'{"version":5,"endpoints":["A://h:1"]}'),
    (decode_broker, b'{"version":5,"endpoints":["SSL://h:65536"]}'),
    (decode_broker, b'{"version":5,"endpoints":["SSL://h:11111111111"]}'),
    (decode_broker, b'{"version":5,"endpoints":["SSL://h:-1"]}'),
    (decode_broker, b'{"version":1,"host":"h"}'),
    (decode_broker, b'{"version":1,"host":"]","port":1}'),
    (decode_broker, b'{"version":5,"host":"a\\nb","port":1}'),
    (decode_broker, b'{"version":5,"endpoints":["SSL://%s:1"]}' % (b"h" * 256)),
    (decode_broker, b'{"version":5,"endpoints":["SSL://h:1"],"rack":"%s"}' % (b"r" * 256)),
    (decode_broker, b'{"version":5,"endpoints":[%s]}' % b",".join([b'"SSL://h:1"'] * 101)),
    *((decode, b'{"nobody knows":' + b"[" * 50_000 + b"]" * 50_000 + b"}") for decode in DECODERS),
    *((decode, b'{"version":NaN}') for decode in DECODERS),
    (decode_assignment, b'{"version":1,"partitions":{"0":[-1]}}'),
    (decode_assignment, b'{"version":1,"partitions":{"0":[2147483648]}}'),
    (decode_state, b'{"leader":-2,"leader_epoch":1,"isr":[1]}'),
    (decode_state, b'{"leader":1,"leader_epoch":2147483648,"isr":[1]}'),
    (decode_state, b'{"leader":1,"leader_epoch":1,"isr":[1],"leader_recovery_state":2}'),
    (decode_controller_epoch, b"2147483647"),
    (decode_controller_epoch, b"1_0"),
    (decode_controller_epoch, b" 7"),
    (decode_controller_epoch, b"9" * 5_000),
    (decode_cluster_id, b'{"version":"1","id":""}'),
    (decode_cluster_id, b'{"version":"1","id":"%s"}' % (b"c" * 256)),
    (decode_config_change, b'{"version":2,"entity_path":"topics/a//b"}'),
    (decode_config_change, b'{"version":2,"entity_path":"topics/.."}'),
    (decode_config_change, b'{"version":2,"entity_path":"topics/a\\u0000b"}'),
    (broker_notifications.decode_log_dir_event, b'{"version":1,"broker":-1}'),
    (decode_assignment, b'{"version":1,"partitions":{"1":[1]}}'),
    (decode_assignment, b'{"version":1,"partitions":{"x":[1]}}'),
    (decode_assignment, b'{"version":3,"partitions":{"0":[1]},"topic_id":"short"}'),
    (decode_state, b'{"version":1,"leader":1}'),
    (decode_controller_epoch, b"{}"),
    (decode_config, b'{"version":1,"config":{"a":1}}'),
    (decode_config, b'{"version":1,"config":[]}'),
    (decode_config_change, b'{"version":2,"entity_path":"topics"}'),
    (decode_config_change, b'{"version":1}'),
]


@pytest.mark.parametrize(("decode", "data"), SENSELESS)
def test_what_makes_no_sense_is_an_error_of_ours(decode: Decoder, data: bytes | None) -> None:
    """A znode that no Kafka would have written is refused with a text that says what is wrong."""
    with pytest.raises(MalformedZnodeError, match=r"\w+ \w+"):
        decode(data)


FIELDS = sorted(
    {
        field.encode_name
        for module in (broker_notifications, cluster, configs, registrations, topics)
        for shape in vars(module).values()
        if isinstance(shape, type) and issubclass(shape, msgspec.Struct)
        for field in msgspec.structs.fields(shape)
    }
)
PLAUSIBLE = st.sampled_from(
    ["0", "1", "PLAINTEXT", "PLAINTEXT://h:9092", "A://[::1]:1", "topics/t", "5eeOS_cdQKO1xUArm-11kA"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.integers(-2, 5) | st.floats() | st.text() | PLAUSIBLE,
    lambda inner: st.lists(inner) | st.dictionaries(PLAUSIBLE, inner) | st.dictionaries(st.sampled_from(FIELDS), inner),
)
ZNODES = st.one_of(
    st.none(),
    st.binary(),
    JSON.map(msgspec.json.encode),
    st.dictionaries(st.sampled_from(FIELDS), JSON).map(msgspec.json.encode),
)


@given(data=ZNODES)
def test_any_bytes_give_a_value_or_an_error_of_ours(data: bytes | None) -> None:
    """No znode, however strange, raises anything but MalformedZnodeError."""
    for decode in DECODERS:
        try:
            decode(data)
        except MalformedZnodeError:
            continue


@given(
    registration=st.fixed_dictionaries(
        {"version": st.integers(-1, 6)},
        optional={
            "endpoints": st.lists(PLAUSIBLE | st.from_regex(r"[A-Z]{1,3}://[^:]*:[0-9]{1,12}", fullmatch=True)),
            "listener_security_protocol_map": st.dictionaries(
                st.sampled_from(["A", "PLAINTEXT"]), st.sampled_from(["SSL", "QUIC", "PLAINTEXT"])
            ),
            "rack": st.text() | st.none(),
            "host": st.text() | st.none(),
            "port": st.integers(-(2**40), 2**40),
        },
    )
)
def test_who_is_read_can_be_told(registration: dict[str, object]) -> None:
    """A registration that is taken fits into what the controller tells of it, in every version that
    a node may speak.
    """
    try:
        broker = decode_broker(msgspec.json.encode(registration))
    except MalformedZnodeError:
        return
    message = control_requests.update_metadata(Image().with_brokers([broker]), broker, [])
    for version in (5, 8):
        header = RequestHeader(api_key=6, api_version=version, correlation_id=1, client_id="")
        KAFKA.decode_request(KAFKA.encode_request(header, message)[4:])


@pytest.mark.parametrize(
    "name", ["nine", "", "-1", "+1", "01", " 1", "1 ", "1.0", "2147483648", "9" * 5_000, "\u0661", "1_0"]
)
def test_brokers_are_called_by_numbers(name: str) -> None:
    """Broker ids are read as Kafka writes them; another name below `/brokers/ids` is nobody's."""
    assert [registrations.decode_broker_id(text) for text in ("0", "1001", "2147483647")] == [0, 1001, 2_147_483_647]
    with pytest.raises(MalformedZnodeError):
        registrations.decode_broker_id(name)
