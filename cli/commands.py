"""Defines the commands. Errors are printed as one sentence; the exit code is 1 for a failure and 2
for a usage error.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..version import __version__
from .output import nobody_reads
from .typed import parse_listener, read_text

if TYPE_CHECKING:
    from ..controller.broker.data import ProcessData

MAX_PORT = 65_535


def _key_values(_context: click.Context, _parameter: click.Parameter, settings: tuple[str, ...]) -> tuple[str, ...]:
    for setting in settings:
        if not setting.partition("=")[1]:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE.")
    return settings


settings_option = partial(click.option, "--set", "settings", multiple=True, metavar="KEY=VALUE", callback=_key_values)
verbose_option = partial(click.option, "-v", "--verbose", is_flag=True, help="Log debug messages too.")


@contextmanager
def a_reader_may_end_it() -> Iterator[None]:
    """Exit with code 0 when the reader of the output closes the pipe, where click would exit with
    code 1.
    """
    try:
        yield
    except BrokenPipeError:
        nobody_reads()
        raise click.exceptions.Exit(0) from None


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._places: dict[str, str] = {}

    def add_later(self, name: str, place: str, summary: str) -> None:
        """Add the command `place` (`module:object`, relative to
        `minicontroller.cli`). The list of commands shows `summary`.
        """
        self._places[name] = place
        self.add_command(click.Command(name, short_help=summary))

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with a_reader_may_end_it():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with a_reader_may_end_it():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that is about to be called."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name in self._places else command, rest

    def load(self, name: str) -> click.Command:
        module, _, place = self._places[name].partition(":")
        command = getattr(import_module(module, __package__), place)
        assert isinstance(command, click.Command)
        return command


@click.group("minicontroller", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="minicontroller")
def commands() -> None:
    """Run the admin half of a Kafka broker: clusters for tests, policies for topics, and an
    administrative client.
    """


for name, place, summary in (
    ("acls", ".acls:acls", "List, add and remove ACLs: who may do what."),
    ("audit", ".audit:audit", "Read the audit log: who changed what, and what was refused."),
    ("cluster", ".cluster:cluster", "Show the nodes of a cluster and its problems."),
    ("configs", ".configs:configs", "Show and change the configs of topics and brokers."),
    ("demo", ".demo:demo", "Run a cluster with a policy, and show its answers."),
    ("pipeline", "..pipeline.commands:pipeline", "Analyse the audit log on Spark: tables, reports, back-tests."),
    ("groups", ".groups:groups", "List and delete groups, and set their offsets."),
    ("leaders", ".partitions:leaders", "Elect leaders of partitions."),
    ("log-dirs", ".log_dirs:log_dirs", "Show directories of brokers, and move replicas between them."),
    ("ping", ".ping:ping", "Check whether the node at HOST:PORT is ready."),
    ("policy", ".policy:policy", "Check rules for topics, and try them on requests."),
    ("protocol", ".protocol:protocol", "Show the APIs and messages that nodes support."),
    ("quotas", ".quotas:quotas", "List, set and remove quotas of users, clients and addresses."),
    ("reassignments", ".partitions:reassignments", "List, start and cancel moves of replicas."),
    ("records", ".records:records", "Delete records of partitions, and show offsets."),
    ("tokens", ".tokens:tokens", "Create, list, renew and expire delegation tokens."),
    ("topics", ".topics:topics", "List, describe, create, alter and delete topics."),
    ("users", ".users:users", "List, set and remove the users who log in by SCRAM."),
):
    commands.add_later(name, place, summary)


def run(started_by: int) -> NoReturn:
    """Run the command that was typed. Every error except a bug becomes a sentence and an exit code
    here. `started_by` is the pid of the process that started this one.
    """
    try:
        code = commands.main(standalone_mode=False, obj=started_by) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        click.echo("Aborted.", err=True)
        code = 1
    except OSError as error:
        nobody_reads()
        click.echo(f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.", err=True)
        code = 1
    sys.exit(code)


@commands.command()
@click.option(
    "--brokers", default=3, show_default=True, type=click.IntRange(1, 100), help="Number of nodes; ids start at 1."
)
@click.option(
    "--port",
    default=9092,
    show_default=True,
    type=click.IntRange(0, MAX_PORT),
    help="Port of node 1; the others follow. 0: free ports.",
)
@click.option(
    "--listen",
    default="127.0.0.1",
    show_default=True,
    metavar="HOST",
    help="Where the nodes listen for clients; 0.0.0.0: everywhere.",
)
@click.option(
    "--advertise",
    default="",
    metavar="HOST[:PORT]",
    help="What clients are given for node 1, as in a container; the ports of the others follow, unless the host has $(nodeId).",
)
@click.option("--store", default="memory", show_default=True, help="memory, or zookeeper://host:2181/chroot.")
@click.option(
    "--records/--no-records",
    default=False,
    show_default=True,
    help="Whether the nodes keep records, groups with members and transactions, in memory.",
)
@settings_option(help="A configuration key of every node; repeatable.")
@verbose_option()
@click.option(
    "--with-parent",
    is_flag=True,
    help="End when the process that started this one ends, however it does, or closes its pipe to stdin.",
)
@click.pass_obj
def up(
    started_by: int,
    *,
    brokers: int,
    port: int,
    listen: str,
    advertise: str,
    store: str,
    records: bool,
    settings: tuple[str, ...],
    verbose: bool,
    with_parent: bool,
) -> None:
    """Run a cluster in one process. Ctrl-C ends it."""
    if with_parent:
        from .parent import end_with_parent

        end_with_parent(started_by)
    from ..controller.node.client_addresses import ClientAddresses
    from ..controller.node.process import run_cluster

    if port + brokers - 1 > MAX_PORT:
        raise click.UsageError(
            f"--port {port} leaves no room for {brokers} nodes: the last would be {port + brokers - 1}."
        )
    addresses = ClientAddresses(listen.strip("[]"), advertise)
    run_with = partial(run_cluster, data=_data_of_up(keeps=records))
    _run(run_with, brokers, port, store, settings, addresses, verbose=verbose)


def _data_of_up(*, keeps: bool) -> "ProcessData":
    """Return what the nodes of `up` keep, importing no more than that needs."""
    if not keeps:
        from ..controller.broker.data import WITHOUT_RECORDS

        return WITHOUT_RECORDS
    from ..records.apis import kept_in_memory

    return kept_in_memory()


@commands.command()
@click.option(
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file in Kafka's format.",
)
@settings_option(help="A key that overrides the environment and the file; repeatable.")
@verbose_option()
def serve(file: Path | None, settings: tuple[str, ...], verbose: bool) -> None:
    """Run one node of a cluster on ZooKeeper.

    Environment variables override the file: KAFKA_BROKER_ID is broker.id. Without a file, they must
    set all keys that a node needs.
    """
    from ..controller.node.process import run_one
    from ..process.settings.environment import PREFIX

    if file is None and not settings and not any(variable.startswith(PREFIX) for variable in os.environ):
        raise click.UsageError(f"There is no configuration: name a file by --config, or set {PREFIX}... variables.")
    _run(run_one, "" if file is None else read_text(file), str(file or "the environment"), settings, verbose=verbose)


@commands.command()
@click.option("--upstream", required=True, metavar="HOST:PORT,...", help="Brokers of the cluster to begin with.")
@click.option(
    "--listen",
    default="127.0.0.1:19092",
    show_default=True,
    metavar="HOST:PORT",
    callback=parse_listener,
    help="Where clients begin; the ports of the brokers follow. Port 0: free ports.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file: advertised.host, and upstream.* with the keys of a client.",
)
@click.option(
    "--rules", multiple=True, metavar="FILE", help="Rules that requests for changes have to meet; repeatable."
)
@click.option("--observe", is_flag=True, help="Judge and record requests, and refuse none.")
@settings_option(help="A key that overrides the file; repeatable.")
@verbose_option()
def gateway(
    *,
    upstream: str,
    listen: tuple[str, int],
    file: Path | None,
    rules: tuple[str, ...],
    observe: bool,
    settings: tuple[str, ...],
    verbose: bool,
) -> None:
    """Run a gateway in front of a Kafka cluster. Ctrl-C ends it."""
    from ..client.configuration import Address
    from ..cluster.errors import ConfigurationError
    from ..gateway.configuration import load_gateway_config
    from ..gateway.process import run_gateway

    try:
        config = load_gateway_config(
            "" if file is None else read_text(file),
            str(file or "--set"),
            settings,
            upstream=upstream,
            listen=Address(*listen),
            rules=rules,
            observes=observe,
            with_files=True,
        )
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    _run(run_gateway, config, verbose=verbose)


def _run(function: Callable[..., Awaitable[None]], *arguments: object, verbose: bool) -> None:
    import gc
    import logging

    import trio

    from ..clock import Clock
    from ..cluster.errors import ConfigurationError, first_of
    from ..policies.load_errors import PolicyLoadError
    from ..process.observe.logs import HUMAN, use_format
    from ..process.observe.unexpected_errors import log_unexpected_errors

    expected = (ConfigurationError, PolicyLoadError, OSError)
    """Errors that the user can correct. All others are bugs and are logged with a traceback."""
    gc.freeze()  # what is loaded by now stays for good, and need not be looked at again
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG if verbose else logging.INFO)
    use_format(HUMAN)
    log_unexpected_errors()
    try:
        trio.run(function, *arguments, clock=Clock())
    except BaseExceptionGroup as group:
        mendable, rest = group.split(expected)
        if rest is not None:
            _end_with_defect(rest)
        assert mendable is not None
        _explain(first_of(mendable))
    except expected as error:
        _explain(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is logged as everything is
        _end_with_defect(error)


def _end_with_defect(error: BaseException) -> NoReturn:
    import logging

    logging.getLogger("minicontroller").critical("the process ends because of a bug", exc_info=error)
    sys.exit(1)


def _explain(error: BaseException) -> NoReturn:
    raise click.ClickException(str(error)) from None
