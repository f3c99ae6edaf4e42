"""`minicontroller log-dirs` shows the directories of brokers, and moves replicas between them, on
any Kafka.
"""

from collections.abc import Sequence

import click

from .. import client
from ..client.errors import AdminError, Results
from ..client.log_dirs import LogDirDescription, Replica
from ..client.topic_partition import TopicPartition
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .changes import facts_of, parse_by_partition
from .output import print_table
from .results import ChangeResult, conclude, conclude_reading, error_json
from .typed import INT32

Described = Results[int, tuple[LogDirDescription, ...]]


def parse_directories(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> dict[TopicPartition, str]:
    """Parse partitions with directories, such as `orders-0=/data/a`. Raises click.BadParameter,
    also for a repeated partition.
    """
    return parse_by_partition(texts, _directory)


def _directory(text: str, path: str) -> str:
    if not path.startswith("/"):
        raise click.BadParameter(f"{text!r} names no directory: write {text.partition('=')[0]}=/data/a.")
    return path


@click.group("log-dirs")
def log_dirs() -> None:
    """Show directories of brokers, and move replicas between them."""


@log_dirs.command()
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option("--broker", "brokers", type=click.IntRange(0, INT32), multiple=True, help="Only this broker.")
@admin_options
def describe(*, topics: Sequence[str], brokers: Sequence[int], options: AdminOptions) -> None:
    """Show the replicas in the directories of each broker.

    Without a TOPIC, show those of all topics.
    """

    async def question(admin: client.AdminClient) -> Described:
        ids = brokers or [each.broker_id for each in (await admin.describe_cluster()).brokers]
        return await admin.describe_log_dirs(ids)

    found = ask(options, question)
    document = {"brokers": [_json(broker_id, each, topics) for broker_id, each in found.items()]}
    conclude_reading(options, document, lambda: _print(found, topics), _failures(found))


def _failures(found: Described) -> list[tuple[str, AdminError]]:
    failures: list[tuple[str, AdminError]] = []
    for broker_id, each in found.items():
        if isinstance(each, AdminError):
            failures.append((f"broker {broker_id}", each))
        else:
            failures += [(f"{one.path} of broker {broker_id}", one.error) for one in each if one.error is not None]
    return failures


def _print(found: Described, topics: Sequence[str]) -> None:
    rows = [
        (broker_id, each.path, str(partition), log.size_bytes, log.offset_lag, "future" if log.is_future else "current")
        for broker_id, directories in found.items()
        if not isinstance(directories, AdminError)
        for each in directories
        for partition, log in sorted(each.replicas.items())
        if not topics or partition.topic in topics
    ]
    if rows:
        print_table(("id", "directory", "replica", "bytes", "lag", "state"), rows)
    else:
        click.echo("No replicas.", err=True)


def _json(
    broker_id: int, found: tuple[LogDirDescription, ...] | AdminError, topics: Sequence[str]
) -> dict[str, object]:
    if isinstance(found, AdminError):
        return {"id": broker_id, "error": error_json(found)}
    directories = [
        {
            "path": each.path,
            "total_bytes": each.total_bytes,
            "usable_bytes": each.usable_bytes,
            "replicas": [
                facts_of(partition, bytes=log.size_bytes, lag=log.offset_lag, future=log.is_future)
                for partition, log in sorted(each.replicas.items())
                if not topics or partition.topic in topics
            ],
            "error": error_json(each.error),
        }
        for each in found
    ]
    return {"id": broker_id, "directories": directories, "error": None}


@log_dirs.command()
@click.argument("broker", type=click.IntRange(0, INT32))
@click.argument(
    "directories", metavar="TOPIC-PARTITION=DIRECTORY...", nargs=-1, required=True, callback=parse_directories
)
@admin_options
def move(*, broker: int, directories: dict[TopicPartition, str], options: AdminOptions) -> None:
    """Move replicas of a broker to other directories of it.

    A broker that does not have a replica yet answers REPLICA_NOT_AVAILABLE, and will make it in
    that directory.
    """
    wanted = {Replica(broker, each.topic, each.partition): path for each, path in directories.items()}
    results = ask(options, lambda admin: admin.alter_replica_log_dirs(wanted))
    conclude(options, (_moved(each, wanted[each], result) for each, result in results.items()))


def _moved(replica: Replica, path: str, result: AdminError | None) -> ChangeResult:
    facts: dict[str, object] = {
        "broker": replica.broker_id,
        "topic": replica.topic,
        "partition": replica.partition,
        "directory": path,
    }
    return ChangeResult(escaped(str(replica)), f"moves to {path}", facts, result)
