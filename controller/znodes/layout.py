"""Kafka's znodes: where they lie and what is written in them.

Rule: pure. The JSON of a znode is declared once, its keys in the order in which Kafka writes them:
what is written is byte for byte what Kafka 3.9 writes. What is read may have come from any Kafka
since 0.8 or from another tool: unknown keys are passed over, and what makes no sense, or would not
fit into Kafka's messages, is a `LayoutError`.
"""

import re
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ..metadata.image import NO_CONFIGS, NO_TOPIC_ID, Partition, Topic
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

COMMITS = "/minicontroller/commits"
"""Its version counts the commits of the controllers; no program of Kafka's looks there."""

NO_FEATURES = b'{"features":{},"version":2,"status":1}'
"""Of `/feature`. A feature that a Kafka 3.x broker does not know makes it exit: nothing else is
ever written.
"""

Shape = TypeVar("Shape")

MAX_INT = 2**31 - 1
MAX_TEXT = 255
"""Characters of the name of something: no file and no host has a longer one."""
ENTITY_PATH = re.compile(
    r"(?!\.{1,2}/)[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]++(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]++)++"
)
"""Of parts that ZooKeeper takes in a path, `.` and `..` left out."""

Int = Annotated[int, Meta(ge=-MAX_INT - 1, le=MAX_INT)]
BrokerId = Annotated[int, Meta(ge=0, le=MAX_INT)]
Leader = Annotated[int, Meta(ge=-1, le=MAX_INT)]
Epoch = Annotated[int, Meta(ge=0, le=MAX_INT)]
Replicas = tuple[BrokerId, ...]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]


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
    """Return the path of a broker's configs; `entity` is its id, or DEFAULT_ENTITY for
    all brokers.
    """
    return f"{BROKER_CONFIGS}/{entity}"


def entity_path(kind: str, name: str) -> str:
    """Return the path below `/config` of the configs of a broker, a topic or another entity."""
    return f"{kind}/{name}"


DEFAULT_OF_BROKERS = entity_path(BROKERS_ENTITY, DEFAULT_ENTITY)


def delete_topic_path(topic: str) -> str:
    """Return the path of the mark of a topic to be deleted, which has no data."""
    return f"{DELETE_TOPICS}/{topic}"


def sanitized(name: str) -> str:
    """Escape the name of a user, client or address for a path; topics and brokers
    need no escapes.
    """
    return quote(name, safe="").replace("~", "%7E")


URL_SAFE = bytes.maketrans(b"+/", b"-_")


@lru_cache(maxsize=1024)
def uuid_text(value: bytes) -> str:
    """Return an id as Kafka prints it: 22 characters of url-safe base64."""
    return b2a_base64(value)[:22].translate(URL_SAFE).decode()


def uuid_bytes(text: str) -> bytes:
    try:
        value = urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise LayoutError(f"{text!r} is no id") from error
    if len(value) != 16:
        raise LayoutError(f"{text!r} is no id")
    return value


# --- cluster id, controller, epoch ---


class ClusterId(Struct):
    version: str | int
    id: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


class Controller(
    Struct, kw_only=True, rename={"broker_id": "brokerid", "kraft_controller_epoch": "kraftControllerEpoch"}
):
    """The content of `/controller`: who holds it."""

    version: Int = 1
    broker_id: Int
    timestamp: str | int = ""
    kraft_controller_epoch: Int = -1
    """Above 0 while a KRaft quorum owns the cluster (a migration): hands off."""


def encode_cluster_id(cluster_id: str) -> bytes:
    return write(ClusterId("1", cluster_id))


def decode_cluster_id(data: bytes | None) -> str:
    return read(CLUSTER_ID, data, CLUSTER_ID_READER).id


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return write(Controller(version=2, broker_id=broker_id, timestamp=str(timestamp_ms)))


def decode_controller(data: bytes | None) -> Controller:
    return read(CONTROLLER, data, CONTROLLER_READER)


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    """Decode a controller epoch that has a successor."""
    digits = data or b""
    if not digits.isdigit() or len(digits) > len(str(MAX_INT)) or int(digits) >= MAX_INT:
        raise LayoutError(f"{CONTROLLER_EPOCH} holds {data!r:.80}, which is no epoch of a controller")
    return int(digits)


# --- topic assignment ---


class Assignment(Struct, kw_only=True):
    partitions: dict[int, Replicas]
    topic_id: str | UnsetType | None = UNSET
    adding_replicas: dict[int, Replicas] = {}
    removing_replicas: dict[int, Replicas] = {}
    version: Int = 1


def encode_topic(topic: Topic) -> bytes:
    """Encode a topic in version 3. A topic without an id (from before Kafka 2.8) stays without."""
    partitions = topic.partitions
    return write(
        Assignment(
            partitions={i: partitions[i].replicas for i in partition_order(len(partitions))},
            topic_id=UNSET if topic.topic_id == NO_TOPIC_ID else uuid_text(topic.topic_id),
            adding_replicas={i: each.adding_replicas for i, each in enumerate(partitions) if each.adding_replicas},
            removing_replicas={
                i: each.removing_replicas for i, each in enumerate(partitions) if each.removing_replicas
            },
            version=3,
        )
    )


def least_topic_bytes(partitions: int, replication_factor: int) -> int:
    """Return the least that `encode_topic` takes for so many partitions, without making them."""
    row = len('"":[],') + 2 * max(1, replication_factor) - 1  # a digit of each broker, and the commas between
    digits = partitions + sum(max(0, partitions - more) for more in (10, 100, 1_000, 10_000, 100_000))
    return partitions * row + digits


def decode_topic(name: str, data: bytes | None, znode_version: int = -1) -> Topic:
    """Decode a topic's znode of versions 1 to 3, its assignments only: the states and the configs
    lie elsewhere.
    """
    assignment = read("the assignment", data, ASSIGNMENT_READER)
    replicas, adding, removing = assignment.partitions, assignment.adding_replicas, assignment.removing_replicas
    count = len(replicas)
    if replicas.keys() != set(range(count)):
        raise LayoutError(f"the partitions are {sorted(replicas)!r:.80}, not consecutive from 0")
    partitions = tuple(
        Partition(replicas[i], adding_replicas=adding.get(i, ()), removing_replicas=removing.get(i, ()))
        for i in range(count)
    )
    topic_id = uuid_bytes(assignment.topic_id) if assignment.topic_id else NO_TOPIC_ID
    return Topic(name, topic_id, partitions, version=znode_version)


# --- partition state ---


class State(Struct, kw_only=True):
    controller_epoch: Int = 0
    leader: Leader
    version: Int = 1
    leader_recovery_state: Annotated[int, Meta(ge=0, le=1)] | UnsetType = UNSET
    """1 while the leader recovers from an unclean election; absent otherwise."""
    leader_epoch: Epoch
    isr: Replicas


def encode_partition_state(partition: Partition) -> bytes:
    return write(
        State(
            controller_epoch=partition.controller_epoch,
            leader=partition.leader,
            leader_recovery_state=partition.leader_recovery_state or UNSET,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
        )
    )


def decode_partition_state(partition: Partition, data: bytes | None, version: int) -> Partition:
    """Add its state to a partition; `version` of the znode is the partition epoch."""
    state = read("the state", data, STATE_READER)
    return Partition(
        partition.replicas,
        state.leader,
        state.leader_epoch,
        partition.replicas if state.isr == partition.replicas else state.isr,  # one object for both
        state.controller_epoch,
        version,
        state.leader_recovery_state or 0,
        partition.adding_replicas,
        partition.removing_replicas,
    )


# --- configs and their changes ---


class EntityConfig(Struct):
    version: Int = 1
    config: dict[str, str] = {}


class ConfigChange(Struct):
    version: Int
    entity_path: str = ""


class FirstConfigChange(ConfigChange):
    """A notification of version 1, which has a kind and a name instead of a path."""

    entity_type: str = ""
    entity_name: str = ""


def encode_config(configs: Mapping[str, str]) -> bytes:
    """Encode the configs of a topic, a broker or another entity. A topic without overrides has this
    znode too.
    """
    return write(EntityConfig(1, {key: configs[key] for key in hash_table_order(configs)}))


def decode_config(data: bytes | None) -> Mapping[str, str]:
    """Decode the configs of an entity. A znode without data stands between others
    (`/config/users/<user>` of a client's quota) and configures nothing.
    """
    if not data:
        return NO_CONFIGS
    return read("the config", data, CONFIG_READER).config or NO_CONFIGS


def encode_config_change(entity_path: str) -> bytes:
    """Encode the notification that brokers are to read `/config/<entity_path>` again; for a
    sequential znode below `CONFIG_CHANGES`.
    """
    return write(ConfigChange(2, entity_path))


def decode_config_change(data: bytes | None) -> tuple[str, str]:
    """Decode the entity's type and name, of versions 1 and 2: ("topics", "orders"), ("users",
    "alice/clients/<default>").
    """
    change = read("the notification", data, CONFIG_CHANGE_READER)
    path = change.entity_path if change.version >= 2 else f"{change.entity_type}/{change.entity_name}"
    if not ENTITY_PATH.fullmatch(path):
        raise LayoutError(f"the notification names nothing that has configs: {data!r:.80}")
    kind, _, name = path.partition("/")
    return kind, name


# --- features ---


class Features(Struct):
    status: Int = 1


def features_are_disabled(data: bytes | None) -> bool:
    """Whether `/feature` is as a controller before Kafka 2.7 leaves it."""
    return read(FEATURE, data, FEATURE_READER).status == 0


write = msgspec.json.Encoder().encode

CLUSTER_ID_READER = msgspec.json.Decoder(ClusterId)
CONTROLLER_READER = msgspec.json.Decoder(Controller)
ASSIGNMENT_READER = msgspec.json.Decoder(Assignment)
STATE_READER = msgspec.json.Decoder(State)
CONFIG_READER = msgspec.json.Decoder(EntityConfig)
CONFIG_CHANGE_READER = msgspec.json.Decoder(FirstConfigChange)
FEATURE_READER = msgspec.json.Decoder(Features)


def read(what: str, data: bytes | None, reader: msgspec.json.Decoder[Shape]) -> Shape:
    try:
        return reader.decode(data or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LayoutError(f"{what} cannot be read ({error}): {data!r:.80}") from None
