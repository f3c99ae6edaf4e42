"""`minicontroller reassignments` lists, begins and cancels moves of replicas, and `minicontroller
leaders` elects leaders of partitions, on any Kafka.
"""

from collections.abc import Sequence

import click

from .. import client
from ..client.errors import AdminError, Results
from ..client.partitions import PartitionReassignment
from ..client.topic_partition import TopicPartition
from ..protocol.error_codes import ErrorCode
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .changes import facts_of, parse_by_partition, parse_partitions
from .results import ChangeResult, conclude, print_list
from .typed import INT32

NO_MOVES = "No replicas are being moved."


def parse_moves(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Parse partitions with the broker ids of their replicas, such as `orders-0=1:2`. Raises
    click.BadParameter, also for a repeated partition.
    """
    return parse_by_partition(texts, _replicas)


def _replicas(text: str, brokers: str) -> tuple[int, ...]:
    try:
        replicas = tuple(int(broker) for broker in brokers.split(":"))
    except ValueError:
        replicas = ()
    if not replicas or not all(0 <= broker <= INT32 for broker in replicas):
        name = text.partition("=")[0]
        raise click.BadParameter(f"{text!r} names no brokers: write {name}=1:2 for brokers 1 and 2.")
    return replicas


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
    return facts_of(
        partition, replicas=moving.replicas, adding=moving.adding_replicas, removing=moving.removing_replicas
    )


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
    return ChangeResult(escaped(str(partition)), done, facts_of(partition), result)


@click.group()
def leaders() -> None:
    """Elect leaders of partitions."""


@leaders.command()
@click.argument("partitions", metavar="[TOPIC-PARTITION]...", nargs=-1, callback=parse_partitions)
@click.option("--all", "everything", is_flag=True, help="Elect wherever an election is needed.")
@click.option("--unclean", is_flag=True, help="Elect replicas that are not in sync. Records are lost.")
@admin_options
def elect(*, partitions: tuple[TopicPartition, ...], everything: bool, unclean: bool, options: AdminOptions) -> None:
    """Let the preferred leaders of partitions lead again."""
    if everything == bool(partitions):
        raise click.UsageError("Name partitions, such as orders-0, or --all.")
    named = None if everything else partitions
    results = ask(options, lambda admin: admin.elect_leaders(named, unclean=unclean))
    verdicts = (_election(each, result) for each, result in results.items())
    conclude(options, verdicts, nothing="No partition needs an election.")


def _election(partition: TopicPartition, result: AdminError | None) -> ChangeResult:
    """Return the result; that no election is needed is a success, as for Kafka's own tool."""
    is_needed = result is None or result.code != ErrorCode.ELECTION_NOT_NEEDED
    done = "elected" if is_needed else "needs no election"
    facts = facts_of(partition, elected=result is None)
    return ChangeResult(escaped(str(partition)), done, facts, result if is_needed else None)
