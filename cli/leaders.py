"""`minicontroller leaders` elects leaders of partitions on any Kafka."""

import click

from ..client.errors import AdminError
from ..client.topic_partition import TopicPartition
from ..protocol.error_codes import ErrorCode
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .changes import parse_partitions
from .results import ChangeResult, conclude


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
    verdicts = (_result(each, result) for each, result in results.items())
    conclude(options, verdicts, nothing="No partition needs an election.")


def _result(partition: TopicPartition, result: AdminError | None) -> ChangeResult:
    """Return the result; that no election is needed is a success, as for Kafka's own tool."""
    is_needed = result is None or result.code != ErrorCode.ELECTION_NOT_NEEDED
    facts: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "elected": result is None,
    }
    done = "elected" if is_needed else "needs no election"
    return ChangeResult(escaped(str(partition)), done, facts, result if is_needed else None)
