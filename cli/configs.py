"""`minicontroller configs` shows the configs of topics and brokers with their sources, and changes
them.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import click

from ..client.configs import SET_HERE, AlterConfigOp, ConfigEntry, Resource
from ..client.errors import AdminError, Results
from ..process.settings.keys import KEYS
from ..protocol.config_resources import ConfigOperation
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask, dry_run_option
from .changes import parse_changes
from .output import print_table
from .results import ChangeResult, conclude, conclude_reading, error_json, failures_of
from .typed import INT32

F = TypeVar("F", bound=Callable[..., Any])


def target_options(function: F) -> F:
    for option in (
        click.option("--cluster", is_flag=True, help="The defaults of all brokers."),
        click.option(
            "--broker",
            "brokers",
            metavar="ID",
            type=click.IntRange(0, INT32),
            multiple=True,
            help="A broker; repeatable.",
        ),
        click.option("--topic", "topics", metavar="NAME", multiple=True, help="A topic; repeatable."),
    ):
        function = option(function)
    return function


def _resources(topics: Sequence[str], brokers: Sequence[int], *, cluster: bool) -> list[Resource]:
    named = [*map(Resource.topic, topics), *map(Resource.broker, brokers)]
    named += [Resource.all_brokers()] if cluster else []
    if not named:
        raise click.UsageError("Name a resource: --topic NAME, --broker ID or --cluster.")
    return list(dict.fromkeys(named))


@click.group()
def configs() -> None:
    """Show, set and unset the configs of topics, brokers and the whole cluster."""


@configs.command()
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Include defaults, not only configs that were set.")
@target_options
@admin_options
def get(
    *,
    keys: Sequence[str],
    everything: bool,
    topics: Sequence[str],
    brokers: Sequence[int],
    cluster: bool,
    options: AdminOptions,
) -> None:
    """Show the configs that were set and their sources. With KEYs, show their values, set or
    not.
    """
    resources = _resources(topics, brokers, cluster=cluster)
    found = ask(options, lambda admin: admin.describe_configs(resources))
    _check_keys(keys, found)
    chosen = {
        resource: entries
        if isinstance(entries, AdminError)
        else _chosen(resource, entries, keys, everything=everything)
        for resource, entries in found.items()
    }

    def show() -> None:
        for resource, entries in chosen.items():
            if not isinstance(entries, AdminError):
                _print(resource, entries)

    document = {"resources": [_resource_json(resource, entries) for resource, entries in chosen.items()]}
    conclude_reading(options, document, show, failures_of(chosen))


def _check_keys(keys: Sequence[str], found: Results[Resource, tuple[ConfigEntry, ...]]) -> None:
    """Raises click.UsageError about a key that none of the resources has. An answer has every key
    of a topic or broker, but of the cluster's defaults only those that are set.
    """
    if any(isinstance(entries, AdminError) for entries in found.values()):
        return
    names = {entry.name for entries in found.values() if not isinstance(entries, AdminError) for entry in entries}
    if Resource.all_brokers() in found:
        names |= KEYS.keys()
    for key in keys:
        if key not in names:
            near = get_close_matches(key, sorted(names), n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise click.UsageError(escaped(f"There is no config {key}{hint}"))


def _chosen(
    resource: Resource, entries: Sequence[ConfigEntry], keys: Sequence[str], *, everything: bool
) -> tuple[ConfigEntry, ...]:
    if keys:
        return tuple(entry for entry in entries if entry.name in keys)
    return tuple(entry for entry in entries if everything or entry.source in SET_HERE[resource.type])


def _print(resource: Resource, entries: Sequence[ConfigEntry]) -> None:
    click.echo(escaped(str(resource)) + ("" if entries else ": nothing is set"))
    if entries:
        rows = [(entry.name, "(secret)" if entry.is_sensitive else entry.value, entry.source) for entry in entries]
        print_table(("config", "value", "from"), rows)
        click.echo()


def _facts(resource: Resource) -> dict[str, object]:
    """Return a resource for JSON. The default of all brokers has the name null."""
    return {"type": resource.type.name.lower(), "name": resource.name or None}


def _resource_json(resource: Resource, entries: Sequence[ConfigEntry] | AdminError) -> dict[str, object]:
    if isinstance(entries, AdminError):
        return {**_facts(resource), "configs": None, "error": error_json(entries)}
    configs = [
        {
            "name": entry.name,
            "value": entry.value,
            "from": entry.source,
            "read_only": entry.is_read_only,
            "sensitive": entry.is_sensitive,
        }
        for entry in entries
    ]
    return {**_facts(resource), "configs": configs, "error": None}


@configs.command("set")
@click.argument("changes", metavar="KEY=VALUE...", nargs=-1, required=True, callback=parse_changes)
@target_options
@dry_run_option
@admin_options
def set_configs(
    *,
    changes: tuple[AlterConfigOp, ...],
    topics: Sequence[str],
    brokers: Sequence[int],
    cluster: bool,
    dry_run: bool,
    options: AdminOptions,
) -> None:
    """Set configs and keep all others. KEY+=VALUE adds to a list; KEY-=VALUE removes from it."""
    resources = _resources(topics, brokers, cluster=cluster)
    _alter(options, dict.fromkeys(resources, changes), "set", dry_run=dry_run)


@configs.command()
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@target_options
@dry_run_option
@admin_options
def unset(
    *,
    keys: Sequence[str],
    topics: Sequence[str],
    brokers: Sequence[int],
    cluster: bool,
    dry_run: bool,
    options: AdminOptions,
) -> None:
    """Reset configs to their defaults."""
    resources = _resources(topics, brokers, cluster=cluster)
    changes = tuple(AlterConfigOp(ConfigOperation.DELETE, key) for key in dict.fromkeys(keys))
    _alter(options, dict.fromkeys(resources, changes), "unset", dry_run=dry_run)


def _alter(
    options: AdminOptions, wanted: Mapping[Resource, Sequence[AlterConfigOp]], verb: str, *, dry_run: bool
) -> None:
    results = ask(options, lambda admin: admin.alter_configs(wanted, validate_only=dry_run))
    verdicts = [
        ChangeResult(
            str(resource), f"{verb} {', '.join(change.name for change in wanted[resource])}", _facts(resource), result
        )
        for resource, result in results.items()
    ]
    conclude(options, verdicts, dry_run=dry_run)
