"""Config keys that no table of this program has, and of which a cluster says that they are no
secrets: a gateway learns them from what the cluster tells of its topics and brokers.

Rule: a process has one cluster, so what it learns holds for all that it judges. Nothing that a
table has is learned, and no more than MOST keys are.
"""

from collections.abc import Iterator, Mapping

from .values import KeyType

MOST = 2_000
LEARNED: dict[str, KeyType] = {}
"""The types of the keys that were learned, by name."""


def learn(keys: Mapping[str, KeyType]) -> bool:
    new = dict(_new(keys))
    LEARNED.update(new)
    return bool(new)


def _new(keys: Mapping[str, KeyType]) -> Iterator[tuple[str, KeyType]]:
    room = MOST - len(LEARNED)
    for name, kind in keys.items():
        if name not in LEARNED and kind is not KeyType.PASSWORD and room > 0:
            room -= 1
            yield name, kind
