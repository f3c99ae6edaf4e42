"""Tells a client that asks the wrong node where the leader is (KIP-951)."""

from collections.abc import Iterable

from ...cluster.entities import Endpoint
from ...cluster.image import Image
from ...cluster.partition_view import endpoints_at


def endpoints_of(image: Image, listener: str, leaders: Iterable[int]) -> list[tuple[int, Endpoint, str | None]]:
    """Return the address and the rack of each of these brokers that clients of a listener can
    reach.
    """
    wanted = sorted(set(leaders))
    if not wanted:
        return []
    reachable = endpoints_at(image.brokers, listener)
    return [(each, reachable[each], image.brokers[each].rack) for each in wanted if each in reachable]
