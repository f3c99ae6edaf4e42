"""`minicontroller users` lists, sets and removes the users who log in by SCRAM.

Rule: a password is asked for, or read from a file or the environment. It is never an argument,
which every user of the machine could read, and nothing prints it.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from .. import client
from ..client.errors import AdminError, Results
from ..client.users import ScramCredentialInfo, ScramDeletion, ScramUpsertion
from ..security.scram_credentials import HASHES, MIN_ITERATIONS, MOST_STORED_ITERATIONS
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .output import is_conversation
from .results import ChangeResult, conclude, conclude_reading, error_json, failures_of, print_list
from .typed import read_text

VARIABLE = "MINICONTROLLER_NEW_PASSWORD"

mechanism_option = click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(sorted(HASHES), case_sensitive=False),
    multiple=True,
    help="Repeatable.  [default: both]",
)


@click.group()
def users() -> None:
    """List, set and remove the users who log in by SCRAM, with passwords kept in ZooKeeper."""


@users.command("list")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@admin_options
def list_users(*, names: Sequence[str], options: AdminOptions) -> None:
    """Show users with their mechanisms. Without a NAME, show all users."""
    found = ask(options, lambda admin: admin.describe_user_scram_credentials(tuple(dict.fromkeys(names))))
    infos = {name: result for name, result in found.items() if not isinstance(result, AdminError)}
    document = {"users": [_user_json(name, result) for name, result in found.items()]}
    rows = [(name, info.mechanism, info.iterations) for name, result in infos.items() for info in result]

    def show() -> None:
        print_list(options, document, ("user", "mechanism", "iterations"), rows, "" if names else "No users.")

    conclude_reading(options, document, show, failures_of(found))


def _user_json(name: str, result: tuple[ScramCredentialInfo, ...] | AdminError) -> dict[str, object]:
    if isinstance(result, AdminError):
        return {"user": name, "credentials": [], "error": error_json(result)}
    credentials = [{"mechanism": info.mechanism, "iterations": info.iterations} for info in result]
    return {"user": name, "credentials": credentials, "error": None}


@users.command("set")
@click.argument("name")
@mechanism_option
@click.option(
    "--iterations",
    type=click.IntRange(MIN_ITERATIONS, MOST_STORED_ITERATIONS),
    default=MIN_ITERATIONS,
    show_default=True,
    help="How often the password is hashed; more make guessing slower.",
)
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"File whose first line is the password. Otherwise {VARIABLE} is the password, or you are asked for it.",
)
@admin_options
def set_user(
    *, name: str, mechanisms: Sequence[str], iterations: int, password_file: Path | None, options: AdminOptions
) -> None:
    """Make the user NAME, or change their password."""
    password = _password(name, password_file)
    wanted = [ScramUpsertion(mechanism, password, iterations) for mechanism in mechanisms or sorted(HASHES)]
    results = ask(options, lambda admin: admin.alter_user_scram_credentials({name: wanted}))
    conclude(options, [_changed(name, "set", [each.mechanism for each in wanted], results)])


@users.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@mechanism_option
@admin_options
def remove(*, names: Sequence[str], mechanisms: Sequence[str], options: AdminOptions) -> None:
    """Remove users, or only some of their mechanisms. Open connections stay open."""
    unique = tuple(dict.fromkeys(names))

    async def question(admin: client.AdminClient) -> tuple[dict[str, list[str]], Results[str, None]]:
        found = {} if mechanisms else await admin.describe_user_scram_credentials(unique)
        doomed = {name: list(mechanisms) or _mechanisms(found[name]) for name in unique}
        missing = {name: result for name, result in found.items() if isinstance(result, AdminError)}
        present = {name: [ScramDeletion(each) for each in doomed[name]] for name in unique if name not in missing}
        done = await admin.alter_user_scram_credentials(present) if present else {}
        return doomed, {name: missing[name] if name in missing else done[name] for name in unique}

    doomed, results = ask(options, question)
    conclude(options, [_changed(name, "removed", doomed[name], results) for name in unique])


def _mechanisms(result: tuple[ScramCredentialInfo, ...] | AdminError) -> list[str]:
    return [] if isinstance(result, AdminError) else [info.mechanism for info in result]


def _changed(name: str, verb: str, mechanisms: Sequence[str], results: Results[str, None]) -> ChangeResult:
    facts: dict[str, object] = {"user": name, "mechanisms": list(mechanisms)}
    return ChangeResult(name, f"{verb}, {' and '.join(mechanisms)}", facts, results[name])


def _password(name: str, file: Path | None) -> str:
    if file is not None:
        password = read_text(file).partition("\n")[0].rstrip("\r")
    elif VARIABLE in os.environ:
        password = os.environ[VARIABLE]
    elif is_conversation():
        password = click.prompt(f"Password of {escaped(name)}", hide_input=True, confirmation_prompt=True)
    else:
        raise click.UsageError(
            f"The password is missing, and stdin is no terminal: use --password-file, or set {VARIABLE}."
        )
    if not password:
        raise click.UsageError("The password is empty.")
    return password
