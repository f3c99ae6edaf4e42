"""Describes the configs of topics and brokers with value, source and synonyms.

Rule: the functions are pure and follow Kafka exactly. The synonyms of a config are all settings
that apply to it, by precedence: the topic's override, the node's dynamic config, the dynamic config
of all nodes, the file, the default. Within one source, synonyms before the first one with the key's
own name are left out.
"""

from collections.abc import Iterator, Mapping
from itertools import dropwhile

import msgspec

from ...policies.configs.values import KeyType, render_value
from ...process.settings.keys import KEYS, PLUGIN_KEYS, UpdateMode, key_named, synonyms_of
from ...process.settings.node_config import ConfigSource, NodeConfig, kept_in_config
from ...process.settings.topic_configs import TOPIC_KEYS, topic_defaults

_PLACES = {name: place for place, name in enumerate(sorted(TOPIC_KEYS))}


class ConfigSynonym(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(msgspec.Struct, frozen=True, gc=False):
    """One config as described by DescribeConfigs, and by CreateTopics since v5."""

    name: str
    value: str | None
    """The text of the value. It is None for a secret and for a config without a value."""
    source: ConfigSource
    type: KeyType
    documentation: str
    read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()


def topic_entries(overrides: Mapping[str, str], node: NodeConfig) -> tuple[DescribedConfig, ...]:
    """Return every config of a topic, sorted by name. Entries for topics without overrides are
    cached. Overrides that Kafka does not know are shown without their values, as by Kafka. Raises
    InvalidValueError for one that no topic can have.
    """
    default = _default_topic_entries(node)
    if not overrides:
        return default
    entries = list(default)
    for name, text in overrides.items():
        place = _PLACES.get(name)
        if place is not None:
            entries[place] = _overridden(entries[place], text)
    unknown = [_unknown(name) for name in overrides if name not in _PLACES]
    return tuple(sorted([*entries, *unknown], key=lambda entry: entry.name) if unknown else entries)


@kept_in_config
def broker_entries(node: NodeConfig) -> tuple[DescribedConfig, ...]:
    """Return every config of a node, sorted by name."""
    written = {name for _, level in node.levels() for name in level}
    names = sorted(written | {name for name, key in KEYS.items() if key.listed})
    return tuple(_broker_entry(name, node, _broker_synonyms(name, node)) for name in names)


def default_broker_entries(node: NodeConfig) -> tuple[DescribedConfig, ...]:
    """Return the configs that were set for all nodes, sorted by name."""
    level = NodeConfig({}, dynamic_default=node.dynamic_default)
    return tuple(_written_entry(name, level) for name in sorted(node.dynamic_default))


def _overridden(entry: DescribedConfig, text: str) -> DescribedConfig:
    value = render_value(TOPIC_KEYS[entry.name].key.parse(text))
    override = ConfigSynonym(entry.name, value, ConfigSource.TOPIC_CONFIG)
    return DescribedConfig(
        name=entry.name,
        value=value,
        source=ConfigSource.TOPIC_CONFIG,
        type=entry.type,
        documentation=entry.documentation,
        synonyms=(override, *entry.synonyms),
    )


def _unknown(name: str) -> DescribedConfig:
    """Return an override with an unknown key, whose value may be a secret."""
    return DescribedConfig(
        name=name,
        value=None,
        source=ConfigSource.TOPIC_CONFIG,
        type=KeyType.UNKNOWN,
        documentation="",
        is_sensitive=True,
        synonyms=(ConfigSynonym(name, None, ConfigSource.TOPIC_CONFIG),),
    )


@kept_in_config
def _default_topic_entries(node: NodeConfig) -> tuple[DescribedConfig, ...]:
    return tuple(_default_topic_entry(name, node) for name in sorted(TOPIC_KEYS))


def _default_topic_entry(name: str, node: NodeConfig) -> DescribedConfig:
    topic_key = TOPIC_KEYS[name]
    synonyms = _broker_synonyms(topic_key.synonyms[0].name, node) if topic_key.synonyms else ()
    return DescribedConfig(
        name=name,
        value=render_value(topic_defaults(node)[name]),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        type=topic_key.key.type,
        documentation=topic_key.key.documentation,
        synonyms=synonyms,
    )


def _broker_entry(name: str, node: NodeConfig, synonyms: tuple[ConfigSynonym, ...]) -> DescribedConfig:
    kind = _type_of(name, node)
    sensitive = kind in {KeyType.PASSWORD, KeyType.UNKNOWN}
    key = key_named(name)
    return DescribedConfig(
        name=name,
        value=None if sensitive else render_value(node.value(name)),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        type=kind,
        documentation="" if key is None else key.documentation,
        read_only=key is None or key.update_mode in {UpdateMode.READ_ONLY, UpdateMode.THROTTLE},
        is_sensitive=sensitive,
        synonyms=synonyms,
    )


def _written_entry(name: str, node: NodeConfig) -> DescribedConfig:
    """Return a config with its text unparsed, as Kafka shows the defaults of the cluster."""
    synonyms = tuple(dropwhile(lambda synonym: synonym.name != name, _in_levels(name, node)))
    return msgspec.structs.replace(_broker_entry(name, node, synonyms), value=synonyms[0].value)


def _type_of(name: str, node: NodeConfig) -> KeyType:
    key = key_named(name)
    return KeyType.UNKNOWN if key is None or node.described_as_unknown(name) else key.type


def _broker_synonyms(name: str, node: NodeConfig) -> tuple[ConfigSynonym, ...]:
    all_of_them = [*_in_levels(name, node), *_in_defaults(name)]
    return tuple(dropwhile(lambda synonym: synonym.name != name, all_of_them))


def _in_levels(name: str, node: NodeConfig) -> Iterator[ConfigSynonym]:
    sensitive = _type_of(name, node) in {KeyType.PASSWORD, KeyType.UNKNOWN}
    for source, level in node.levels():
        for synonym in synonyms_of(name):
            if synonym in level:
                yield ConfigSynonym(synonym, None if sensitive else level[synonym], source)


def _in_defaults(name: str) -> Iterator[ConfigSynonym]:
    for synonym in synonyms_of(name):
        key = KEYS.get(synonym)
        if key is None or key.default is None or key.update_mode is UpdateMode.THROTTLE or synonym in PLUGIN_KEYS:
            continue
        value = None if key.is_sensitive else render_value(key.default_value)
        yield ConfigSynonym(synonym, value, ConfigSource.DEFAULT_CONFIG)
