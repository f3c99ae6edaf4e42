"""What may be changed of a node's configuration while it runs, for one node or for all.

Rule: pure. Kafka refuses such a change as an invalid request (42), not as an invalid config (40),
and lets keys through that it does not know: they may be a plugin's. What this program could not
honour it refuses too, rather than pretend: its listeners stay as they are, and passwords in
ZooKeeper need an encoding that it does not have.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from ...policies.configs.values import InvalidValueError, KeyType
from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from .keys import (
    KEYS,
    LISTENER_KEYS_OF_THE_CLUSTER,
    SECURITY_KEYS_OF_A_LISTENER,
    UpdateMode,
    base_name,
    has_listener_prefix,
    key_named,
)
from .listeners import ListenerFault, parse_counts
from .node_rules import faulty_durations
from .refused_keys import faults_of_keys

if TYPE_CHECKING:
    from .node_config import NodeConfig

LISTENERS_OF_A_RUNNING_NODE = ("listeners", "advertised.listeners", "listener.security.protocol.map")
PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
MAX_CONFIGS = 2_000
"""Of one resource: more than all keys there are, with those of some listeners. Brokers take keys
that nobody knows, and all of them are looked at whenever anything is made of a broker's configs.
"""
THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Kafka lets these at most double or halve at a time."""


def validate_broker_configs(configs: Mapping[str, str], node: "NodeConfig", *, per_broker: bool) -> None:
    """Check the whole set of a broker's configs as it will be, for `node` or, if not `per_broker`,
    for all. Raises Refusal.

    `node` has what is in force now, so that it can be told what would be.
    """
    if len(configs) > MAX_CONFIGS:
        text = f"{len(configs)} configs of one resource would be there, {MAX_CONFIGS} are allowed."
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    _refuse("Cannot update these configs dynamically", [name for name in configs if _is_read_only(name)])
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        [name for name in configs if name in SECURITY_KEYS_OF_A_LISTENER],
    )
    _check_types(configs)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name in configs if _is_of_one_broker(name)],
        )
    _refuse(
        "These configs can be changed only in the file of the node, which then has to be started again",
        [name for name in configs if name in LISTENERS_OF_A_RUNNING_NODE],
    )
    for _, sentence in faults_of_keys(configs):
        raise Refusal(ErrorCode.INVALID_REQUEST, sentence)
    _check_passwords(configs, node, per_broker=per_broker)
    altered = node.with_dynamic(
        configs if per_broker else node.dynamic_broker, node.dynamic_default if per_broker else configs
    )
    for _, reason in faulty_durations(altered):
        raise Refusal(ErrorCode.INVALID_REQUEST, reason)
    _check_threads(node, altered)


def acceptable_broker_configs(configs: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """Return those configs in ZooKeeper that are valid, each key by itself; the others
    are ignored.
    """
    return {name: text for name, text in configs.items() if _is_acceptable(name, text, per_broker)}


def _is_acceptable(name: str, text: str, per_broker: bool) -> bool:
    if _is_read_only(name) or name in SECURITY_KEYS_OF_A_LISTENER or name in LISTENERS_OF_A_RUNNING_NODE:
        return False
    try:
        _check_types({name: text})
    except Refusal:
        return False
    if any(faults_of_keys({name: text})):
        return False
    key = key_named(name)
    return (per_broker or not _is_of_one_broker(name)) and (key is None or key.type is not KeyType.PASSWORD)


def _is_read_only(name: str) -> bool:
    """Whether a key cannot change while a node runs. Keys without a declaration, and those of one
    listener, can.
    """
    return name in KEYS and KEYS[name].update_mode is UpdateMode.READ_ONLY


def _is_of_one_broker(name: str) -> bool:
    if has_listener_prefix(name):
        return base_name(name) not in LISTENER_KEYS_OF_THE_CLUSTER
    return name in KEYS and KEYS[name].update_mode is UpdateMode.PER_BROKER


def _check_types(configs: Mapping[str, str]) -> None:
    for name, text in configs.items():
        key = key_named(name)
        try:
            if key is not None:
                key.parse(text)
            if name == PER_IP_OVERRIDES:
                parse_counts(name, text)
        except InvalidValueError as error:
            raise Refusal(ErrorCode.INVALID_REQUEST, str(error)) from None
        except ListenerFault as fault:
            reason = f"Error parsing configuration property '{name}': {fault}"
            raise Refusal(ErrorCode.INVALID_REQUEST, reason) from None


def _check_threads(node: "NodeConfig", altered: "NodeConfig") -> None:
    for name in THREAD_COUNTS:
        current, wanted = node.integer(name), altered.integer(name)
        prefix = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
        if wanted < current // 2:
            text = f"{prefix} be at least half the current value {current}"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        if wanted > current * 2:
            text = f"{prefix} not be greater than double the current value {current}"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)


def _check_passwords(configs: Mapping[str, str], node: "NodeConfig", *, per_broker: bool) -> None:
    resource = f"ConfigResource(type=BROKER, name='{node.text('broker.id') if per_broker else ''}')"
    for name in _passwords(configs):
        if node.optional_string("password.encoder.secret") is None:
            reason = "Password encoder secret not configured"
        else:
            reason = f"{name} is a password, which this node takes from its file only"
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Invalid config value for resource {resource}: {reason}")


def _passwords(configs: Mapping[str, str]) -> Iterator[str]:
    for name in configs:
        key = key_named(name)
        if key is not None and key.type is KeyType.PASSWORD:
            yield name


def _refuse(reason: str, names: Collection[str]) -> None:
    if names:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(sorted(names))}]")
