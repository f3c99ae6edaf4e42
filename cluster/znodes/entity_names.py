"""The names of users, clients, addresses and resources in paths.

Rule: whatever a client may name is escaped for a path, or refused; no name reaches another znode
than its own.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_plus

from .layout import DEFAULT_ENTITY

NODE_NAME = re.compile(r"[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]++")
"""Matches a name that ZooKeeper allows in a path, apart from `.` and `..`."""

USERS, CLIENTS, IPS = "users", "clients", "ips"
"""The first part of the path below `/config` of a user, a client id, an address."""
CLIENT_ROOTS = (USERS, CLIENTS, IPS)
USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""The types of entities in Kafka's quota APIs."""

Entity = Mapping[str, str | None]
"""The names of an entity by type, such as `{"user": "alice", "client-id": None}`; None stands for
the default entity.
"""


def is_node_name(name: str) -> bool:
    """Whether ZooKeeper allows a znode of this name."""
    return name not in (".", "..") and NODE_NAME.fullmatch(name) is not None


def sanitized(name: str) -> str:
    """Escape the name of a user, client or address for a path (Kafka: Sanitizer)."""
    return quote(name, safe="").replace("~", "%7E")


def unsanitized(name: str) -> str:
    return unquote_plus(name)


def _in_path(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitized(name)


def _from_path(name: str) -> str | None:
    return None if name == DEFAULT_ENTITY else unsanitized(name)


def user_path(user: str | None) -> str:
    """Return the path below `/config` of a user, or of the default for users."""
    return f"{USERS}/{_in_path(user)}"


def client_entity_path(entity: Entity) -> str:
    """Return the path below `/config` of a user, a client id, both together, or an address."""
    if IP in entity:
        return f"{IPS}/{_in_path(entity[IP])}"
    if USER not in entity:
        return f"{CLIENTS}/{_in_path(entity[CLIENT_ID])}"
    if CLIENT_ID not in entity:
        return user_path(entity[USER])
    return f"{user_path(entity[USER])}/{CLIENTS}/{_in_path(entity[CLIENT_ID])}"


def client_entity_at(path: str) -> Entity | None:
    """Return the entity whose configs lie at this path below `/config`, or None if it is none of a
    user, a client id or an address.
    """
    match path.split("/"):
        case ["users", user]:
            return {USER: _from_path(user)}
        case ["users", user, "clients", client]:
            return {USER: _from_path(user), CLIENT_ID: _from_path(client)}
        case ["clients", client]:
            return {CLIENT_ID: _from_path(client)}
        case ["ips", address]:
            return {IP: _from_path(address)}
    return None
