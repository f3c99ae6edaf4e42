"""Prints what the administrative commands found or changed, for people or with --json, and exits
with the code for it.

Rule: a list goes through `print_list`, a description of named things through `conclude_reading`,
and a change through `conclude`. The exit code is 1 if something was refused, and 3 if a result is
unknown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn, TypeVar

import click
import msgspec

from ..client.errors import AdminError
from ..text import escaped
from .admin_options import NOT_REACHED, REFUSED, AdminOptions
from .output import Cell, is_conversation, print_json, print_table, readers_may_leave

K = TypeVar("K")
T = TypeVar("T")


def print_list(
    options: AdminOptions,
    document: Mapping[str, object],
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    nothing: str = "",
) -> None:
    """Print a list: a document with --json, or else a table, or the sentence `nothing` on stderr
    if there are no rows.
    """
    if options.as_json:
        print_json(document)
    elif rows:
        print_table(columns, rows)
    elif nothing:
        click.echo(nothing, err=True)


def conclude_reading(
    options: AdminOptions,
    document: Mapping[str, object],
    show: Callable[[], None],
    failures: Sequence[tuple[str, AdminError]],
) -> NoReturn:
    """Print a document with --json, or else let `show` print for people; then print what could not
    be read, and exit with the code for it.
    """
    with readers_may_leave():
        if options.as_json:
            print_json(document)
        else:
            show()
    for element, error in failures:
        complain(element, error)
    raise SystemExit(exit_code(error for _, error in failures))


def failures_of(found: Mapping[K, T | AdminError]) -> list[tuple[str, AdminError]]:
    """Return the errors among results, each with the name of its element for people."""
    return [(str(element), each) for element, each in found.items() if isinstance(each, AdminError)]


def confirm(question: str, otherwise: str, *, is_settled: bool) -> None:
    """Ask a person on a terminal, unless it `is_settled`; a No ends the command with the sentence
    `otherwise`.
    """
    if not is_settled and is_conversation() and not click.confirm(question):
        raise click.ClickException(otherwise)


def error_json(error: AdminError | None) -> dict[str, object] | None:
    if error is None:
        return None
    code = None if error.in_doubt else int(error.code)
    return {"code": code, "name": error.name, "message": error.message}


class ChangeResult(msgspec.Struct, frozen=True):
    element: str
    """The name for people, such as `topic orders`."""
    done: str
    """The text for people if the change was made, such as `created, 3 partitions`."""
    facts: dict[str, object]
    """The fields of the result for JSON."""
    error: AdminError | None = None


def conclude(
    options: AdminOptions, verdicts: Iterable[ChangeResult], *, dry_run: bool = False, nothing: str = ""
) -> NoReturn:
    """Print the results, or the sentence `nothing` on stderr if there are none, and exit with the
    code for them.
    """
    listed = list(verdicts)
    if nothing and not (listed or options.as_json):
        click.echo(nothing, err=True)
    with readers_may_leave():
        if options.as_json:
            results = [
                {**verdict.facts, "ok": verdict.error is None, "error": error_json(verdict.error)} for verdict in listed
            ]
            print_json({"dry_run": dry_run, "results": results})
        for verdict in listed:
            if verdict.error is None and not options.as_json:
                click.echo(f"{escaped(verdict.element)}: {'would be ' if dry_run else ''}{escaped(verdict.done)}")
    for verdict in listed:
        if verdict.error is not None:
            complain(verdict.element, verdict.error)
    raise SystemExit(exit_code(verdict.error for verdict in listed))


def complain(element: str, error: AdminError) -> None:
    click.echo(refusal(element, error), err=True)


def refusal(element: str, error: AdminError) -> str:
    """Return a sentence such as `orders: refused (POLICY_VIOLATION): at most 50 partitions.`"""
    verb = "in doubt" if error.in_doubt else f"refused ({error.name})"
    text = error.message.rstrip()
    return escaped(f"{element}: {verb}: {text}{'' if text.endswith(('.', '!', '?')) else '.'}")


def exit_code(errors: Iterable[AdminError | None]) -> int:
    found = [error for error in errors if error is not None]
    if any(error.in_doubt for error in found):
        return NOT_REACHED
    return REFUSED if found else 0
