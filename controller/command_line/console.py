"""rich, as the commands draw with it.

Rule: what it is given is text and never markup; and a reader who leaves is told to the caller as
everywhere (`output.py`), where rich would end the process with code 1. Imported only where
something is drawn.
"""

from rich.console import Console


class PlainConsole(Console):
    def __init__(self, *, width: int | None = None) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, width=width)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
