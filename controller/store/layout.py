"""Kafka's znodes: where they lie and what is written in them.

Rule: pure. What is written is byte for byte what Kafka 3.9 writes, down to the order of keys; what is read may have come from
any Kafka since 0.8 or from another tool: unknown keys are passed over, and what makes no sense is a `LayoutError`.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote

import msgspec

from ..cluster.image import NO_CONFIGS, NO_TOPIC_ID, Broker, Endpoint, Partition, Topic
from .java_order import hash_table_order, partition_order

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
LATEST_PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
DEFAULT_ENTITY = "<default>"
TOPICS_ENTITY, BROKERS_ENTITY = "topics", "brokers"
"""The first part of an entity's path below `/config`."""

PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    BROKER_CONFIGS,
    "/config/ips",
)
"""What every Kafka broker creates at its start where it is missing, with null data."""

NO_FEATURES = b'{"features":{},"version":2,"status":1}'
"""Of `/feature`. A feature that a Kafka 3.x broker does not know makes it exit: nothing else is ever written."""

Shape = TypeVar("Shape")

RECOVERING = 1
ENDPOINT = re.compile(r"([^:/]+)://\[?([0-9A-Za-z\-%._:]*?)\]?:(-?[0-9]+)")


class LayoutError(ValueError):
    """A znode holds what no Kafka would have written."""


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(entity: str) -> str:
    """`entity` is a broker's id, or DEFAULT_ENTITY for all of them."""
    return f"{BROKER_CONFIGS}/{entity}"


def delete_topic_path(topic: str) -> str:
    """The mark of a topic to be deleted, without data."""
    return f"{DELETE_TOPICS}/{topic}"


def sanitized(name: str) -> str:
    """The name of a user, client or address as part of a path (topics and brokers need none of this)."""
    return quote(name, safe="").replace("~", "%7E")


def uuid_text(value: bytes) -> str:
    """22 characters of url-safe base64, as Kafka prints its ids."""
    return urlsafe_b64encode(value)[:22].decode()


def uuid_bytes(text: str) -> bytes:
    try:
        value = urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise LayoutError(f"{text!r} is no id") from error
    if len(value) != 16:
        raise LayoutError(f"{text!r} is no id")
    return value


# --- cluster id, controller, epoch ---


class ClusterId(msgspec.Struct):
    id: str


class Controller(msgspec.Struct, rename={"broker_id": "brokerid", "kraft_controller_epoch": "kraftControllerEpoch"}):
    """Who holds `/controller`."""

    broker_id: int
    kraft_controller_epoch: int = -1
    """Above 0 while a KRaft quorum owns the cluster (a migration): hands off."""


def encode_cluster_id(cluster_id: str) -> bytes:
    return b'{"version":"1","id":%s}' % quoted(cluster_id)


def decode_cluster_id(data: bytes | None) -> str:
    return read(CLUSTER_ID_READER, data).id


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    text = f'{{"version":2,"brokerid":{broker_id},"timestamp":"{timestamp_ms}","kraftControllerEpoch":-1}}'
    return text.encode()


def decode_controller(data: bytes | None) -> Controller:
    return read(CONTROLLER_READER, data)


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    try:
        return int(data or b"")
    except ValueError as error:
        raise LayoutError(f"{data!r} is no controller epoch") from error


# --- broker registration ---


class Registration(msgspec.Struct):
    version: int
    host: str | None = None
    port: int = -1
    endpoints: list[str] | None = None
    listener_security_protocol_map: dict[str, str] = {}
    rack: str | None = None


def encode_broker(broker: Broker, timestamp_ms: int, jmx_port: int = -1) -> bytes:
    """Version 5. Host and port are those of the first listener in plain text, for clients of the oldest kind."""
    plain = next((each for each in broker.endpoints if each.security_protocol == "PLAINTEXT"), None)
    protocols = {each.listener: each.security_protocol for each in broker.endpoints}
    fields: dict[str, object] = {
        "features": {},
        "listener_security_protocol_map": protocols,
        "endpoints": [endpoint_text(each) for each in broker.endpoints],
        "rack": broker.rack,
        "jmx_port": jmx_port,
        "port": plain.port if plain else -1,
        "host": plain.host if plain else None,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if broker.rack is None:
        del fields["rack"]
    return msgspec.json.encode(fields)


def decode_broker(broker_id: int, data: bytes | None, epoch: int) -> Broker:
    """Of versions 1 to 5; `epoch` is the transaction that created the znode."""
    registration = read(REGISTRATION_READER, data)
    if registration.version < 1:
        raise LayoutError(f"Version {registration.version} of a broker's registration is unknown")
    protocols = registration.listener_security_protocol_map
    if registration.version == 1 or registration.endpoints is None:
        endpoints: tuple[Endpoint, ...] = (Endpoint("PLAINTEXT", registration.host or "", registration.port),)
    else:
        endpoints = tuple(decode_endpoint(text, protocols) for text in registration.endpoints)
    return Broker(broker_id, endpoints, registration.rack, epoch)


def endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def decode_endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = ENDPOINT.fullmatch(text)
    if match is None:
        raise LayoutError(f"{text!r} is no endpoint")
    listener, host, port = match.groups()
    # Before version 4 a listener was named after its protocol.
    return Endpoint(listener, host, int(port), protocols.get(listener, listener))


# --- topic assignment ---


class Assignment(msgspec.Struct):
    partitions: dict[int, tuple[int, ...]]
    version: int = 1
    topic_id: str | None = None
    adding_replicas: dict[int, tuple[int, ...]] = {}
    removing_replicas: dict[int, tuple[int, ...]] = {}


def encode_topic(topic: Topic) -> bytes:
    """Version 3. A topic without an id (from before Kafka 2.8) stays without."""
    order = partition_order(len(topic.partitions))
    topic_id = "" if topic.topic_id == NO_TOPIC_ID else f'"topic_id":"{uuid_text(topic.topic_id)}",'
    replicas = replicas_text((i, topic.partitions[i].replicas) for i in order)
    adding = replicas_text((i, partition.adding_replicas) for i, partition in enumerate(topic.partitions))
    removing = replicas_text((i, partition.removing_replicas) for i, partition in enumerate(topic.partitions))
    maps = f'"partitions":{replicas},{topic_id}"adding_replicas":{adding},"removing_replicas":{removing}'
    return f'{{{maps},"version":3}}'.encode()


def decode_topic(name: str, data: bytes | None) -> Topic:
    """Of versions 1 to 3, with the assignments only: the states and the configs lie elsewhere."""
    assignment = read(ASSIGNMENT_READER, data)
    count = len(assignment.partitions)
    if assignment.partitions.keys() != set(range(count)):
        raise LayoutError(f"The partitions of {name} are not numbered from 0 to {count - 1}")
    adding, removing = assignment.adding_replicas, assignment.removing_replicas
    partitions = tuple(
        Partition(assignment.partitions[i], adding_replicas=adding.get(i, ()), removing_replicas=removing.get(i, ()))
        for i in range(count)
    )
    return Topic(name, uuid_bytes(assignment.topic_id) if assignment.topic_id else NO_TOPIC_ID, partitions)


def replicas_text(assignments: Iterable[tuple[int, Sequence[int]]]) -> str:
    parts = [f'"{i}":[{",".join(map(str, replicas))}]' for i, replicas in assignments if replicas]
    return f"{{{','.join(parts)}}}"


# --- partition state ---


class State(msgspec.Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = 0
    leader_recovery_state: int = 0


def encode_partition_state(partition: Partition) -> bytes:
    recovery = f'"leader_recovery_state":{RECOVERING},' if partition.leader_recovery_state == RECOVERING else ""
    isr = ",".join(map(str, partition.isr))
    return (
        f'{{"controller_epoch":{partition.controller_epoch},"leader":{partition.leader},"version":1,{recovery}'
        f'"leader_epoch":{partition.leader_epoch},"isr":[{isr}]}}'
    ).encode()


def decode_partition_state(partition: Partition, data: bytes | None, version: int) -> Partition:
    """The partition with its state; `version` of the znode is the partition epoch."""
    state = read(STATE_READER, data)
    return Partition(
        partition.replicas,
        state.leader,
        state.leader_epoch,
        partition.replicas if state.isr == partition.replicas else state.isr,  # one object for both
        state.controller_epoch,
        version,
        state.leader_recovery_state,
        partition.adding_replicas,
        partition.removing_replicas,
    )


# --- configs and their changes ---


class EntityConfig(msgspec.Struct):
    config: dict[str, str] = {}
    version: int = 1


class ConfigChange(msgspec.Struct):
    version: int
    entity_path: str = ""
    entity_type: str = ""
    entity_name: str = ""


def encode_config(configs: Mapping[str, str]) -> bytes:
    """Of a topic, a broker or another entity. A topic without overrides has this znode too."""
    parts = [quoted(key) + b":" + quoted(configs[key]) for key in hash_table_order(configs)]
    return b'{"version":1,"config":{%s}}' % b",".join(parts)


def decode_config(data: bytes | None) -> Mapping[str, str]:
    """A znode without data stands between others (`/config/users/<user>` of a client's quota) and configures nothing."""
    if not data:
        return NO_CONFIGS
    return read(CONFIG_READER, data).config or NO_CONFIGS


def encode_config_change(entity_path: str) -> bytes:
    """Tells the brokers to read `/config/<entity_path>` again; for a sequential znode below `CONFIG_CHANGES`."""
    return b'{"version":2,"entity_path":%s}' % quoted(entity_path)


def decode_config_change(data: bytes | None) -> tuple[str, str]:
    """The entity's type and name, of versions 1 and 2: ("topics", "orders"), ("users", "alice/clients/<default>")."""
    change = read(CONFIG_CHANGE_READER, data)
    path = change.entity_path if change.version >= 2 else f"{change.entity_type}/{change.entity_name}"
    if "/" not in path.strip("/"):
        raise LayoutError(f"{path!r} names nothing that has configs")
    kind, _, name = path.partition("/")
    return kind, name


# --- what brokers tell the controller ---


class TopicPartition(msgspec.Struct, frozen=True):
    topic: str
    partition: int


class IsrChange(msgspec.Struct):
    partitions: list[TopicPartition]
    version: int = 1


class LogDirEvent(msgspec.Struct):
    broker: int
    event: int = 1
    version: int = 1


def encode_isr_change(partitions: Iterable[TopicPartition]) -> bytes:
    """Written by brokers before Kafka 2.7 that have changed an ISR by themselves."""
    parts = [b'{"topic":%s,"partition":%d}' % (quoted(each.topic), each.partition) for each in partitions]
    return b'{"version":1,"partitions":[%s]}' % b",".join(parts)


def decode_isr_change(data: bytes | None) -> list[TopicPartition]:
    return read(ISR_CHANGE_READER, data).partitions


def encode_log_dir_event(broker_id: int) -> bytes:
    """A broker has lost a log directory."""
    return b'{"version":1,"broker":%d,"event":1}' % broker_id


def decode_log_dir_event(data: bytes | None) -> int:
    """The broker that has lost one."""
    return read(LOG_DIR_EVENT_READER, data).broker


CLUSTER_ID_READER = msgspec.json.Decoder(ClusterId)
CONTROLLER_READER = msgspec.json.Decoder(Controller)
REGISTRATION_READER = msgspec.json.Decoder(Registration)
ASSIGNMENT_READER = msgspec.json.Decoder(Assignment)
STATE_READER = msgspec.json.Decoder(State)
CONFIG_READER = msgspec.json.Decoder(EntityConfig)
CONFIG_CHANGE_READER = msgspec.json.Decoder(ConfigChange)
ISR_CHANGE_READER = msgspec.json.Decoder(IsrChange)
LOG_DIR_EVENT_READER = msgspec.json.Decoder(LogDirEvent)

quoted = msgspec.json.Encoder().encode
"""A string in JSON."""


def read(reader: msgspec.json.Decoder[Shape], data: bytes | None) -> Shape:
    try:
        return reader.decode(data or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LayoutError(f"{error}: {data!r}") from error
