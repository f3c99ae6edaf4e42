"""`minicontroller topics` lists, describes, creates, alters and deletes topics of any Kafka."""

import base64
from collections.abc import Sequence
from fnmatch import fnmatchcase

import click

from .. import client
from ..client.configs import AlterConfigOp, ConfigEntry, Resource
from ..client.errors import AdminError, Results
from ..client.topics import BROKER_DEFAULT, CreatedTopic, NewTopic, PartitionDescription, TopicDescription
from ..protocol.config_resources import ConfigOperation
from ..text import escaped, plural
from .admin_options import AdminOptions, admin_options, ask, dry_run_option, yes_option
from .changes import parse_assignment, parse_changes, parse_settings
from .output import print_table
from .results import ChangeResult, conclude, conclude_reading, confirm, error_json, failures_of, print_list
from .typed import INT16, INT32

NO_ID = bytes(16)

names_argument = click.argument("names", metavar="NAME...", nargs=-1, required=True)


@click.group()
def topics() -> None:
    """List, describe, create, alter and delete the topics of a cluster."""


# ------------------------------------------------------------------ reads


@topics.command("list")
@click.argument("pattern", required=False)
@click.option("--internal", is_flag=True, help="Include internal topics.")
@admin_options
def list_topics(*, pattern: str | None, internal: bool, options: AdminOptions) -> None:
    """List all topics, or those that match PATTERN ('sales.*')."""

    async def question(admin: client.AdminClient) -> list[tuple[str, int, int, bool]]:
        found = (await admin.list_topics(include_internal=internal)).values()
        return [
            (topic.name, topic.num_partitions, topic.replication_factor, topic.is_internal)
            for topic in found
            if pattern is None or fnmatchcase(topic.name, pattern)
        ]

    rows = ask(options, question)
    keys = ("name", "partitions", "replication_factor", "internal")
    document = {"topics": [dict(zip(keys, row, strict=True)) for row in rows]}
    nothing = "No topics." if pattern is None else f"No topic is called {escaped(pattern)}."
    print_list(options, document, ("topic", "partitions", "replication"), [row[:3] for row in rows], nothing)


@topics.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@admin_options
def describe(*, names: Sequence[str], options: AdminOptions) -> None:
    """Show partitions, leaders, replicas and configs of topics. Without a NAME, show all topics."""

    async def question(
        admin: client.AdminClient,
    ) -> tuple[Results[str, TopicDescription], dict[str, dict[str, str | None]]]:
        found = await admin.describe_topics(names or tuple(await admin.list_topics()))
        there = [Resource.topic(name) for name, topic in found.items() if isinstance(topic, TopicDescription)]
        configs = await admin.describe_configs(there) if there else {}
        return found, {resource.name: _set_here(entries) for resource, entries in configs.items()}

    found, configs = ask(options, question)

    def show() -> None:
        for name, topic in found.items():
            if isinstance(topic, TopicDescription):
                _print_topic(topic, configs.get(name, {}))

    document = {"topics": [_topic_json(name, topic, configs.get(name, {})) for name, topic in found.items()]}
    conclude_reading(options, document, show, failures_of(found))


def _set_here(entries: Sequence[ConfigEntry] | AdminError) -> dict[str, str | None]:
    return (
        {}
        if isinstance(entries, AdminError)
        else {entry.name: entry.value for entry in entries if entry.source == "topic"}
    )


def _print_topic(topic: TopicDescription, configs: dict[str, str | None]) -> None:
    facts = [plural(len(topic.partitions), "partition"), f"replication factor {topic.replication_factor}"]
    facts += [f"id {_id(topic.topic_id)}"] if topic.topic_id != NO_ID else []
    facts += ["internal"] if topic.is_internal else []
    click.echo(f"{escaped(topic.name)}: {', '.join(facts)}")
    for name, value in configs.items():
        click.echo(escaped(f"  {name}={'(secret)' if value is None else value}"))
    rows = [(p.index, p.leader, _ids(p.replicas), _ids(p.isr), _trouble(p)) for p in topic.partitions]
    print_table(("partition", "leader", "replicas", "in sync", ""), rows)
    click.echo()


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def _trouble(partition: PartitionDescription) -> str:
    if partition.leader is None:
        return "no leader"
    return "under-replicated" if partition.is_under_replicated else ""


def _id(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _topic_json(name: str, topic: TopicDescription | AdminError, configs: dict[str, str | None]) -> dict[str, object]:
    if isinstance(topic, AdminError):
        return {"name": name, "error": error_json(topic)}
    return {
        "name": name,
        "id": _id(topic.topic_id) if topic.topic_id != NO_ID else None,
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": partition.index,
                "leader": partition.leader,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "offline": partition.offline,
            }
            for partition in topic.partitions
        ],
        "configs": configs,
        "error": None,
    }


# ------------------------------------------------------------------ writes


@topics.command()
@names_argument
@click.option("--partitions", type=click.IntRange(1, INT32), help="Number of partitions.  [default: the cluster's]")
@click.option(
    "--replication-factor", type=click.IntRange(1, INT16), help="Number of replicas.  [default: the cluster's]"
)
@click.option(
    "--assignment",
    metavar="1:2,2:3,...",
    callback=parse_assignment,
    help="The broker ids of each partition, its preferred leader first, instead of the counts.",
)
@click.option(
    "--config", "settings", metavar="KEY=VALUE", multiple=True, callback=parse_settings, help="A config; repeatable."
)
@dry_run_option
@admin_options
def create(
    *,
    names: Sequence[str],
    partitions: int | None,
    replication_factor: int | None,
    assignment: tuple[tuple[int, ...], ...],
    settings: dict[str, str],
    dry_run: bool,
    options: AdminOptions,
) -> None:
    """Create topics with the same settings."""
    if assignment and (partitions or replication_factor):
        raise click.UsageError("--assignment determines the counts: leave out --partitions and --replication-factor.")
    wanted = [
        NewTopic(name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, assignment, settings)
        for name in dict.fromkeys(names)
    ]
    results = ask(options, lambda admin: admin.create_topics(wanted, validate_only=dry_run))
    conclude(options, (_creation(name, result) for name, result in results.items()), dry_run=dry_run)


def _creation(name: str, result: CreatedTopic | AdminError) -> ChangeResult:
    if isinstance(result, AdminError):
        return ChangeResult(name, "", {"topic": name}, result)
    facts: dict[str, object] = {"topic": name, "partitions": None, "replication_factor": None}
    if result.num_partitions < 0:
        return ChangeResult(name, "created", facts)
    facts |= {"partitions": result.num_partitions, "replication_factor": result.replication_factor}
    counts = f"partitions {result.num_partitions}, replication factor {result.replication_factor}"
    return ChangeResult(name, f"created, {counts}", facts)


@topics.command()
@names_argument
@click.option("--partitions", type=click.IntRange(1, INT32), help="The new number of partitions, which can only grow.")
@click.option(
    "--config", "changes", metavar="KEY=VALUE", multiple=True, callback=parse_changes, help="KEY+=VALUE adds to a list."
)
@click.option("--delete-config", "deleted", metavar="KEY", multiple=True, help="Reset to the default; repeatable.")
@dry_run_option
@admin_options
def alter(
    *,
    names: Sequence[str],
    partitions: int | None,
    changes: tuple[AlterConfigOp, ...],
    deleted: tuple[str, ...],
    dry_run: bool,
    options: AdminOptions,
) -> None:
    """Add partitions to topics, or change their configs."""
    changes += tuple(AlterConfigOp(ConfigOperation.DELETE, key) for key in deleted)
    if partitions is None and not changes:
        raise click.UsageError("Nothing to alter: name --partitions, --config or --delete-config.")
    unique = list(dict.fromkeys(names))

    async def question(admin: client.AdminClient) -> list[ChangeResult]:
        verdicts: list[ChangeResult] = []
        if changes:
            wanted = {Resource.topic(name): changes for name in unique}
            configs = await admin.alter_configs(wanted, validate_only=dry_run)
            verdicts += [_alteration(resource.name, "configs", result) for resource, result in configs.items()]
        if partitions is not None:
            grown = await admin.create_partitions(dict.fromkeys(unique, partitions), validate_only=dry_run)
            verdicts += [_alteration(name, "partitions", result) for name, result in grown.items()]
        return verdicts

    conclude(options, ask(options, question), dry_run=dry_run)


def _alteration(name: str, change: str, result: AdminError | None) -> ChangeResult:
    return ChangeResult(name, f"altered ({change})", {"topic": name, "change": change}, result)


@topics.command()
@names_argument
@yes_option
@dry_run_option
@admin_options
def delete(
    *,
    names: Sequence[str],
    yes: bool,
    dry_run: bool,
    options: AdminOptions,
) -> None:
    """Delete topics and their records.

    --dry-run needs nodes of minicontroller, as Kafka's DeleteTopics has no such option.
    """
    question = f"Delete {escaped(', '.join(names))} with all records?"
    confirm(question, "Nothing was deleted.", is_settled=yes or dry_run)
    results = ask(options, lambda admin: admin.delete_topics(names, validate_only=dry_run))
    deleted = (ChangeResult(name, "deleted", {"topic": name}, result) for name, result in results.items())
    conclude(options, deleted, dry_run=dry_run)
