"""Which keys of a broker may change while it runs, and whether one value of such a key is valid.

Rule: pure, and each key by itself: nothing here knows the rest of a configuration. Kafka refuses a
bad value as an invalid request (42), not as an invalid config (40), and takes keys that it does not
know, which may be a plugin's.
"""

from collections.abc import Mapping

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
from .refused_keys import faults_of_keys

LISTENERS_OF_A_RUNNING_NODE = ("listeners", "advertised.listeners", "listener.security.protocol.map")
"""Keys that Kafka would change while a broker runs, and this program cannot."""
PER_IP_OVERRIDES = "max.connections.per.ip.overrides"


def acceptable_broker_configs(configs: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """Return the configs in ZooKeeper that a node follows; it ignores the others, as Kafka does."""
    return {name: text for name, text in configs.items() if _is_acceptable(name, text, per_broker)}


def _is_acceptable(name: str, text: str, per_broker: bool) -> bool:
    if is_read_only(name) or name in SECURITY_KEYS_OF_A_LISTENER or name in LISTENERS_OF_A_RUNNING_NODE:
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
    """Whether a key cannot change while a node runs. Keys without a declaration, and those of one
    listener, can.
    """
    return name in KEYS and KEYS[name].update_mode is UpdateMode.READ_ONLY


def is_of_one_broker(name: str) -> bool:
    if has_listener_prefix(name):
        return base_name(name) not in LISTENER_KEYS_OF_THE_CLUSTER
    return name in KEYS and KEYS[name].update_mode is UpdateMode.PER_BROKER


def check_values(configs: Mapping[str, str]) -> None:
    """Raise Refusal(INVALID_REQUEST) for a value that its key does not take."""
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
