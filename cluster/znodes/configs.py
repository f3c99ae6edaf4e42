"""The znodes of configs: those of topics, brokers and other entities, and the notifications that
they have changed.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from ..entities import NO_CONFIGS
from ..java_hash import hash_table_order
from .content import Int, MalformedZnodeError, check_fit, read, write

ENTITY_PATH = re.compile(
    r"(?!\.{1,2}/)[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]++(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]++)++"
)
"""Matches at least two names that ZooKeeper allows in a path, none of them `.` or `..`."""
KINDS = {1: ("topics", "clients"), 2: ("topics", "brokers", "users", "clients", "ips")}
"""The types of entities that a notification may name, by its version."""


class EntityConfig(Struct):
    version: Int = 1
    config: dict[str, str] = {}


class ConfigChangeZnode(Struct):
    version: Int
    entity_path: str = ""


class FirstConfigChangeZnode(ConfigChangeZnode):
    """A notification of version 1, which has a kind and a name instead of a path."""

    entity_type: str = ""
    entity_name: str = ""


CONFIG_READER = msgspec.json.Decoder(EntityConfig)
CONFIG_CHANGE_READER = msgspec.json.Decoder(FirstConfigChangeZnode)


def encode_config(configs: Mapping[str, str]) -> bytes:
    """Encode the configs of an entity. Kafka writes this znode for every topic, also for one
    without configs.
    """
    return write(EntityConfig(1, {key: configs[key] for key in hash_table_order(configs)}))


def decode_config(data: bytes | None) -> Mapping[str, str]:
    """Decode the configs of an entity. A znode without data, such as `/config/users/<user>` above a
    client's quota, has none.
    """
    if not data:
        return NO_CONFIGS
    found = read("the config", data, CONFIG_READER, holds_secrets=True).config
    check_fit("a key of the config", found)
    return found or NO_CONFIGS


def encode_config_change(entity_path: str) -> bytes:
    """Encode the notification for brokers to read `/config/<entity_path>` again, which goes into a
    sequential znode below `CONFIG_CHANGES`.
    """
    return write(ConfigChangeZnode(2, entity_path))


def decode_config_change(data: bytes | None) -> tuple[str, str]:
    """Decode a notification of version 1 or 2 to the entity's type and name, such as ("topics",
    "orders") or ("users", "alice/clients/<default>"). Kafka ignores those of other versions, too.
    """
    change = read("the notification", data, CONFIG_CHANGE_READER)
    if change.version not in KINDS:
        raise MalformedZnodeError(f"the notification has version {change.version}, which is neither 1 nor 2")
    path = change.entity_path if change.version == 2 else f"{change.entity_type}/{change.entity_name}"
    kind, _, name = path.partition("/")
    if kind not in KINDS[change.version] or not ENTITY_PATH.fullmatch(path):
        raise MalformedZnodeError(f"the notification names nothing that has configs: {data!r:.80}")
    return kind, name
