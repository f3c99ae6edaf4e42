"""Names of keys that are not those of a Kafka 3.9 broker, and what their authors need to know.

Rule: a name that another release of Kafka has is explained, and not taken for a slip of the pen.
"""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from ...policies.configs.newer_keys import NEWER_BROKER_KEYS
from .keys import base_name, nearest_key

INTERNAL = frozenset(
    {
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "internal.metadata.max.fetch.size.in.bytes",
    }
)
"""Keys of KRaft that Kafka calls internal."""
NEWER = INTERNAL.union(NEWER_BROKER_KEYS)
"""The keys of brokers of Kafka 4.0 to 4.4 that 3.9 does not have."""
REMOVED: Mapping[str, str] = MappingProxyType(
    {
        "advertised.host.name": "set advertised.listeners",
        "advertised.port": "set advertised.listeners",
        "host.name": "set listeners",
        "port": "set listeners",
        "quota.consumer.default": "set it with minicontroller quotas, or kafka-configs.sh",
        "quota.producer.default": "set it with minicontroller quotas, or kafka-configs.sh",
        "zookeeper.sync.time.ms": "leave it out",
    }
)
"""Keys that Kafka had before 3.0, and what to do instead."""
AUTHORIZER = "authorizer.class.name"


def is_slip_for_authorizer(name: str) -> bool:
    """Return whether a name that could be an authorizer's own key is a misspelt
    `authorizer.class.name`, without which everybody may do everything.
    """
    return name != AUTHORIZER and name.startswith("authorizer.") and bool(difflib.get_close_matches(name, [AUTHORIZER], 1, 0.9))  # fmt: skip


def meant_by(name: str) -> str | None:
    """Return the key that somebody meant by a name that is none, if one is similar enough."""
    base = base_name(name)
    if base in NEWER or base in REMOVED:
        return None
    return AUTHORIZER if is_slip_for_authorizer(name) else nearest_key(name)


def explained(name: str) -> str:
    """Return the end of a sentence that says there is no key of this name."""
    base = base_name(name)
    if base in NEWER:
        return ", which Kafka has since 4.0 and nodes, which follow Kafka 3.9, do not: leave it out."
    if base in REMOVED:
        return f", which Kafka 3.0 removed: {REMOVED[base]}."
    near = meant_by(name)
    return f"; did you mean {near}?" if near else "."
