"""Figures and lists of topics, for clusters with very many of them.

Rule: whoever counts or sorts lets the others have their turn, and does it once for an image,
however many ask.
"""

from collections.abc import Sequence

import msgspec
import trio

from ..metadata.entities import Topic
from ..metadata.image import Image

TOPICS_A_TURN = 1_000
FRESH_SECONDS = 1.0
"""A sorted list is used for so long, though topics came and went: to sort a hundred thousand names
takes a while.
"""


class Figures(msgspec.Struct, frozen=True):
    topics: int = 0
    partitions: int = 0
    leaderless: int = 0
    """Partitions without a leader."""
    under_deletion: int = 0
    """Topics that are marked, and not yet gone."""


class Census:
    """Counts what one image holds, for metrics and pages; the nodes of a process share a census."""

    def __init__(self) -> None:
        self._image: Image | None = None
        self._figures = Figures()
        self._lock = trio.Lock()
        self._names: Sequence[str] = ()
        self._sorted_at = float("-inf")
        self._sorted_of: Image | None = None

    async def figures(self, image: Image) -> Figures:
        async with self._lock:
            if self._image is None or self._image.topics is not image.topics:
                self._figures, self._image = await _count(image), image
            return self._figures

    def names(self, image: Image) -> tuple[Sequence[str], bool]:
        """Return the sorted names of the topics, and whether they are of this image or of one a
        moment ago.
        """
        now = trio.current_time()
        known = self._sorted_of
        if known is None or (known.topics is not image.topics and now - self._sorted_at >= FRESH_SECONDS):
            self._names, self._sorted_at, self._sorted_of = sorted(image.topics), now, image
        return self._names, self._sorted_of is not None and self._sorted_of.topics is image.topics


async def _count(image: Image) -> Figures:
    partitions = leaderless = marked = 0
    for index, topic in enumerate(image.topics.values(), start=1):
        partitions += len(topic.partitions)
        leaderless += leaderless_of(topic)
        marked += topic.marked_for_deletion
        if index % TOPICS_A_TURN == 0:
            await trio.lowlevel.checkpoint()
    return Figures(len(image.topics), partitions, leaderless, marked)


def leaderless_of(topic: Topic) -> int:
    return sum(partition.leader < 0 for partition in topic.partitions)
