"""Holds the configuration of one node: the value and source of every key, and its listeners.

Rule: a `NodeConfig` is immutable and valid. Reading an undeclared key, or a number from a key that
holds text, is a bug and raises. Mistakes in the configuration raise one `ConfigurationError` that
lists all of them. A change while the node runs makes a new `NodeConfig`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property, wraps
from types import MappingProxyType
from typing import Any, TypeVar, TypeVarTuple

from ...policies.configs.values import Value
from .dynamic_keys import acceptable_broker_configs
from .jaas import JaasConfig, Sections, login_of_mechanism, parse_jaas, section_of
from .keys import PLUGIN_KEYS, Key, key_named
from .listeners import ConfiguredListener, ListenerFault, make_listeners, parse_counts, parse_protocol_map

T = TypeVar("T")
Others = TypeVarTuple("Others")

ADVERTISED, JAAS_KEY = "advertised.listeners", "sasl.jaas.config"
LISTENERS, PROTOCOLS = "listeners", "listener.security.protocol.map"
LISTENERS_AT_RUN_TIME = frozenset({LISTENERS, ADVERTISED, PROTOCOLS})
"""The keys that change together which listeners a running node has."""
NOTHING: Mapping[str, str] = MappingProxyType({})


class ConfigSource(IntEnum):
    """The source of a config's value, with the numbers of DescribeConfigs v1."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


def kept_in_config(function: Callable[["NodeConfig", *Others], T]) -> Callable[["NodeConfig", *Others], T]:
    """Decorate a function of a configuration, and of few other values, that returns the same each
    time: its results are kept in the configuration and freed with it. A cache of its own would keep
    configurations that were in force long ago.
    """

    @wraps(function)
    def kept(config: "NodeConfig", *others: *Others) -> T:
        key = (function, *others)
        if key not in config.results:
            config.results[key] = function(config, *others)
        result: T = config.results[key]
        return result

    return kept


class NodeConfig:
    """The values of a node's configuration and their sources. Instances are compared by identity,
    so that they can be keys of caches.
    """

    def __init__(
        self,
        static: Mapping[str, str],
        *,
        dynamic_broker: Mapping[str, str] = NOTHING,
        dynamic_default: Mapping[str, str] = NOTHING,
        warnings: Sequence[str] = (),
        jaas_sections: Sections = MappingProxyType({}),
    ) -> None:
        """Make a configuration from texts that `loading.py` has checked."""
        self.static = MappingProxyType({**_node_id(static), **static})
        """The values from the file, the environment and the overrides, as text."""
        self.dynamic_broker = dynamic_broker
        """The values changed at run time for this node."""
        self.dynamic_default = dynamic_default
        """The values changed at run time for all nodes."""
        self.warnings = tuple(warnings)
        """Sentences for the log about settings that are valid but doubtful."""
        self.jaas_sections = jaas_sections
        """The sections of the JAAS file that `java.security.auth.login.config` names."""
        self.results: dict[tuple[Any, ...], Any] = {}
        """The results of functions that are `kept_in_config`."""
        self._values: dict[str, Value] = {}

    def with_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str]) -> "NodeConfig":
        """Return this configuration with the configs of this node and of all nodes in
        `/config/brokers`.

        Configs that are invalid by themselves are ignored, as Kafka does: a bad value in ZooKeeper
        must not stop a running node. So are listeners that do not fit, or that move the one at
        which nodes meet. `in_force` ignores what breaks a rule over several keys.
        """
        config = NodeConfig(
            self.static,
            dynamic_broker=MappingProxyType(acceptable_broker_configs(broker, per_broker=True)),
            dynamic_default=MappingProxyType(acceptable_broker_configs(default, per_broker=False)),
            warnings=self.warnings,
            jaas_sections=self.jaas_sections,
        )
        if LISTENERS_AT_RUN_TIME & config.dynamic_broker.keys() and not config.can_listen():
            others = {key: text for key, text in broker.items() if key not in LISTENERS_AT_RUN_TIME}
            return self.with_dynamic(others, default)
        return config

    def boolean(self, key: str) -> bool:
        value = self.value(key)
        assert isinstance(value, bool), key
        return value

    def integer(self, key: str) -> int:
        value = self.value(key)
        assert isinstance(value, int), key
        return value

    def optional_integer(self, key: str) -> int | None:
        return None if self.value(key) is None else self.integer(key)

    def decimal(self, key: str) -> float:
        value = self.value(key)
        assert isinstance(value, float), key
        return value

    def string(self, key: str) -> str:
        """Return the value of a key as text, or an empty string if it has no value."""
        value = self.value(key)
        assert value is None or isinstance(value, str), key
        return value or ""

    def optional_string(self, key: str) -> str | None:
        return None if self.value(key) is None else self.string(key)

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.value(key)
        assert isinstance(value, tuple), key
        return value

    @property
    def log_dirs(self) -> list[str]:
        text = self.string("log.dirs") or self.string("log.dir")
        return [part.strip() for part in text.split(",") if part.strip()]

    def value(self, key: str) -> Value:
        """Return the value in force: the first of this node's, all nodes', the file's and the
        default. Raises KeyError for an undeclared key.
        """
        if key not in self._values:
            declared = self.key(key)
            text = next((level[key] for _, level in self.levels() if key in level), None)
            self._values[key] = declared.default_value if text is None else declared.parse(text)
        return self._values[key]

    def text(self, key: str) -> str | None:
        """Return a value as it was written, or else the text of the default. None if there is no
        value.
        """
        written = next((level[key] for _, level in self.levels() if key in level), None)
        return self.key(key).default if written is None else written

    def source(self, key: str) -> ConfigSource:
        return next((source for source, level in self.levels() if key in level), ConfigSource.DEFAULT_CONFIG)

    def levels(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """Return the configured texts by source, with the highest precedence first."""
        return (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default),
            (ConfigSource.STATIC_BROKER_CONFIG, self.static),
        )

    @staticmethod
    def key(name: str) -> Key:
        key = key_named(name)
        if key is None:
            raise KeyError(name)
        return key

    def of_listener(self, listener: str, key: str, mechanism: str = "") -> str:
        """Return the name under which `key` applies to a listener: with its prefix if that is set,
        or else without.
        """
        prefix = f"listener.name.{listener.lower()}."
        candidates = (f"{prefix}{mechanism.lower()}.{key}" if mechanism else f"{prefix}{key}", f"{prefix}{key}")
        return next((name for name in candidates if self.source(name) is not ConfigSource.DEFAULT_CONFIG), key)

    def jaas(self, listener: str, mechanism: str) -> JaasConfig | None:
        """Return the login module for a mechanism of a listener, or None if there is none. As in
        Kafka, the key of the listener goes before the JAAS file.
        """
        section = self.jaas_section(listener, mechanism)
        if section is not None:
            return login_of_mechanism(self.jaas_sections[section], mechanism)
        text = self.optional_string(self.of_listener(listener, JAAS_KEY, mechanism))
        return None if text is None else parse_jaas(text)

    def jaas_section(self, listener: str, mechanism: str) -> str | None:
        """Return the section of the JAAS file that holds for a mechanism of a listener, or None if
        a key does.
        """
        has_own = self.of_listener(listener, JAAS_KEY, mechanism) != JAAS_KEY
        return None if has_own else section_of(self.jaas_sections, listener)

    @cached_property
    def listeners(self) -> tuple[ConfiguredListener, ...]:
        protocols = parse_protocol_map(self.string(PROTOCOLS))
        return make_listeners(self.string(LISTENERS), self.optional_string(ADVERTISED), protocols)

    def fault_of_listeners(self) -> str | None:
        """Return what is wrong with the listeners as they are set while the node runs, in Kafka's
        words where it has some, or None.
        """
        key = "inter.broker.listener.name"
        if self.optional_string(ADVERTISED) is not None and not self.string(ADVERTISED).strip():
            return "requirement failed: There must be at least one broker advertised listener."
        try:
            told = [listener for listener in self.listeners if listener.advertised_host is not None]
        except ListenerFault as fault:
            if fault.key == LISTENERS:
                return f"Error creating broker listeners from '{self.string(LISTENERS)}': {fault}."
            return f"{fault.key}: {fault}."
        names = [listener.name for listener in told]
        if not self.names_between_nodes().issubset(names):
            return (
                f"requirement failed: {key} must be a listener name defined in {ADVERTISED}. "
                f"The valid options based on currently configured listeners are {','.join(names)}"
            )
        return None

    def can_listen(self) -> bool:
        """Return whether the listeners fit, and nodes meet where the file says, where the others
        look for this one.
        """
        return self.fault_of_listeners() is None and self.meeting_places() == NodeConfig(self.static).meeting_places()

    def meeting_places(self) -> set[tuple[str, str, int, str]]:
        """Return the listeners at which nodes meet, by what they bind and speak."""
        names = self.names_between_nodes()
        return {listener.address for listener in self.listeners if listener.name in names}

    def names_between_nodes(self) -> set[str]:
        between = self.string("inter.broker.listener.name") or self.string("security.inter.broker.protocol")
        return {name.upper() for name in (between, self.string("control.plane.listener.name")) if name}

    @cached_property
    def inter_broker_listener(self) -> ConfiguredListener:
        named = self.string("inter.broker.listener.name") or self.string("security.inter.broker.protocol")
        return self._listener(named)

    @cached_property
    def control_plane_listener(self) -> ConfiguredListener:
        """The listener on which the controller connects to this node. It is the inter-broker
        listener unless control.plane.listener.name names another one.
        """
        named = self.optional_string("control.plane.listener.name")
        return self.inter_broker_listener if named is None else self._listener(named)

    @cached_property
    def max_connections_per_ip_overrides(self) -> Mapping[str, int]:
        key = "max.connections.per.ip.overrides"
        return MappingProxyType(parse_counts(key, self.string(key)))

    def _listener(self, name: str) -> ConfiguredListener:
        return next(listener for listener in self.listeners if listener.name == name.upper())

    def described_as_unknown(self, name: str) -> bool:
        """Return whether Kafka's table lacks the key, so that its value is redacted."""
        return name in PLUGIN_KEYS or key_named(name) is None

    def __repr__(self) -> str:
        return f"<NodeConfig of {len(self.static)} settings>"


def _node_id(static: Mapping[str, str]) -> dict[str, str]:
    """Give broker.id and node.id, which are synonyms, the value of the one that is set."""
    number = static.get("broker.id", static.get("node.id"))
    return {} if number is None else {"broker.id": number, "node.id": number}
