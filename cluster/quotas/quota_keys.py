"""Kafka's quotas by their keys, and the values that they take.

Rule: a value that Kafka takes and that limits nothing sensibly, such as a negative rate or NaN, is
refused here, and left out where it is stored already.
"""

import logging
import math
from collections.abc import Mapping
from types import MappingProxyType

from ...policies.configs.values import KeyType, java_double
from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..znodes.entity_names import IP

log = logging.getLogger("minicontroller.quotas")

CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

OF_CLIENTS: Mapping[str, KeyType] = MappingProxyType(
    {
        "producer_byte_rate": KeyType.LONG,
        "consumer_byte_rate": KeyType.LONG,
        "request_percentage": KeyType.DOUBLE,
        CONTROLLER_MUTATION_RATE: KeyType.DOUBLE,
    }
)
OF_ADDRESSES: Mapping[str, KeyType] = MappingProxyType({CONNECTION_CREATION_RATE: KeyType.INT})
NOT_ENFORCED = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
"""The quotas that are kept for Kafka's brokers."""
MAX_VALUES = {KeyType.LONG: 2**63 - 1, KeyType.INT: 2**31 - 1}
TOLERANCE = 1e-6
"""By how much a whole number may be missed (Kafka's own tolerance)."""
MAX_NUMBER = 64
"""The most characters of a number."""


def keys_of(entity_types: frozenset[str]) -> Mapping[str, KeyType]:
    return OF_ADDRESSES if IP in entity_types else OF_CLIENTS


def quota_text(key: str, kind: KeyType, value: float) -> str:
    """Render a quota as Kafka stores it. Raises INVALID_REQUEST."""
    if kind is not KeyType.DOUBLE:
        if not (-1 < value <= MAX_VALUES[kind]) or abs(int(value + TOLERANCE) - value) > TOLERANCE:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be a {kind.name} value")
        return str(int(value + TOLERANCE))
    if math.isnan(value) or value < 0:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be at least 0")
    return java_double(value)


def quotas_in(configs: Mapping[str, str], keys: Mapping[str, KeyType]) -> dict[str, float]:
    """Return the quotas among the configs of an entity. Those that cannot be read or that no rate
    can be are left out and logged.
    """
    found = {key: _number(text) for key, text in configs.items() if key in keys}
    for key, value in found.items():
        if value is None:
            log.warning("a quota %s that is stored is no rate, and does not limit anybody", key)
    return {key: value for key, value in found.items() if value is not None}


def _number(text: str) -> float | None:
    try:
        value = float(text) if len(text) <= MAX_NUMBER and "_" not in text else -1.0
    except ValueError:
        return None
    return value if value >= 0 else None
