"""The settings of the coordinator of groups."""

import msgspec

LARGEST = 2**31 - 1


class GroupLimits(msgspec.Struct, frozen=True):
    """Kafka's settings of a group coordinator, with Kafka's defaults. Times are in milliseconds."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = LARGEST
    """How many members a group has at most."""
    initial_rebalance_delay_ms: int = 3_000
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    max_bytes: int = LARGEST
    """How much memory all groups take together, about."""
