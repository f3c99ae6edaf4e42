"""A group of commands that are imported when they are called.

Rule: a command, the list of commands and the shell's completion never wait for the imports of other
commands.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from .output import nobody_reads


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
