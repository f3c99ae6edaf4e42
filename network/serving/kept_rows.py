"""Encoded rows of answers, kept for clients that ask the same again.

Rule: what is kept was made of one state, such as an image, and is dropped as soon as somebody asks
about another state. What else it depends on is its question. No row is the only copy of anything,
and each API has caches of its own, so that one cannot push out the rows of another.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

MAX_KEPT_BYTES = 8 * 1024 * 1024
"""How many bytes are kept of one state, for different questions."""
QUESTION_BYTES = 1024
"""The bytes that every question counts for besides its rows."""

SLACK = 256
"""Fragments of sources that are gone are dropped when there are more than this many."""

T = TypeVar("T")


class Joined(list[bytes]):
    """Encoded elements of an array, joined to one. Its length is the number of the elements, and
    iteration gives the joined bytes; so an encoder, which writes the length and then each element,
    writes the array without a loop over its elements.
    """

    __slots__ = ("_count",)

    def __init__(self, elements: Sequence[bytes]) -> None:
        super().__init__((b"".join(elements),))
        self._count = len(elements)

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        return len(self[0])


class KeptRows(Generic[T]):
    """Keeps the answers that were made of one state, by question, up to MAX_KEPT_BYTES."""

    def __init__(self) -> None:
        self._state: object = None
        self._kept: dict[Hashable, T] = {}
        self._bytes = 0

    def get(self, state: object, question: Hashable) -> T | None:
        return self._kept.get(question) if state is self._state else None

    def keep(self, state: object, question: Hashable, made: T, size: int) -> None:
        """Keep what has `size` bytes, its question included, until other questions need the memory
        or there is another state.
        """
        size += QUESTION_BYTES
        if state is not self._state or self._bytes + size > MAX_KEPT_BYTES:
            self._state = state
            self._kept.clear()
            self._bytes = 0
        if size <= MAX_KEPT_BYTES:
            self._kept[question] = made
            self._bytes += size


class Fragments:
    """Encoded elements by their question, each used as long as its source is the same object, since
    sources never change.
    """

    def __init__(self) -> None:
        self._state: object = None
        self._kept: dict[Hashable, tuple[object, bytes, int]] = {}

    def follow(self, state: object, most: int) -> None:
        """Use fragments that were made of an equal state, and at most about this many of them."""
        if (state is not self._state and state != self._state) or len(self._kept) > most + SLACK:
            self._kept.clear()
        self._state = state

    def of(
        self, state: object, question: Hashable, source: T, make: Callable[[T], tuple[bytes, int]]
    ) -> tuple[bytes, int]:
        """Return the fragment of a source with the number of things in it, both made by `make` of
        this state. Nothing is kept if another state is followed by now.
        """
        if state is not self._state:
            return make(source)
        kept = self._kept.get(question)
        if kept is None or kept[0] is not source:
            kept = self._kept[question] = (source, *make(source))
        return kept[1], kept[2]


class LatestAnswers:
    """Encoded answers about sources, one for each key: the answer to the latest question. A client
    that asks the same again costs a comparison of its questions.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[object, object, bytes, int]] = {}

    def get(self, key: Hashable, source: object, question: object) -> tuple[bytes, int] | None:
        """Return the answer to an equal question about the same source, with its error code."""
        kept = self._kept.get(key)
        if kept is None or kept[0] is not source or kept[1] != question:
            return None
        return kept[2], kept[3]

    def keep(self, key: Hashable, source: object, question: object, answer: tuple[bytes, int], most: int) -> None:
        """Keep an answer. All are dropped when they exceed `most` by more than SLACK."""
        if len(self._kept) > most + SLACK:
            self._kept.clear()
        self._kept[key] = (source, question, *answer)
