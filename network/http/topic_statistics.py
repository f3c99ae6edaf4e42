"""Totals and sorted names of the topics of an image, for clusters with very many of them.

Rule: an image is counted once, however many clients ask, and other tasks run meanwhile.
"""

from collections.abc import Sequence

import msgspec
import trio

from ...cluster.entities import Topic
from ...cluster.image import Image

TOPICS_A_SLICE = 1_000
"""Topics that are counted before other tasks run."""
SORTED_NAMES_SECONDS = 1.0
"""How long a sorted list of names is used while topics come and go: sorting a hundred thousand
names takes a while.
"""


class TopicTotals(msgspec.Struct, frozen=True):
    topics: int = 0
    partitions: int = 0
    leaderless: int = 0
    not_led_as_preferred: int = 0
    """Partitions that their preferred leader does not lead, except of topics under deletion."""
    under_deletion: int = 0
    """Topics that are marked for deletion and still there."""


class TopicStatistics:
    """Counts and sorts the topics of images; the nodes of a process share one of these."""

    def __init__(self) -> None:
        self._image: Image | None = None
        self._figures = TopicTotals()
        self._lock = trio.Lock()
        self._names: Sequence[str] = ()
        self._sorted_at = float("-inf")
        self._sorted_of: Image | None = None

    async def figures(self, image: Image) -> TopicTotals:
        async with self._lock:
            if self._image is None or self._image.topics is not image.topics:
                self._figures, self._image = await _count(image), image
            return self._figures

    def names(self, image: Image) -> tuple[Sequence[str], bool]:
        """Return the sorted names of the topics, and whether they are those of this image; they may
        be those of an image of a moment ago.
        """
        now = trio.current_time()
        known = self._sorted_of
        if known is None or (known.topics is not image.topics and now - self._sorted_at >= SORTED_NAMES_SECONDS):
            self._names, self._sorted_at, self._sorted_of = sorted(image.topics), now, image
        return self._names, self._sorted_of is not None and self._sorted_of.topics is image.topics


async def _count(image: Image) -> TopicTotals:
    partitions = leaderless = imbalance = marked = 0
    for index, topic in enumerate(image.topics.values(), start=1):
        partitions += len(topic.partitions)
        leaderless += leaderless_partitions(topic)
        if not topic.marked_for_deletion:
            imbalance += sum(not partition.is_led_as_preferred for partition in topic.partitions)
        marked += topic.marked_for_deletion
        if index % TOPICS_A_SLICE == 0:
            await trio.lowlevel.checkpoint()
    return TopicTotals(len(image.topics), partitions, leaderless, imbalance, marked)


def leaderless_partitions(topic: Topic) -> int:
    return sum(partition.leader < 0 for partition in topic.partitions)
