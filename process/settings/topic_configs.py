"""Validates the configs of topics, and computes the defaults of topics without overrides.

Rule: the functions are pure. A topic's overrides are validated together with the defaults of its
node, so an override that contradicts a default is refused like one that contradicts another
override. Error codes and messages are Kafka's (LogConfig.validate).
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec

from ...cluster.errors import Refusal
from ...policies.configs.canonical import canonical_configs
from ...policies.configs.effective import SYNONYMS, Synonym, differing_from_kafka
from ...policies.configs.tables import read_default, read_table
from ...policies.configs.topic_keys import TABLE
from ...policies.configs.values import InvalidValueError, KeyType, Value, render_value
from ...protocol.error_codes import ErrorCode
from .in_force import in_force
from .keys import Key, UpdateMode, read_notation
from .node_config import NodeConfig, kept_in_config

NO_LIMIT = -1
FORMAT_VERSION = "message.format.version"
"""Topics always get Kafka's default for this key, since 3.0 has only one message format."""
PARSED_IN_ORDER = [
    "segment.bytes",
    "segment.ms",
    "segment.jitter.ms",
    "segment.index.bytes",
    "flush.messages",
    "flush.ms",
    "retention.bytes",
    "retention.ms",
    "max.message.bytes",
    "index.interval.bytes",
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "file.delete.delay.ms",
    "min.cleanable.dirty.ratio",
    "cleanup.policy",
    "unclean.leader.election.enable",
    "min.insync.replicas",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "preallocate",
    "message.format.version",
    "message.timestamp.type",
]
"""The keys that Kafka reads first, and so complains of first if several values are wrong."""
AS_RETENTION = -2
"""A local.retention.* key with this value takes the value of retention.*."""


class TopicKey(msgspec.Struct, frozen=True):
    key: Key
    synonyms: tuple[Synonym, ...]

    def default_of(self, node: NodeConfig) -> Value:
        """Return the value of the node's first synonym that has one, or else Kafka's default."""
        if self.key.name == FORMAT_VERSION:
            return self.key.default_value
        for synonym in self.synonyms:
            value = node.value(synonym.name)
            if value is not None:
                return _converted(self.key.name, value, synonym.factor)
        return self.key.default_value


def _converted(name: str, value: Value, factor: int) -> Value:
    if name == "retention.ms":
        assert isinstance(value, int)
        return max(NO_LIMIT, value * factor)
    return value * factor if factor != 1 and isinstance(value, int) else value


def _declared() -> dict[str, TopicKey]:
    keys = {}
    for name, kind, default, valid, _, documentation in read_table(TABLE):
        key = Key(
            name,
            KeyType[kind.upper()],
            read_default(default),
            read_notation(valid),
            UpdateMode.CLUSTER_WIDE,
            documentation,
        )
        keys[name] = TopicKey(key, SYNONYMS[name])
    return keys


TOPIC_KEYS: Mapping[str, TopicKey] = MappingProxyType(_declared())


@kept_in_config
def topic_defaults(node: NodeConfig) -> Mapping[str, Value]:
    return MappingProxyType({name: topic_key.default_of(node) for name, topic_key in TOPIC_KEYS.items()})


@kept_in_config
def topic_default_texts(node: NodeConfig) -> Mapping[str, str]:
    return {name: render_value(value) or "" for name, value in topic_defaults(node).items()}


@lru_cache(maxsize=64)
def differing_defaults(node: NodeConfig, of_broker: Mapping[str, str], of_all: Mapping[str, str]) -> Mapping[str, str]:
    """Return the defaults of topics that differ from Kafka's, computed from the node's file and the
    dynamic configs of the broker and of all brokers. Both mappings must be hashable.
    """
    return differing_from_kafka(canonical_configs(topic_default_texts(in_force(node, of_broker, of_all))))


def faults_of(configs: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each stored config that is unknown, or that no topic can have. Values of
    unknown keys may be secrets.
    """
    for name, text in configs.items():
        if name not in TOPIC_KEYS:
            yield f"{name} is no key of a topic"
            continue
        try:
            TOPIC_KEYS[name].key.parse(text)
        except InvalidValueError as error:
            yield str(error)


def validate_topic_configs(
    configs: Mapping[str, str | None], node: NodeConfig, *, altered_topic: str | None = None
) -> None:
    """Raise Refusal(INVALID_CONFIG) for configs that a topic cannot have. `altered_topic` names an
    existing topic, for which Kafka words the message differently.
    """
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        raise _refused(f"Null value not supported for topic configs: {','.join(nulls)}")
    unknown = next((name for name in configs if name not in TOPIC_KEYS), None)
    if unknown is not None:
        raise _refused(f"Unknown topic config name: {unknown}")
    try:
        names = configs if len(configs) == 1 else sorted(configs, key=_place)
        parsed = {name: TOPIC_KEYS[name].key.parse(configs[name] or "") for name in names}
        _check_together({**topic_defaults(node), **parsed}, node)
    except InvalidValueError as error:
        resource = f"ConfigResource(type=TOPIC, name='{altered_topic}')"
        prefix = "" if altered_topic is None else f"Invalid config value for resource {resource}: "
        raise _refused(f"{prefix}{error}") from None


def _place(name: str) -> int:
    return PARSED_IN_ORDER.index(name) if name in PARSED_IN_ORDER else len(PARSED_IN_ORDER)


def _check_together(values: Mapping[str, Value], node: NodeConfig) -> None:
    least, most = _number(values, "min.compaction.lag.ms"), _number(values, "max.compaction.lag.ms")
    if least > most:
        text = f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        raise _refused(text)
    if values["remote.log.delete.on.disable"] or values["remote.log.copy.disable"]:
        raise _refused(
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode."
        )
    if values["remote.storage.enable"]:
        _check_remote_storage(values, node)


def _check_remote_storage(values: Mapping[str, Value], node: NodeConfig) -> None:
    if not node.boolean("remote.log.storage.system.enable"):
        raise _PlainFaultError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
        )
    policy = values["cleanup.policy"]
    assert isinstance(policy, tuple)
    if "compact" in policy:
        raise _PlainFaultError("Remote log storage is unsupported for the compacted topics")
    for name in ("retention.bytes", "retention.ms"):
        local, total = _number(values, f"local.{name}"), _number(values, name)
        if local == NO_LIMIT and total >= 0:
            raise InvalidValueError(
                f"local.{name}", str(local), f"Value must not be -1 as {name} value is set as {total}."
            )
        if local != AS_RETENTION and 0 <= total < local:
            reason = f"Value must not be more than {name} property value: {total}"
            raise InvalidValueError(f"local.{name}", str(local), reason)


def _number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


class _PlainFaultError(InvalidValueError):
    """Several values contradict each other, so the message shows no single one."""

    def __init__(self, reason: str) -> None:
        ValueError.__init__(self, reason)


def _refused(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, text)
