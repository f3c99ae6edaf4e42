"""Kafka's znodes: their paths, and the JSON in them. Pure.

Rule: what is written is byte for byte what Kafka 3.9 writes in ZooKeeper mode; what is read may have been written by any version of
it, so unknown keys are ignored. What cannot be read is a `LayoutError`, and nothing else is raised.
"""

import base64
import json
import re
import socket
import uuid
from collections.abc import Mapping
from typing import Any

from immutables import Map

from ..cluster.image import NO_TOPIC_ID, Broker, Endpoint, Partition, Topic

CLUSTER = "/cluster"
CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
DELETE_TOPICS = "/admin/delete_topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
FEATURE = "/feature"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"

DEFAULT_ENTITY = "<default>"
TOPICS_ENTITY = "topics"
BROKERS_ENTITY = "brokers"

PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGE_NOTIFICATION,
    "/latest_producer_id_block",
    LOG_DIR_EVENT_NOTIFICATION,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)
"""Every broker creates them at its start where they are missing."""

FEATURES_OF_ZOOKEEPER_MODE = b'{"version":2,"status":1,"features":{}}'
"""Never anything else: a feature that a broker does not know makes it exit."""


class LayoutError(ValueError):
    """A znode holds what is not Kafka's; the text says what is wrong with it."""


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
    return f"/config/topics/{topic}"


def broker_config_path(broker: str) -> str:
    """`broker` is an id, or DEFAULT_ENTITY."""
    return f"/config/brokers/{broker}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


# ------------------------------------------------------------------ the cluster and its controller


def new_cluster_id() -> str:
    return encode_uuid(uuid.uuid4().bytes)


def encode_cluster_id(cluster_id: str) -> bytes:
    return _json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    return _text(_object(data), "id")


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return _json({"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1})


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    try:
        return int(data or b"")
    except ValueError:
        raise LayoutError(f"{CONTROLLER_EPOCH} holds {data!r:.80}, which is no number") from None


# ------------------------------------------------------------------ brokers


def encode_broker(broker: Broker, timestamp_ms: int) -> bytes:
    plain = next((each for each in broker.endpoints if each.security_protocol == "PLAINTEXT"), None)
    registration: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {each.listener: each.security_protocol for each in broker.endpoints},
        "endpoints": [f"{each.listener}://{_bracketed(each.host)}:{each.port}" for each in broker.endpoints],
        "jmx_port": -1,
        "port": -1 if plain is None else plain.port,
        "host": None if plain is None else plain.host,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if broker.rack is not None:
        registration["rack"] = broker.rack
    return _json(registration)


_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?P<host>\[[^\]]*\]|[^:\[\]]*):(?P<port>-?\d+)")


def decode_broker(broker_id: int, data: bytes | None, czxid: int) -> Broker:
    """Versions 1 to 5."""
    values = _object(data)
    protocols = values.get("listener_security_protocol_map") or {}
    endpoints = values.get("endpoints")
    if not endpoints:
        endpoints = [f"PLAINTEXT://{values.get('host')}:{values.get('port')}"]
    rack = values.get("rack")
    if not isinstance(protocols, dict) or not isinstance(endpoints, list) or not isinstance(rack, str | None):
        raise LayoutError("its endpoints, their protocols or its rack are of a wrong type")
    return Broker(
        broker_id=broker_id,
        endpoints=tuple(_endpoint(text, protocols) for text in endpoints),
        rack=rack,
        epoch=czxid,
    )


def _endpoint(text: object, protocols: Mapping[str, object]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise LayoutError(f"{text!r:.80} is no endpoint")
    listener = match["listener"]
    return Endpoint(
        listener=listener,
        host=match["host"].strip("[]"),
        port=int(match["port"]),
        security_protocol=str(protocols.get(listener, listener)),
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def this_host() -> str:
    """This machine's own name, for listeners that are not told theirs."""
    return socket.getfqdn()


# ------------------------------------------------------------------ topics


def encode_topic(topic: Topic) -> bytes:
    rows = ",".join(f'"{i}":{_ids(partition.replicas)}' for i, partition in enumerate(topic.partitions))
    adding = ",".join(f'"{i}":{_ids(p.adding_replicas)}' for i, p in enumerate(topic.partitions) if p.adding_replicas)
    removing = ",".join(
        f'"{i}":{_ids(p.removing_replicas)}' for i, p in enumerate(topic.partitions) if p.removing_replicas
    )
    topic_id = f'"topic_id":"{encode_uuid(topic.topic_id)}",' if topic.topic_id != NO_TOPIC_ID else ""
    return (
        f'{{"removing_replicas":{{{removing}}},"partitions":{{{rows}}},{topic_id}'
        f'"adding_replicas":{{{adding}}},"version":3}}'
    ).encode()


def decode_topic(name: str, data: bytes | None) -> Topic:
    """Versions 1 to 3; without states, configs and marks, which other znodes hold. Ids must be consecutive from 0."""
    values = _object(data)
    rows, adding, removing = (_assignment(values, key) for key in ("partitions", "adding_replicas", "removing_replicas"))
    if sorted(rows) != list(range(len(rows))):
        raise LayoutError(f"its partitions are {sorted(rows)!r:.80}, not consecutive from 0")
    topic_id = values.get("topic_id")
    return Topic(
        name=name,
        topic_id=NO_TOPIC_ID if topic_id is None else decode_uuid(topic_id),
        partitions=tuple(
            Partition(replicas=rows[i], adding_replicas=adding.get(i, ()), removing_replicas=removing.get(i, ()))
            for i in range(len(rows))
        ),
    )


def _assignment(values: Mapping[str, Any], key: str) -> dict[int, tuple[int, ...]]:
    try:
        return {int(partition): tuple(map(int, replicas)) for partition, replicas in (values.get(key) or {}).items()}
    except (AttributeError, TypeError, ValueError):
        raise LayoutError(f"its {key} are no map of partitions to broker ids") from None


def encode_partition_state(partition: Partition) -> bytes:
    recovering = ',"leader_recovery_state":1' if partition.leader_recovery_state else ""
    return (
        f'{{"controller_epoch":{partition.controller_epoch},"leader":{partition.leader},"version":1,'
        f'"leader_epoch":{partition.leader_epoch},"isr":{_ids(partition.isr)}{recovering}}}'
    ).encode()


def decode_partition_state(partition: Partition, data: bytes | None, version: int) -> Partition:
    """`partition` with its state; `version` is the znode's."""
    values = _object(data)
    try:
        isr = tuple(map(int, values["isr"]))
        return Partition(
            replicas=partition.replicas,
            leader=int(values["leader"]),
            leader_epoch=int(values["leader_epoch"]),
            isr=partition.replicas if isr == partition.replicas else isr,
            controller_epoch=int(values["controller_epoch"]),
            partition_epoch=version,
            leader_recovery_state=int(values.get("leader_recovery_state", 0)),
            adding_replicas=partition.adding_replicas,
            removing_replicas=partition.removing_replicas,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"the state of a partition lacks {error}") from None


# ------------------------------------------------------------------ configs


def encode_config(configs: Mapping[str, str]) -> bytes:
    return _json({"version": 1, "config": dict(configs)})


def decode_config(data: bytes | None) -> Map[str, str]:
    configs = _object(data).get("config")
    if not isinstance(configs, dict):
        raise LayoutError("it holds no configs")
    return Map({str(name): str(value) for name, value in configs.items()})


def encode_config_change(entity_path: str) -> bytes:
    return _json({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> tuple[str, str]:
    """(entity type, entity name), of version 1 or 2."""
    values = _object(data)
    if "entity_path" in values:
        kind, _, name = _text(values, "entity_path").partition("/")
        return kind, name
    return _text(values, "entity_type"), _text(values, "entity_name")


# ------------------------------------------------------------------ JSON


def encode_uuid(value: bytes) -> str:
    """22 characters, URL-safe, without padding."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def decode_uuid(text: object) -> bytes:
    try:
        value = base64.urlsafe_b64decode(f"{text}==")
    except ValueError:
        value = b""
    if len(value) != 16:
        raise LayoutError(f"{text!r:.40} is no topic id")
    return value


def _ids(ids: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, ids))}]"


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()


def _object(data: bytes | None) -> dict[str, Any]:
    try:
        values = json.loads(data or b"")
    except (ValueError, RecursionError):
        raise LayoutError(f"{data!r:.80} is no JSON") from None
    if not isinstance(values, dict):
        raise LayoutError(f"{data!r:.80} is no JSON object")
    return values


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str):
        raise LayoutError(f"its {key} is no text")
    return value
