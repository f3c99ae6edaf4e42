"""Tells which keys of a broker may change while it runs, and whether a value is valid.

Rule: the functions are pure and look at each key by itself. Like Kafka, they refuse an invalid
value with INVALID_REQUEST (42), not INVALID_CONFIG (40), and they accept unknown keys, which may
belong to a plugin.
"""

from collections.abc import Mapping

from ...cluster.errors import Refusal
from ...policies.configs.values import InvalidValueError, KeyType
from ...protocol.error_codes import ErrorCode
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
from .refused_keys import faults_of_keys

FIXED_AT_START = frozenset(
    {
        "connections.max.reauth.ms",
        "sasl.enabled.mechanisms",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.login.callback.handler.class",
        "sasl.server.callback.handler.class",
    }
)
"""Kafka can change these keys while a broker runs, some of them for one listener. This program
cannot, and neither can it change how tokens are checked and fetched.
"""
KEYS_OF_TOKENS = (
    "sasl.login.connect.",
    "sasl.login.read.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.",
)
PER_IP_OVERRIDES = "max.connections.per.ip.overrides"


def acceptable_broker_configs(configs: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """Return those configs from ZooKeeper that a node follows. It ignores the others, as Kafka
    does.
    """
    return {name: text for name, text in configs.items() if _is_acceptable(name, text, per_broker)}


def _is_acceptable(name: str, text: str, per_broker: bool) -> bool:
    if is_read_only(name) or name in SECURITY_KEYS_OF_A_LISTENER or is_fixed_at_start(name):
        return False
    try:
        check_values({name: text})
    except Refusal:
        return False
    if any(faults_of_keys({name: text})):
        return False
    key = key_named(name)
    return (per_broker or not is_of_one_broker(name)) and (key is None or key.type is not KeyType.PASSWORD)


def is_read_only(name: str) -> bool:
    """Return whether a key cannot change while a node runs. Undeclared keys and keys with a
    listener prefix can change.
    """
    return name in KEYS and KEYS[name].update_mode is UpdateMode.READ_ONLY


def is_fixed_at_start(name: str) -> bool:
    """Return whether a key, for all listeners or for one, counts as it is when the node starts."""
    base = base_name(name)
    return base in FIXED_AT_START or base.startswith(KEYS_OF_TOKENS)


def is_of_one_broker(name: str) -> bool:
    if has_listener_prefix(name):
        return base_name(name) not in LISTENER_KEYS_OF_THE_CLUSTER
    return name in KEYS and KEYS[name].update_mode is UpdateMode.PER_BROKER


def check_values(configs: Mapping[str, str]) -> None:
    """Raise Refusal(INVALID_REQUEST) if a value is invalid for its key."""
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
