"""Parses arguments of commands: settings, changes of configs, partitions and assignments."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from ..client.configs import AlterConfigOp
from ..client.topic_partition import TopicPartition
from ..protocol.config_resources import ConfigOperation
from .typed import INT32, INT64

V = TypeVar("V")

OPERATIONS = {"+": ConfigOperation.APPEND, "-": ConfigOperation.SUBTRACT}


def parse_settings(_context: click.Context, _parameter: click.Parameter, settings: Sequence[str]) -> dict[str, str]:
    """Parse KEY=VALUE arguments. Raises click.BadParameter, also for a repeated key."""
    values: dict[str, str] = {}
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not (key and sign):
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE.")
        if key in values:
            raise click.BadParameter(f"{key} is set twice.")
        values[key] = value
    return values


def parse_changes(
    _context: click.Context, _parameter: click.Parameter, changes: Sequence[str]
) -> tuple[AlterConfigOp, ...]:
    """Parse arguments KEY=VALUE, KEY+=VALUE and KEY-=VALUE. Raises click.BadParameter."""
    return tuple(_change(change) for change in changes)


def _change(text: str) -> AlterConfigOp:
    key, sign, value = text.partition("=")
    operation = OPERATIONS.get(key[-1:], ConfigOperation.SET)
    key = key[:-1] if operation is not ConfigOperation.SET else key
    if not (key and sign):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE (or KEY+=VALUE, KEY-=VALUE for lists).")
    return AlterConfigOp(operation, key, value)


def parse_assignment(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[tuple[int, ...], ...]:
    """Parse a replica assignment in the notation of Kafka's tools: `1:2,2:3` is two partitions of
    two replicas each. Raises click.BadParameter.
    """
    if text is None:
        return ()
    try:
        rows = tuple(tuple(int(broker) for broker in replicas.split(":")) for replicas in text.split(","))
    except ValueError:
        rows = ()
    if not rows or not all(0 <= broker <= INT32 for replicas in rows for broker in replicas):
        raise click.BadParameter(f"{text!r} is not of the form 1:2,2:3 (broker ids, a group for each partition).")
    return rows


def parse_partitions(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> tuple[TopicPartition, ...]:
    """Parse partitions as Kafka prints them, such as `orders-0`. Raises click.BadParameter."""
    return tuple(dict.fromkeys(parse_partition(text) for text in texts))


def parse_partition(text: str) -> TopicPartition:
    """Parse a partition as Kafka prints it, such as `orders-0`. Raises click.BadParameter."""
    topic, _, number = text.rpartition("-")
    if not (topic and number.isascii() and number.isdecimal()) or len(number) > len(str(INT32)) or int(number) > INT32:
        raise click.BadParameter(f"{text!r} is not TOPIC-PARTITION, such as orders-0.")
    return TopicPartition(topic, int(number))


def parse_by_partition(texts: Sequence[str], read: Callable[[str, str], V]) -> dict[TopicPartition, V]:
    """Parse arguments TOPIC-PARTITION=VALUE. `read` returns what a whole argument and its value
    stand for. Raises click.BadParameter, also for a repeated partition.
    """
    values: dict[TopicPartition, V] = {}
    for text in texts:
        name, _, value = text.partition("=")
        partition = parse_partition(name)
        if partition in values:
            raise click.BadParameter(f"{name} is named twice.")
        values[partition] = read(text, value)
    return values


def parse_offset(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(INT64))):
        return None
    offset = int(text)
    return offset if offset <= INT64 else None


def facts_of(partition: TopicPartition, **more: object) -> dict[str, object]:
    """Return a partition as fields of JSON, with `more` behind them."""
    return {"topic": partition.topic, "partition": partition.partition, **more}
