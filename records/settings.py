"""The topic configs that a log carries out."""

from collections.abc import Mapping
from typing import Self

import msgspec

from .batches import Compression, TimestampType

PRODUCER = "producer"
"""The `compression.type` with which batches stay as their producer compressed them."""
UNCOMPRESSED = "uncompressed"
LARGEST = 2**63 - 1


class LogSettings(msgspec.Struct, frozen=True):
    """With Kafka's defaults. Times are in milliseconds; -1 for a retention means no bound."""

    max_message_bytes: int = 1048588
    compression: Compression | None = None
    """None for the producer's."""
    compression_level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = LARGEST
    timestamp_after_max_ms: int = LARGEST
    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    index_interval_bytes: int = 4096
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    deletes: bool = True
    compacts: bool = False
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LARGEST
    min_cleanable_dirty_ratio: float = 0.5

    @classmethod
    def from_configs(cls, configs: Mapping[str, str]) -> Self:
        """Return the settings of a topic's configs, which were checked when they were set."""
        values: dict[str, object] = {field: int(configs[name]) for name, field in _NUMBERS.items() if name in configs}
        if (ratio := configs.get("min.cleanable.dirty.ratio")) is not None:
            values["min_cleanable_dirty_ratio"] = float(ratio)
        if (kind := configs.get("message.timestamp.type")) is not None:
            stamps = kind == "LogAppendTime"
            values["timestamp_type"] = TimestampType.LOG_APPEND_TIME if stamps else TimestampType.CREATE_TIME
        if (policy := configs.get("cleanup.policy")) is not None:
            policies = {each.strip() for each in policy.split(",")}
            values |= {"deletes": "delete" in policies, "compacts": "compact" in policies}
        if (codec := configs.get("compression.type", PRODUCER)) != PRODUCER:
            values["compression"] = Compression.NONE if codec == UNCOMPRESSED else Compression[codec.upper()]
            if (level := configs.get(f"compression.{codec}.level")) is not None:
                values["compression_level"] = int(level)
        return msgspec.convert(values, cls)


_NUMBERS = {
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "index.interval.bytes": "index_interval_bytes",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "delete.retention.ms": "delete_retention_ms",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
}
