"""`minicontroller records` deletes records of partitions on any Kafka."""

from collections.abc import Sequence

import click

from ...client.model import TopicPartition
from ...text.escaping import escaped
from .admin_options import AdminOptions, ChangeResult, admin_options, ask, conclude
from .changes import parse_partition
from .output import is_conversation

LARGEST = 2**63 - 1
ALL_RECORDS = -1


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
    """Delete records of partitions."""


@records.command()
@click.argument("offsets", metavar="TOPIC-PARTITION[=OFFSET]...", nargs=-1, required=True, callback=parse_offsets)
@click.option("--yes", is_flag=True, help="Delete without asking for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only check the request, policies included.")
@admin_options
def delete(*, offsets: dict[TopicPartition, int], yes: bool, dry_run: bool, options: AdminOptions) -> None:
    """Delete the records of partitions before an offset, or all of them.

    --dry-run needs nodes of minicontroller, as Kafka's DeleteRecords has no such option.
    """
    question = f"Delete records of {escaped(', '.join(map(str, offsets)))}?"
    if not (yes or dry_run) and is_conversation() and not click.confirm(question):
        raise click.ClickException("Nothing was deleted.")
    results = ask(options, lambda admin: admin.delete_records(offsets, validate_only=dry_run))
    conclude(
        options,
        (
            ChangeResult(
                escaped(str(each)),
                "deleted",
                {"topic": each.topic, "partition": each.partition, "low_watermark": _low_watermark(result)},
                None if isinstance(result, int) else result,
            )
            for each, result in results.items()
        ),
        dry_run=dry_run,
    )


def _low_watermark(result: object) -> int | None:
    return result if isinstance(result, int) else None
