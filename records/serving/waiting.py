"""Tasks that wait for something to happen in any of several logs. Nothing polls."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from ...store.signal import Signal

Place = tuple[bytes, int]
"""A topic id and a partition."""


class Watchers:
    """Signals by the logs that they watch. A task that ends leaves none behind, however it ends."""

    def __init__(self) -> None:
        self._signals: dict[Place, set[Signal]] = {}

    @contextmanager
    def watching(self, places: Collection[Place]) -> Iterator[Signal]:
        """Give a signal that is sent whenever something happens in one of these logs."""
        signal = Signal()
        for place in places:
            self._signals.setdefault(place, set()).add(signal)
        try:
            yield signal
        finally:
            for place in places:
                watching = self._signals.get(place, set())
                watching.discard(signal)
                if not watching:
                    self._signals.pop(place, None)

    def wake(self, place: Place) -> None:
        for signal in self._signals.get(place, ()):
            signal.send()
