"""Kafka's token bucket, by which changes of topics are limited (KIP-599).

Rule: the clock is an argument, in milliseconds, and never goes back. A bucket may hold less than
nothing: whoever found it at zero or above may take more than it holds, and pays with time.
"""

from math import inf

MAX_THROTTLE_MS = 2**31 - 1


class TokenBucket:
    """A bucket that is full at first. `rate` is what flows in a second and `burst` is its size,
    which may change from call to call.
    """

    __slots__ = ("_last_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens = inf
        self._last_ms = 0

    def level(self, rate: float, burst: float, now_ms: int) -> float:
        self._tokens = min(burst, self._tokens + rate * (now_ms - self._last_ms) / 1000)
        self._last_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, burst: float, now_ms: int) -> float:
        self._tokens = min(burst, self.level(rate, burst, now_ms) - count)
        return self._tokens


def throttle_ms(tokens: float, rate: float) -> int:
    """Return how long it takes until a bucket that lacks tokens has none too few. As in Kafka, a
    rate of 0 gives no time to wait, because no time would do.
    """
    if tokens >= 0 or rate <= 0:
        return 0
    return int(min(-tokens / rate * 1000 + 0.5, MAX_THROTTLE_MS))
