"""What is known of topics beyond what the cluster shows at this moment; pure.

Rule: a reading never makes undone what is certain. The id of a topic that is gone never comes back,
partitions never become fewer under one id, and what a request completed holds until a reading shows
it, for `BELIEVED_SECONDS` at most. When another broker is asked than before, which may be behind,
it is taken to be behind for `SETTLING_SECONDS`, unless it shows more than was known.
"""

import math
from collections.abc import Callable

import msgspec

from ...cluster.entities import NO_TOPIC_ID, Topic

BELIEVED_SECONDS = 60.0
"""How long a completed change holds that no reading shows: others may have undone it."""
SETTLING_SECONDS = 10.0
"""How long a broker may be behind that was not asked before."""
MOST_GONE = 10_000
"""How many ids of topics that are gone are remembered."""


class Unshown(msgspec.Struct, frozen=True):
    """A change that was completed and that no reading has shown yet."""

    is_shown: Callable[[Topic | None], bool]
    until: float
    """When a reading that does not show it is believed all the same."""


class Knowledge:
    """Decides what to believe of a reading. Times are in seconds, by any clock."""

    def __init__(self) -> None:
        self._gone: dict[bytes, None] = {}
        self._unshown: dict[str, Unshown] = {}
        self._settled_at = -math.inf

    def switched(self, now: float) -> None:
        """Note that another broker is asked from now on."""
        self._settled_at = now + SETTLING_SECONDS

    def completed(self, name: str, is_shown: Callable[[Topic | None], bool], now: float) -> None:
        """Note a change of a topic that the last reading did not show."""
        self._unshown[name] = Unshown(is_shown, now + BELIEVED_SECONDS)

    def gone(self, topic: Topic) -> None:
        """Note that a topic was deleted, for good."""
        if topic.topic_id != NO_TOPIC_ID:
            self._gone[topic.topic_id] = None
            while len(self._gone) > MOST_GONE:
                del self._gone[next(iter(self._gone))]

    def alive(self, found: Topic | None) -> Topic | None:
        """Return what a reading shows of a topic, but for one that is gone."""
        return None if found is not None and found.topic_id in self._gone else found

    def believed(self, name: str, known: Topic | None, found: Topic | None, now: float) -> Topic | None:
        """Return what a topic is, by what was known and what a reading shows; None if there is
        none. It has to be known to be `gone` if it was there before.
        """
        found = self.alive(found)
        unshown = self._unshown.get(name)
        if unshown is not None:
            if now < unshown.until and not unshown.is_shown(found):
                return known
            del self._unshown[name]
            return found
        if known is None or found is known:
            return found
        return known if _is_older(found, known) or (now < self._settled_at and not _is_newer(found, known)) else found


def _is_older(found: Topic | None, known: Topic) -> bool:
    """Whether a reading is certainly older than what is known."""
    return found is not None and _is_same(found, known) and len(found.partitions) < len(known.partitions)


def _is_newer(found: Topic | None, known: Topic) -> bool:
    """Whether a reading is certainly newer than what is known."""
    return found is not None and _is_same(found, known) and len(found.partitions) > len(known.partitions)


def _is_same(one: Topic, other: Topic) -> bool:
    return one.topic_id == other.topic_id != NO_TOPIC_ID
