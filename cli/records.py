"""`minicontroller records` deletes records of partitions and shows their offsets, on any Kafka."""

from collections.abc import Sequence

import click

from ..client.errors import AdminError
from ..client.records import ListedOffset, OffsetSpec
from ..client.topic_partition import TopicPartition
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask, dry_run_option, yes_option
from .changes import facts_of, parse_by_partition, parse_offset, parse_partitions
from .output import print_table
from .results import ChangeResult, conclude, conclude_reading, confirm, error_json, failures_of
from .typed import INT64

ALL_RECORDS = -1
SPECS = {"latest": OffsetSpec.LATEST, "earliest": OffsetSpec.EARLIEST, "max-timestamp": OffsetSpec.MAX_TIMESTAMP}


def parse_offsets(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> dict[TopicPartition, int]:
    """Parse partitions with offsets, such as `orders-0=42`, or without, which means the end. Raises
    click.BadParameter, also for a repeated partition.
    """
    return parse_by_partition(texts, _offset)


def _offset(text: str, value: str) -> int:
    if "=" not in text:
        return ALL_RECORDS
    offset = parse_offset(value)
    if offset is None:
        name = text.partition("=")[0]
        raise click.BadParameter(f"{text!r} names no offset: write {name}=42, or {name} for all records.")
    return offset


@click.group()
def records() -> None:
    """Delete records of partitions, and show their offsets."""


@records.command()
@click.argument("offsets", metavar="TOPIC-PARTITION[=OFFSET]...", nargs=-1, required=True, callback=parse_offsets)
@yes_option
@dry_run_option
@admin_options
def delete(*, offsets: dict[TopicPartition, int], yes: bool, dry_run: bool, options: AdminOptions) -> None:
    """Delete records before an offset, or all of them.

    --dry-run needs nodes of minicontroller, as Kafka's DeleteRecords has no such option.
    """
    question = f"Delete records of {escaped(', '.join(map(str, offsets)))}?"
    confirm(question, "Nothing was deleted.", is_settled=yes or dry_run)
    results = ask(options, lambda admin: admin.delete_records(offsets, validate_only=dry_run))
    conclude(options, (_deletion(each, result) for each, result in results.items()), dry_run=dry_run)


def _deletion(partition: TopicPartition, result: int | AdminError) -> ChangeResult:
    if isinstance(result, AdminError):
        return ChangeResult(escaped(str(partition)), "", facts_of(partition, low_watermark=None), result)
    return ChangeResult(escaped(str(partition)), "deleted", facts_of(partition, low_watermark=result))


@records.command()
@click.argument("partitions", metavar="TOPIC-PARTITION...", nargs=-1, required=True, callback=parse_partitions)
@click.option("--of", type=click.Choice(list(SPECS)), default="latest", show_default=True, help="Which offset to show.")
@click.option("--at", "time_ms", type=click.IntRange(0, INT64), help="That of the first record since, in ms.")
@admin_options
def offsets(*, partitions: tuple[TopicPartition, ...], of: str, time_ms: int | None, options: AdminOptions) -> None:
    """Show the last or the first offsets of partitions.

    The offset -1 says that there is no such record.
    """
    spec = SPECS[of] if time_ms is None else time_ms
    found = ask(options, lambda admin: admin.list_offsets(dict.fromkeys(partitions, spec)))
    document = {"offsets": [_offset_json(each, result) for each, result in found.items()]}
    conclude_reading(options, document, lambda: _print_offsets(found), failures_of(found))


def _print_offsets(found: dict[TopicPartition, ListedOffset | AdminError]) -> None:
    rows = [
        (str(each), result.offset, result.timestamp_ms if result.timestamp_ms >= 0 else None)
        for each, result in found.items()
        if isinstance(result, ListedOffset)
    ]
    if rows:
        print_table(("of", "offset", "timestamp"), rows)


def _offset_json(partition: TopicPartition, result: ListedOffset | AdminError) -> dict[str, object]:
    if isinstance(result, AdminError):
        return facts_of(partition, offset=None, timestamp_ms=None, leader_epoch=None, error=error_json(result))
    return facts_of(
        partition,
        offset=result.offset,
        timestamp_ms=result.timestamp_ms,
        leader_epoch=result.leader_epoch,
        error=None,
    )
