"""The `minicontroller` command. What goes wrong is said in a sentence, and the exit code tells (1: it failed, 2: it was called wrongly)."""

import gc
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from .. import __version__
from ..policies.faults import PolicyLoadError
from ..protocol import describe
from .errors import ConfigurationError

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="minicontroller")
def main() -> None:
    """The admin half of a Kafka broker: sidecar controller, faithful fake cluster, policy gateway."""


@main.command()
@click.option("--brokers", default=3, show_default=True, type=click.IntRange(1, 100), help="Nodes; ids count from 1.")
@click.option(
    "--port", default=9092, show_default=True, type=click.IntRange(0, 65535), help="Of node 1; 0 for free ports."
)
@click.option("--store", default="memory", show_default=True, help="memory, or zookeeper://host:2181/chroot.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A configuration key of every node; repeatable."
)
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr.")
def up(brokers: int, port: int, store: str, settings: tuple[str, ...], verbose: bool) -> None:
    """A cluster in one process. Ctrl-C ends it."""
    from .cluster_of_nodes import run_cluster

    _run(run_cluster, brokers, port, store, settings, verbose=verbose)


@main.command()
@click.option("--config", "file", required=True, type=click.Path(path_type=Path), help="Properties in Kafka's format.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Goes before what the file says; repeatable."
)
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr.")
def serve(file: Path, settings: tuple[str, ...], verbose: bool) -> None:
    """One node of a cluster on ZooKeeper."""
    from .cluster_of_nodes import run_one

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise click.ClickException(f"cannot read {file}: {error}") from None
    _run(run_one, text, str(file), settings, verbose=verbose)


@main.group()
def protocol() -> None:
    """What is spoken on the wire."""


@protocol.command()
def apis() -> None:
    """The APIs and versions that are spoken."""
    from rich.console import Console
    from rich.table import Table

    table = Table("key", "API", "versions", "flexible from")
    for row in describe.apis():
        table.add_row(
            *(
                str(row.key),
                row.name,
                f"{row.min_version}-{row.max_version}",
                "" if row.flexible_from is None else str(row.flexible_from),
            )
        )
    Console().print(table)


@protocol.command()
@click.argument("message")
@click.argument("version", type=int)
def show(message: str, version: int) -> None:
    """The generated encoder and decoder of a MESSAGE, such as CreateTopicsRequest, in a VERSION."""
    try:
        click.echo(describe.show(message, version))
    except (LookupError, ValueError) as error:
        raise click.UsageError(str(error.args[0] if error.args else error)) from None


def _run(function: Callable[..., Awaitable[None]], *arguments: object, verbose: bool) -> None:
    import trio

    _tune_garbage_collection()
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG if verbose else logging.INFO, format=LOG_FORMAT)
    try:
        trio.run(function, *arguments)
    except BaseExceptionGroup as group:
        _explain(group)
    except (ConfigurationError, PolicyLoadError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        pass


def _tune_garbage_collection() -> None:
    """A server keeps what it makes: Python's default, a collection after every 700 new objects, cost a quarter of a bulk creation."""
    gc.freeze()  # what is loaded by now stays for good, and need not be looked at again
    gc.set_threshold(20_000, 50, 100)


def _explain(group: BaseExceptionGroup[BaseException]) -> None:
    """What the user can mend is a sentence; anything else is our bug and keeps its trace."""
    expected, rest = group.split((ConfigurationError, PolicyLoadError, OSError, KeyboardInterrupt))
    if rest is not None:
        raise rest
    assert expected is not None
    error: BaseException = expected
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, KeyboardInterrupt):
        raise click.ClickException(str(error)) from None
