"""Applies AlterConfigs and IncrementalAlterConfigs to the overrides of a topic or a broker.

Rule: the functions are pure, return new mappings, and work in Kafka's order. First the request is
checked (`check_*`, before authorization), then the operations are applied, and then the whole
result is validated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ...cluster.errors import Refusal
from ...policies.configs.lists import appended, subtracted
from ...policies.configs.values import KeyType
from ...process.settings.keys import Key, key_named
from ...process.settings.node_config import NodeConfig
from ...process.settings.topic_configs import TOPIC_KEYS, validate_topic_configs
from ...protocol.config_resources import ConfigOperation
from ...protocol.error_codes import ErrorCode
from .broker_changes import MAX_CONFIGS, validate_broker_configs

Configs = Mapping[str, str]


class IncrementalChange(msgspec.Struct, frozen=True):
    name: str
    operation: int
    """A ConfigOperation, or any other number that a client sent."""
    value: str | None = None


def check_incremental(changes: Sequence[IncrementalChange]) -> None:
    """Raise Refusal(INVALID_REQUEST) if IncrementalAlterConfigs names a key twice, or gives no
    value where the operation needs one.
    """
    _check_request(
        [change.name for change in changes],
        [change.name for change in changes if change.value is None and change.operation != ConfigOperation.DELETE],
    )


def check_replacement(entries: Sequence[tuple[str, str | None]]) -> None:
    """Raise Refusal(INVALID_REQUEST) if AlterConfigs names a key twice or gives no value."""
    _check_request([name for name, _ in entries], [name for name, value in entries if value is None])


def _check_request(names: Sequence[str], nulls: Iterable[str]) -> None:
    if len(names) > MAX_CONFIGS:
        text = f"{len(names)} configs of one resource are named, {MAX_CONFIGS} are allowed."
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    if len(set(names)) != len(names):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = ", ".join(nulls)
    if missing:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {missing}")


def alter_topic(
    topic: str, overrides: Configs, changes: Sequence[IncrementalChange], node: NodeConfig
) -> dict[str, str]:
    """Return the overrides of a topic after IncrementalAlterConfigs. Raises Refusal."""
    altered = apply_incremental(overrides, changes, _topic_key)
    validate_topic_configs(altered, node, altered_topic=topic)
    return altered


def check_operations(changes: Sequence[IncrementalChange]) -> None:
    """Check what each operation of IncrementalAlterConfigs asks for, as Kafka does before it looks
    whether there is such a topic. Raises Refusal.
    """
    apply_incremental({}, changes, _topic_key)


def replace_topic(topic: str, entries: Sequence[tuple[str, str | None]], node: NodeConfig) -> dict[str, str]:
    """Return the overrides of a topic after AlterConfigs, which removes overrides that it does not
    name. Raises Refusal.
    """
    check_replacement(entries)
    replaced = {name: value for name, value in entries if value is not None}
    validate_topic_configs(replaced, node, altered_topic=topic)
    return replaced


def alter_broker(
    overrides: Configs, changes: Sequence[IncrementalChange], node: NodeConfig, *, per_broker: bool
) -> dict[str, str]:
    """Return the overrides in `/config/brokers/<id>`, or in `<default>` if not `per_broker`, after
    IncrementalAlterConfigs. Raises Refusal.
    """
    altered = apply_incremental(overrides, changes, _broker_key)
    validate_broker_configs(altered, node, per_broker=per_broker)
    return altered


def replace_broker(entries: Sequence[tuple[str, str | None]], node: NodeConfig, *, per_broker: bool) -> dict[str, str]:
    """Return the overrides in `/config/brokers/<id>`, or in `<default>` if not `per_broker`, after
    AlterConfigs. Raises Refusal.
    """
    check_replacement(entries)
    replaced = {name: value for name, value in entries if value is not None}
    validate_broker_configs(replaced, node, per_broker=per_broker)
    return replaced


def apply_incremental(
    overrides: Configs, changes: Sequence[IncrementalChange], key_of: Callable[[str], Key | None]
) -> dict[str, str]:
    """Return the overrides after the changes, before the result is validated. Raises Refusal."""
    check_incremental(changes)
    altered = dict(overrides)
    for change in changes:
        match change.operation:
            case ConfigOperation.SET:
                altered[change.name] = change.value or ""
            case ConfigOperation.DELETE:
                altered.pop(change.name, None)
            case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
                altered[change.name] = _edited_list(altered, change, key_of(change.name))
            case _:
                # Kafka answers -1 for a topic and INVALID_REQUEST for a broker. The request is
                # at fault in both cases.
                raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")
    return altered


def _edited_list(overrides: Configs, change: IncrementalChange, key: Key | None) -> str:
    """Append to a list, or subtract from it. A list without an override starts from Kafka's
    default, not from the default in the node's file.
    """
    verb = ConfigOperation(change.operation).name.lower()
    if key is None:
        # Kafka answers -1. Here an unknown key is refused with the error code of SET.
        text = f"Config value {verb} is not allowed for unknown config key: {change.name}"
        raise Refusal(ErrorCode.INVALID_CONFIG, text)
    if key.type is not KeyType.LIST:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {change.name}")
    value, operand = overrides.get(change.name, key.default) or "", change.value or ""
    return (appended if change.operation == ConfigOperation.APPEND else subtracted)(value, operand)


def _topic_key(name: str) -> Key | None:
    return TOPIC_KEYS[name].key if name in TOPIC_KEYS else None


def _broker_key(name: str) -> Key | None:
    return key_named(name)
