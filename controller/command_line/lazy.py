"""A group of commands that are imported when they are called.

Rule: whoever calls one command does not wait for what only another one needs.
"""

from importlib import import_module

import click


class LazyGroup(click.Group):
    """`add_later` names a command by the place of its object: `.command_line.topics:topics`."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._places: dict[str, str] = {}

    def add_later(self, name: str, place: str) -> None:
        """`place` is relative to `minicontroller.controller`."""
        self._places[name] = place

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = place.partition(":")
        command = getattr(import_module(module, __package__.rpartition(".")[0]), name)
        assert isinstance(command, click.Command)
        return command
