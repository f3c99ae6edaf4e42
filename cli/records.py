"""`minicontroller records` deletes records of partitions and shows their offsets, on any Kafka."""

from collections.abc import Sequence

import click

from ..client.errors import AdminError
from ..client.records import ListedOffset, OffsetSpec
from ..client.topic_partition import TopicPartition
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .changes import parse_partition, parse_partitions
from .results import ChangeResult, conclude, conclude_reading, confirm, error_json, failures_of
from .tables import print_table

LARGEST = 2**63 - 1
ALL_RECORDS = -1
SPECS = {"latest": OffsetSpec.LATEST, "earliest": OffsetSpec.EARLIEST, "max-timestamp": OffsetSpec.MAX_TIMESTAMP}


def parse_offsets(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> dict[TopicPartition, int]:
    """Parse partitions with offsets, such as `orders-0=42`, or without, which means the end. Raises
    click.BadParameter, also for a repeated partition.
    """
    offsets: dict[TopicPartition, int] = {}
    for text in texts:
        name, has_offset, offset = text.partition("=")
        partition = parse_partition(name)
        is_number = offset.isascii() and offset.isdecimal() and len(offset) <= len(str(LARGEST))
        if has_offset and not (is_number and int(offset) <= LARGEST):
            raise click.BadParameter(f"{text!r} names no offset: write {name}=42, or {name} for all records.")
        if partition in offsets:
            raise click.BadParameter(f"{name} is named twice.")
        offsets[partition] = int(offset) if has_offset else ALL_RECORDS
    return offsets


@click.group()
def records() -> None:
    """Delete records of partitions, and show their offsets."""


@records.command()
@click.argument("offsets", metavar="TOPIC-PARTITION[=OFFSET]...", nargs=-1, required=True, callback=parse_offsets)
@click.option("--yes", is_flag=True, help="Delete without asking for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only check the request, policies included.")
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
    facts: dict[str, object] = {"topic": partition.topic, "partition": partition.partition, "low_watermark": None}
    if isinstance(result, AdminError):
        return ChangeResult(escaped(str(partition)), "", facts, result)
    return ChangeResult(escaped(str(partition)), "deleted", {**facts, "low_watermark": result})


@records.command()
@click.argument("partitions", metavar="TOPIC-PARTITION...", nargs=-1, required=True, callback=parse_partitions)
@click.option("--of", type=click.Choice(list(SPECS)), default="latest", show_default=True, help="Which offset to show.")
@click.option("--at", "time_ms", type=click.IntRange(0, LARGEST), help="That of the first record since, in ms.")
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
    facts: dict[str, object] = {"topic": partition.topic, "partition": partition.partition}
    if isinstance(result, AdminError):
        return {**facts, "offset": None, "timestamp_ms": None, "leader_epoch": None, "error": error_json(result)}
    return {
        **facts,
        "offset": result.offset,
        "timestamp_ms": result.timestamp_ms,
        "leader_epoch": result.leader_epoch,
        "error": None,
    }
