"""The counts of a back-test. The tallies of slices add up to the tally of the whole history,
however it was sliced and in any order.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest

import msgspec

MOST_NOTES = 20
"""How many notes of each subject are kept, though all are counted; and how many side_effects."""


class Note(msgspec.Struct, frozen=True, order=True):
    """A remark on the history or on the candidate's answer, with its place in the log."""

    cluster_id: str
    epoch: int
    sequence: int
    text: str


class Tally:
    """Counts by keys such as ("principal", "newly-denied", "User:alice"), and notes by their
    subject.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.notes: dict[str, list[Note]] = {}
        """The first notes by their subject, in the order of the log."""
        self.side_effects: set[str] = set()

    def note(self, about: str, note: Note) -> None:
        self.counts["note", about] += 1
        self.notes[about] = nsmallest(MOST_NOTES, {*self.notes.get(about, ()), note})

    def add(self, other: "Tally") -> None:
        self.counts.update(other.counts)
        self.side_effects = set(nsmallest(MOST_NOTES, self.side_effects | other.side_effects))
        for about, notes in other.notes.items():
            self.notes[about] = nsmallest(MOST_NOTES, {*self.notes.get(about, ()), *notes})

    def of(self, *key: str) -> int:
        return self.counts[key]

    def by(self, *key: str) -> dict[str, int]:
        """Return what follows the key in keys that are longer by one, in order, with its count."""
        return {rest[0]: count for rest, count in self.beginning(*key) if len(rest) == 1}

    def beginning(self, *key: str) -> Iterator[tuple[tuple[str, ...], int]]:
        length = len(key)
        yield from sorted((found[length:], count) for found, count in self.counts.items() if found[:length] == key)

    def encode(self) -> str:
        return msgspec.json.encode(
            (sorted(self.counts.items()), self.notes, sorted(self.side_effects)[:MOST_NOTES])
        ).decode()

    @classmethod
    def decode(cls, text: str | bytes) -> "Tally":
        tally = cls()
        counts, tally.notes, tally.side_effects = msgspec.json.decode(text, type=Plain)
        tally.counts.update(dict(counts))
        return tally


Plain = tuple[list[tuple[tuple[str, ...], int]], dict[str, list[Note]], set[str]]
"""A tally as JSON holds it."""
