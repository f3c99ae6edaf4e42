"""Declares the configuration keys, and finds the key that a name stands for.

Rule: one line in a table is the only declaration of a key's type, default and limits. Kafka's keys
are in `broker_keys.py`, this program's own are here. A name may have the prefix of a listener and
of one of its mechanisms.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

import msgspec

from ...policies.configs.broker_keys import TABLE as BROKER_TABLE
from ...policies.configs.tables import read_default, read_table
from ...policies.configs.validators import Validator, validator_of
from ...policies.configs.values import KeyType, Value, parse_value

OWN_TABLE = """
topic.management.policy.class.name | string | - | - | - | The policy that judges changes of topics: module:Class, path/to/file.py:Class, or rules.toml.
policy.rules.files | list | "" | - | - | Rule files in TOML, separated by commas; their rules add up.
policy.rules.reload.interval.ms | long | 1000 | >=0 | - | How often rule files are checked for changes; 0 for never.
policy.timeout.ms | long | 5000 | >=1 | - | How long a policy may take for one topic or resource before it is refused.
metadata.completion | string | local | local|cluster | - | When a change is complete: once this node knows it (local), or once every node does (cluster).
controller.forwarding.enable | boolean | true | - | - | Whether a node forwards requests that only the controller can serve.
controller.watchdog.timeout.ms | long | 10000 | >=0 | - | After how long without a turn of its event loop a controller ends its session; 0 for never.
http.listen | string | - | - | - | The address, host:port, of metrics, health and the page; none by default. Everybody who reaches it can read it, unless a token is set.
http.ssl.keystore.location | string | - | - | - | The private key and the certificate of the HTTP port, which then has TLS.
http.ssl.keystore.type | string | PEM | - | - | The type of that key store: PEM, or PKCS12.
http.ssl.keystore.password | password | - | - | - | The password of that key store.
http.ssl.key.password | password | - | - | - | The password of the private key in it.
http.bearer.token | password | - | - | - | The token that requests at the HTTP port have to show, except those for /health.
http.bearer.token.file | string | - | - | - | A file with that token, which is read again when it changes.
records.memory.max.bytes | long | - | >=0 | - | How many bytes the records, groups and transactions of `up` may take; by default a quarter of the memory of the machine.
log.format | string | human | human|json | - | The format of the log: lines for people, or a JSON object in each line.
audit.dir | string | - | - | - | The folder of the audit log, in which a controller on this node records every decision; without it there is no log.
audit.flush | string | interval | always|interval | - | When decisions are fsynced: before the answer (always), or many at once, a little later (interval).
audit.flush.interval.ms | int | 1000 | >=1 | - | How often decisions are written to the disk, with audit.flush=interval.
audit.on.failure | string | refuse | refuse|drop | - | What happens while the audit log cannot be written: changes are refused, or their records are dropped and counted.
audit.max.bytes | int | 67108864 | >=1024 | - | The size at which a file of the audit log is closed and the next one begun.
audit.max.ms | long | 3600000 | >=1 | - | The age at which a file of the audit log is closed and the next one begun.
audit.queue.events | int | 100000 | >=1 | - | How many decisions may wait to be written; with more, audit.on.failure decides.
zookeeper.sasl.client.jaas.config | password | - | - | - | This node's login at ZooKeeper: the DigestLoginModule with a username and a password, as in the section Client of a JAAS file.
java.security.auth.login.config | string | - | - | - | A JAAS file: its sections KafkaServer and <listener>.KafkaServer hold for listeners without a key of their own, and Client is this node's login at ZooKeeper. KAFKA_OPTS can name it, as for Kafka.
super.users | string | "" | - | plugin | Who may do everything, as User:name, separated by semicolons.
sasl.oauthbearer.header.urlencode | boolean | false | - | plugin | Whether clientId and clientSecret are encoded as in a URL when this node asks for its token (RFC 6749, KIP-1025).
allow.everyone.if.no.acl.found | boolean | false | - | plugin | Whether a resource without ACLs is open to everybody.
"""
DIALECTS = "kafka|kip"

PLUGIN_PREFIXES = (
    "authorizer.",
    "confluent.",
    "metrics.context.",
    "rlmm.config.",
    "rsm.config.",
    "topic.management.policy.config.",
)
"""Keys with these prefixes belong to plugins (authorizers, tiered storage, Confluent's additions,
policies), which validate them.
"""

LISTENER_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""These keys may follow `listener.name.<listener>.<mechanism>.`."""

SECURITY_KEYS_OF_A_LISTENER = frozenset(
    f"ssl.{name}"
    for name in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)
"""While a node runs, these keys change only with a listener's prefix."""

LISTENER_KEYS_OF_THE_CLUSTER = frozenset({"max.connection.creation.rate", "max.connections", "num.network.threads"})
"""With a listener's prefix, these keys may be set for all nodes at once."""

SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: names
        for names in (
            ("log.roll.ms", "log.roll.hours"),
            ("log.roll.jitter.ms", "log.roll.jitter.hours"),
            ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        )
        for name in names
    }
    | {"log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")}
)
"""The names that share one value, by key. The first name that is set takes precedence."""

MAX_NAME = 1_000
"""The most characters of a name. A longer name is no key and is not cached."""
_LISTENER_PREFIX = re.compile(r"listener\.name\.(?P<listener>[^.]*+)\.(?P<base>.++)", re.DOTALL)
_DIALECT = re.compile(r"listener\.dialect\.[^.]++")


class UpdateMode(Enum):
    """How a key changes while a node runs."""

    READ_ONLY = "-"
    PER_BROKER = "broker"
    CLUSTER_WIDE = "cluster"
    THROTTLE = "throttle"
    """A throttle is set for one node or for all nodes, and never in a file. Kafka describes it as
    read-only all the same.
    """


class Key(msgspec.Struct, frozen=True):
    name: str
    type: KeyType
    default: str | None
    """The default as text, or None if there is none."""
    validator: Validator | None
    update_mode: UpdateMode
    documentation: str
    listed: bool = True
    """Whether DescribeConfigs shows the key even if it is not set."""

    @property
    def is_sensitive(self) -> bool:
        return self.type in {KeyType.PASSWORD, KeyType.UNKNOWN}

    def parse(self, text: str) -> Value:
        """Parse a value of this key. Raises InvalidValueError, whose message shows the text unless
        it is a secret.
        """
        value = parse_value(self.name, self.type, text)
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    @property
    def default_value(self) -> Value:
        return None if self.default is None else parse_value(self.name, self.type, self.default)


def read_notation(text: str) -> Validator | None:
    return validator_of("" if text == "-" else text)


def _declared(table: str) -> Iterator[Key]:
    for name, kind, default, valid, mode, documentation in read_table(table):
        yield Key(
            name,
            # Kafka redacts keys that its own table lacks, and so does this: a plugin's keys may be
            # secrets.
            KeyType[kind.upper()],
            read_default(default),
            read_notation(valid),
            UpdateMode.READ_ONLY if mode in {"internal", "plugin"} else UpdateMode(mode),
            documentation,
            listed=mode not in {"internal", "plugin", "throttle"},
        )


KEYS: Mapping[str, Key] = MappingProxyType(
    {key.name: key for table in (BROKER_TABLE, OWN_TABLE) for key in _declared(table)}
)
PLUGIN_KEYS = frozenset(columns[0] for columns in read_table(OWN_TABLE) if columns[4] == "plugin")
_BY_LOWER_CASE = {name.lower(): name for name in KEYS}


def key_named(name: str) -> Key | None:
    """Return the key that `name` stands for, with or without the prefix of a listener and
    mechanism, or None if there is none.
    """
    return _key_named(name) if len(name) <= MAX_NAME else None


@lru_cache(maxsize=4096)
def _key_named(name: str) -> Key | None:
    if name in KEYS:
        return KEYS[name]
    if _DIALECT.fullmatch(name):
        return _variant(
            name, KeyType.STRING, "kafka", "Which edition of the proposals a listener speaks: kafka; kip comes later."
        )
    if name.startswith(PLUGIN_PREFIXES):
        return _variant(name, KeyType.UNKNOWN, None, "A setting of a plugin.")
    base = KEYS.get(base_name(name))
    if base is None or base.name == name:
        return None
    return Key(name, base.type, None, base.validator, UpdateMode.READ_ONLY, base.documentation, listed=False)


def base_name(name: str) -> str:
    """Return `name` without the prefix of a listener and, for keys that have one, a mechanism."""
    prefixed = _LISTENER_PREFIX.fullmatch(name)
    if prefixed is None:
        return name
    base = prefixed["base"]
    return next((key for key in LISTENER_MECHANISM_KEYS if base == key or base.endswith(f".{key}")), base)


def has_listener_prefix(name: str) -> bool:
    return listener_of(name) is not None


def listener_of(name: str) -> str | None:
    prefixed = _LISTENER_PREFIX.fullmatch(name)
    return None if prefixed is None else prefixed["listener"]


def synonyms_of(name: str) -> tuple[str, ...]:
    """Return the names under which the value of `name` may be set, including `name`."""
    if name in SYNONYMS:
        return SYNONYMS[name]
    base = base_name(name)
    return (name,) if base == name else (name, base)


def nearest_key(name: str) -> str | None:
    """Return the key that is most similar to a misspelt name, if any is similar enough."""
    prefixed = _LISTENER_PREFIX.fullmatch(name)
    if prefixed is not None:
        near = difflib.get_close_matches(prefixed["base"], KEYS, 1, 0.6)
        return name.removesuffix(prefixed["base"]) + near[0] if near else None
    near = difflib.get_close_matches(name.lower(), _BY_LOWER_CASE, 1, 0.6)
    return _BY_LOWER_CASE[near[0]] if near else None


def in_declared_case(name: str) -> str:
    """Return `name` in the case of its declaration, which environment variables lose
    (zookeeper.clientCnxnSocket).
    """
    return _BY_LOWER_CASE.get(name, name)


def _variant(name: str, kind: KeyType, default: str | None, documentation: str) -> Key:
    validator = validator_of(DIALECTS) if kind is KeyType.STRING else None
    return Key(name, kind, default, validator, UpdateMode.READ_ONLY, documentation, listed=False)
