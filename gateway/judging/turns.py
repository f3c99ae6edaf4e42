"""Lets requests about the same things take turns: each is judged by what those before it left.

Rule: a request stands in line for everything that it names at once, so that no two requests ever
wait for each other.
"""

from collections.abc import Collection, Iterable

import trio


class Turn:
    """The place of one request in the lines of what it names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        """Its lines, of which some may be left before others."""
        self.called = trio.Event()
        """Set when the request has become the first of a line."""


class Turns:
    """The lines of requests, by the names of what they are about. The first of a line has its
    turn.
    """

    def __init__(self) -> None:
        self._lines: dict[str, dict[Turn, None]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of everything that requests are about now."""
        return frozenset(self._lines)

    def is_about_topic(self, name: str) -> bool:
        return f"topic {name}" in self._lines

    def stand(self, names: Iterable[str]) -> Turn:
        """Stand in the lines of these names. The caller calls `end` in any case."""
        turn = Turn(frozenset(names))
        for name in turn.names:
            self._lines.setdefault(name, {})[turn] = None
        return turn

    async def wait(self, turn: Turn) -> None:
        """Wait until a request is the first in all of its lines."""
        while any(next(iter(self._lines[name])) is not turn for name in turn.names):
            turn.called = trio.Event()
            await turn.called.wait()

    def keep(self, turn: Turn, names: Collection[str]) -> None:
        """Stay in the lines of these names alone."""
        for name in turn.names.difference(names):
            line = self._lines[name]
            del line[turn]
            if line:
                next(iter(line)).called.set()
            else:
                del self._lines[name]
        turn.names = turn.names.intersection(names)

    def end(self, turn: Turn) -> None:
        """Leave the lines, whether the turn had come or not."""
        self.keep(turn, ())
