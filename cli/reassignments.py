"""`minicontroller reassignments` lists, begins and cancels moves of replicas on any Kafka."""

from collections.abc import Sequence

import click

from .. import client
from ..client.errors import Results
from ..client.partitions import PartitionReassignment
from ..client.topic_partition import TopicPartition
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .changes import parse_partition, parse_partitions
from .results import ChangeResult, conclude, print_list
from .typed import INT32

NO_MOVES = "No replicas are being moved."


def parse_moves(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Parse partitions with the broker ids of their replicas, such as `orders-0=1:2`. Raises
    click.BadParameter, also for a repeated partition.
    """
    moves: dict[TopicPartition, tuple[int, ...]] = {}
    for text in texts:
        name, _, brokers = text.partition("=")
        partition = parse_partition(name)
        try:
            replicas = tuple(int(broker) for broker in brokers.split(":"))
        except ValueError:
            replicas = ()
        if not replicas or not all(0 <= broker <= INT32 for broker in replicas):
            raise click.BadParameter(f"{text!r} names no brokers: write {name}=1:2 for brokers 1 and 2.")
        if partition in moves:
            raise click.BadParameter(f"{name} is named twice.")
        moves[partition] = replicas
    return moves


@click.group()
def reassignments() -> None:
    """List, start and cancel moves of replicas to other brokers."""


@reassignments.command("list")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@admin_options
def list_reassignments(*, topics: Sequence[str], options: AdminOptions) -> None:
    """Show the partitions whose replicas are being moved.

    Without a TOPIC, show those of all topics.
    """

    async def question(admin: client.AdminClient) -> dict[TopicPartition, PartitionReassignment]:
        found = await admin.list_partition_reassignments()
        return {each: found[each] for each in sorted(found) if not topics or each.topic in topics}

    found = ask(options, question)
    document = {"reassignments": [_json(partition, moving) for partition, moving in found.items()]}
    rows = [
        (str(each), _ids(moving.target), _ids(moving.adding_replicas), _ids(moving.removing_replicas))
        for each, moving in found.items()
    ]
    print_list(options, document, ("partition", "moves to", "adding", "removing"), rows, NO_MOVES)


def _json(partition: TopicPartition, moving: PartitionReassignment) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": moving.replicas,
        "adding": moving.adding_replicas,
        "removing": moving.removing_replicas,
    }


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


@reassignments.command()
@click.argument("moves", metavar="TOPIC-PARTITION=BROKER:...", nargs=-1, required=True, callback=parse_moves)
@admin_options
def start(*, moves: dict[TopicPartition, tuple[int, ...]], options: AdminOptions) -> None:
    """Move the replicas of partitions to other brokers.

    The first broker becomes the preferred leader.

    A success says that the move has begun; `reassignments list` shows it until it is done.
    """
    results = ask(options, lambda admin: admin.alter_partition_reassignments(moves))
    conclude(options, (_result(each, result, f"moves to {_ids(moves[each])}") for each, result in results.items()))


@reassignments.command()
@click.argument("partitions", metavar="[TOPIC-PARTITION]...", nargs=-1, callback=parse_partitions)
@click.option("--all", "everything", is_flag=True, help="Cancel whatever is being moved.")
@admin_options
def cancel(*, partitions: tuple[TopicPartition, ...], everything: bool, options: AdminOptions) -> None:
    """Cancel moves: the partitions keep the replicas of before."""
    if everything == bool(partitions):
        raise click.UsageError("Name partitions, such as orders-0, or --all.")

    async def question(admin: client.AdminClient) -> Results[TopicPartition, None]:
        named = sorted(await admin.list_partition_reassignments()) if everything else partitions
        return await admin.alter_partition_reassignments(dict.fromkeys(named)) if named else {}

    results = ask(options, question)
    conclude(options, (_result(each, result, "cancelled") for each, result in results.items()), nothing=NO_MOVES)


def _result(partition: TopicPartition, result: client.AdminError | None, done: str) -> ChangeResult:
    facts: dict[str, object] = {"topic": partition.topic, "partition": partition.partition}
    return ChangeResult(escaped(str(partition)), done, facts, result)
