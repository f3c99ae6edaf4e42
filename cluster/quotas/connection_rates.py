"""Limits how fast a node accepts connections: `max.connection.creation.rate` for the node and for a
listener, and the quota `connection_creation_rate` of an address.

Rule: as in Kafka, a listener that is too fast waits, and a connection of an address that is too
fast is closed. What is remembered of addresses is bounded by those that connected in the last
windows.
"""

from collections import Counter
from collections.abc import Callable
from math import inf

from .client_quotas import ClientQuotas
from .rates import SampledRate, Windows

MANY_ADDRESSES = 1_000
"""With as many addresses, those that are idle are looked for."""
NODE = ""
"""Stands for all listeners of a node."""

LimitOf = Callable[[str], int | None]
"""Returns the most connections a second at a listener, or at the node (`NODE`); None for no limit.
"""


class ConnectionRates:
    def __init__(self, quotas: ClientQuotas, limit_of: LimitOf, windows: Windows, clock_ms: Callable[[], int]) -> None:
        self._quotas = quotas
        self._limit_of = limit_of
        self._windows = windows
        self._clock_ms = clock_ms
        self._rates: dict[str, SampledRate] = {}
        """By listener, and that of the node."""
        self._by_address: dict[str, SampledRate] = {}
        self._next_look = MANY_ADDRESSES
        self.throttled: Counter[str] = Counter()
        """How many connections had to wait (`listener`), or were closed (`address`)."""

    def wait_ms(self, listener: str, *, is_protected: bool) -> int:
        """Count a connection at a listener, and return how long it waits before it is served. At a
        protected listener, which nodes use, the rate of the node as a whole does not count.
        """
        now_ms = self._clock_ms()
        names = (listener,) if is_protected else (NODE, listener)
        wait_ms = max(self._excess_ms(name, now_ms) for name in names)
        self.throttled["listener"] += wait_ms > 0
        return wait_ms

    def refused_ms(self, address: str) -> int:
        """Count a connection of an address. If it has too many, return after how long it is to be
        closed, else 0.
        """
        limit = self._quotas.connection_rate(address)
        if limit is None or not limit < inf:
            return 0
        now_ms = self._clock_ms()
        rate = self._by_address.get(address)
        if rate is None:
            if len(self._by_address) >= self._next_look:
                self._forget_idle(now_ms)
            rate = self._by_address[address] = SampledRate(self._windows)
        rate.add(1, now_ms)
        refused_ms = rate.excess_ms(limit, now_ms)
        if refused_ms:
            rate.add(-1, now_ms)
            self.throttled["address"] += 1
        return refused_ms

    def _excess_ms(self, name: str, now_ms: int) -> int:
        limit = self._limit_of(name)
        if limit is None:
            self._rates.pop(name, None)
            return 0
        rate = self._rates.get(name)
        if rate is None:
            rate = self._rates[name] = SampledRate(self._windows)
        rate.add(1, now_ms)
        return rate.excess_ms(limit, now_ms)

    def _forget_idle(self, now_ms: int) -> None:
        self._by_address = {name: rate for name, rate in self._by_address.items() if not rate.is_idle(now_ms)}
        self._next_look = max(MANY_ADDRESSES, 2 * len(self._by_address))
