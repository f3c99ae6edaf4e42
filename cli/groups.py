"""`minicontroller groups` lists, describes and deletes groups, and sets and removes their offsets,
on any Kafka.
"""

from collections.abc import Sequence

import click

from .. import client
from ..client.errors import AdminError, Results
from ..client.groups import GroupDescription, OffsetAndMetadata
from ..client.topic_partition import TopicPartition
from ..text import escaped, plural
from .admin_options import AdminOptions, admin_options, ask, yes_option
from .changes import facts_of, parse_by_partition, parse_offset, parse_partition
from .output import print_table
from .results import ChangeResult, conclude, conclude_reading, confirm, error_json, failures_of, print_list

Offsets = Results[TopicPartition, OffsetAndMetadata]


def _offsets(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Parse partitions with offsets, such as `orders-0=42`. Raises click.BadParameter."""
    return parse_by_partition(texts, _offset)


def _offset(text: str, value: str) -> OffsetAndMetadata:
    offset = parse_offset(value)
    if offset is None:
        raise click.BadParameter(f"{text!r} is no partition with an offset: write orders-0=42.")
    return OffsetAndMetadata(offset)


def _partitions(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> list[TopicPartition]:
    return [parse_partition(text) for text in texts]


names_argument = click.argument("names", metavar="GROUP...", nargs=-1, required=True)
group_argument = click.argument("group", metavar="GROUP")


@click.group()
def groups() -> None:
    """List, describe and delete groups, and set and remove their offsets."""


@groups.command("list")
@admin_options
def list_groups(*, options: AdminOptions) -> None:
    """Show the groups that you may see."""
    found = ask(options, lambda admin: admin.list_consumer_groups())
    columns = ("group", "state", "protocol")
    rows = [(each.group_id, each.state, each.protocol_type) for each in found]
    document = {"groups": [dict(zip(columns, row, strict=True)) for row in rows]}
    print_list(options, document, columns, rows, "No groups.")


@groups.command()
@names_argument
@admin_options
def describe(*, names: Sequence[str], options: AdminOptions) -> None:
    """Show the state of groups, and their offsets."""

    async def question(admin: client.AdminClient) -> list[tuple[str, GroupDescription | AdminError, Offsets]]:
        found = await admin.describe_consumer_groups(names)
        return [
            (name, group, {} if isinstance(group, AdminError) else await admin.list_consumer_group_offsets(name))
            for name, group in found.items()
        ]

    found = ask(options, question)

    def show() -> None:
        for _, group, offsets in found:
            if not isinstance(group, AdminError):
                _print_group(group, offsets)

    document = {"groups": [_group_json(*each) for each in found]}
    conclude_reading(options, document, show, failures_of({name: group for name, group, _ in found}))


@groups.command("set-offsets")
@group_argument
@click.argument("offsets", metavar="TOPIC-PARTITION=OFFSET...", nargs=-1, required=True, callback=_offsets)
@admin_options
def set_offsets(*, group: str, offsets: dict[TopicPartition, OffsetAndMetadata], options: AdminOptions) -> None:
    """Set offsets of a group that has no members.

    The group is created if it does not exist.
    """
    results = ask(options, lambda admin: admin.alter_consumer_group_offsets(group, offsets))
    done = {partition: f"set to {wanted.offset}" for partition, wanted in offsets.items()}
    conclude(options, [_changed(group, partition, result, done[partition]) for partition, result in results.items()])


@groups.command("delete-offsets")
@group_argument
@click.argument("partitions", metavar="TOPIC-PARTITION...", nargs=-1, required=True, callback=_partitions)
@admin_options
def delete_offsets(*, group: str, partitions: Sequence[TopicPartition], options: AdminOptions) -> None:
    """Remove offsets of a group.

    A group without any exists no longer.
    """
    results = ask(options, lambda admin: admin.delete_consumer_group_offsets(group, partitions))
    conclude(options, [_changed(group, partition, result, "removed") for partition, result in results.items()])


@groups.command()
@names_argument
@yes_option
@admin_options
def delete(*, names: Sequence[str], yes: bool, options: AdminOptions) -> None:
    """Delete groups without members, with their offsets."""
    question = f"Delete {plural(len(names), 'group')}: {escaped(', '.join(names))}?"
    confirm(question, "Nothing was deleted.", is_settled=yes)
    results = ask(options, lambda admin: admin.delete_consumer_groups(names))
    conclude(options, [ChangeResult(name, "deleted", {"group": name}, error) for name, error in results.items()])


def _changed(group: str, partition: TopicPartition, error: AdminError | None, done: str) -> ChangeResult:
    return ChangeResult(f"{group}: {partition}", done, {"group": group, **facts_of(partition)}, error)


def _print_group(group: GroupDescription, offsets: Offsets) -> None:
    facts = [group.state, plural(group.members, "member"), f"coordinator {group.coordinator}"]
    click.echo(f"{escaped(group.group_id)}: {escaped(', '.join(facts))}")
    rows = [
        (str(partition), "", each.name)
        if isinstance(each, AdminError)
        else (str(partition), each.offset, each.metadata)
        for partition, each in offsets.items()
    ]
    if rows:
        print_table(("partition", "offset", "metadata"), rows)


def _group_json(name: str, group: GroupDescription | AdminError, offsets: Offsets) -> dict[str, object]:
    if isinstance(group, AdminError):
        return {"group": name, "error": error_json(group)}
    return {
        "group": name,
        "state": group.state,
        "protocol": group.protocol_type,
        "members": group.members,
        "coordinator": group.coordinator,
        "offsets": [_offset_json(partition, each) for partition, each in offsets.items()],
        "error": None,
    }


def _offset_json(partition: TopicPartition, each: OffsetAndMetadata | AdminError) -> dict[str, object]:
    if isinstance(each, AdminError):
        return facts_of(partition, error=error_json(each))
    return facts_of(partition, offset=each.offset, metadata=each.metadata, error=None)
