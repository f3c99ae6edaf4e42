"""The options that the administrative commands share, and the client that asks for them.

Rule: the exit code is 0 if everything was done, 1 if something was refused, 2 for a usage error,
and 3 if no node was reached or a result is unknown. Each error is one sentence on stderr; with
--json there is also an object on stdout.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
import msgspec

from .. import client
from ..client.configuration import ClientConfig, load_client_config
from ..client.errors import AdminError, ClusterUnreachable
from ..cluster.errors import ConfigurationError
from ..text import escaped
from .output import print_json
from .typed import Seconds, read_text, require_text

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
REFUSED, NOT_REACHED = 1, 3

dry_run_option = click.option("--dry-run", is_flag=True, help="Only check the request, policies included.")
yes_option = click.option("--yes", is_flag=True, help="Delete without asking for confirmation.")


class AdminOptions(msgspec.Struct, frozen=True):
    config: ClientConfig
    as_json: bool
    names_nodes: bool = True
    """Whether the user named bootstrap servers. If not, errors suggest --bootstrap-server."""


class NotReached(click.ClickException):
    exit_code = NOT_REACHED


def admin_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every administrative command, and pass them to it as `options`."""

    @wraps(function)
    def command(*, bootstrap: str | None, file: Path | None, timeout: float | None, as_json: bool, **rest: Any) -> None:
        require_text()
        function(options=options_of(bootstrap, file, timeout, as_json=as_json), **rest)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout."),
        click.option("--timeout", type=Seconds(), help="Seconds for the whole command.  [default: 30]"),
        click.option(
            "--command-config",
            "file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Client properties file in Kafka's format: TLS, SASL, timeouts, bootstrap.servers.",
        ),
        click.option(
            "--bootstrap-server",
            "bootstrap",
            metavar="HOST:PORT,...",
            envvar="MINICONTROLLER_BOOTSTRAP",
            show_envvar=True,
            help=f"Nodes to connect to first.  [default: {DEFAULT_BOOTSTRAP}]",
        ),
    ):
        command = option(command)
    return command


def options_of(bootstrap: str | None, file: Path | None, timeout: float | None, *, as_json: bool) -> AdminOptions:
    """Load the configuration that the options name. Raises click.UsageError."""
    try:
        text = "" if file is None else read_text(file)
        config = load_client_config(text, str(file), bootstrap=bootstrap, default_bootstrap=DEFAULT_BOOTSTRAP)
    except ConfigurationError as error:
        raise click.UsageError("\n".join(map(escaped, str(error).split("\n")))) from None
    except click.ClickException as error:
        raise click.UsageError(error.message) from None
    for warning in config.warnings:
        click.echo(f"Warning: {escaped(warning)}", err=True)
    if timeout is not None or file is None:
        seconds = timeout or 30.0
        config = msgspec.structs.replace(config, request_timeout_seconds=seconds, api_timeout_seconds=seconds)
    return AdminOptions(config, as_json, names_nodes=bootstrap is not None or "bootstrap.servers" in text)


def ask(options: AdminOptions, question: Callable[[client.AdminClient], Awaitable[T]]) -> T:
    """Run `question` with a connected client, and return its result. Raises
    click.ClickException.
    """
    import logging

    import trio

    logging.getLogger("minicontroller").addHandler(logging.NullHandler())  # errors are printed below

    async def run() -> T:
        async with client.AdminClient.connect(options.config) as admin:
            return await question(admin)

    try:
        return trio.run(run)
    except ClusterUnreachable as error:
        hint = "" if options.names_nodes else " Name nodes by --bootstrap-server."
        _fail(options, "UNREACHABLE", f"{error}{hint}", NotReached)
    except AdminError as error:
        _fail(options, error.name, str(error), click.ClickException)


def _fail(options: AdminOptions, name: str, text: str, kind: type[click.ClickException]) -> NoReturn:
    if options.as_json:
        print_json({"error": {"code": None, "name": name, "message": text}})
    raise kind(escaped(begun(text)))


def begun(text: str) -> str:
    """Return a text as the beginning of a sentence: with a capital, unless it begins with an
    address.
    """
    return text if ":" in text.partition(" ")[0] else text[:1].upper() + text[1:]
