"""The notifications of brokers to the controller, below `ISR_CHANGE_NOTIFICATION` and
`LOG_DIR_EVENT_NOTIFICATION`.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from .content import BrokerId, Int, read, write


class NotifiedPartition(Struct, frozen=True):
    topic: str
    partition: Int


class IsrChange(Struct):
    version: Int
    partitions: list[NotifiedPartition]


class LogDirEvent(Struct):
    version: Int
    broker: BrokerId
    event: Int = 1
    """The number of the event; 1, a failed log directory, is the only one."""


ISR_CHANGE_READER = msgspec.json.Decoder(IsrChange)
LOG_DIR_EVENT_READER = msgspec.json.Decoder(LogDirEvent)


def encode_isr_change(partitions: Iterable[NotifiedPartition]) -> bytes:
    """Encode the notification of a broker before Kafka 2.7 that has changed an ISR by itself."""
    return write(IsrChange(1, list(partitions)))


def decode_isr_change(data: bytes | None) -> list[NotifiedPartition]:
    return read("the notification", data, ISR_CHANGE_READER).partitions


def encode_log_dir_event(broker_id: int) -> bytes:
    return write(LogDirEvent(1, broker_id))


def decode_log_dir_event(data: bytes | None) -> int:
    return read("the notification", data, LOG_DIR_EVENT_READER).broker
