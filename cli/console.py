"""The rich console of the commands.

Rule: all input is plain text, never markup. A closed pipe raises BrokenPipeError, which `output.py`
handles, where rich would exit with code 1. The module is imported only by commands that draw,
because rich is slow to import.
"""

from rich.console import Console


class PlainConsole(Console):
    def __init__(self, *, width: int | None = None) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, width=width)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
