"""Kafka's two measures of a rate: the token bucket, by which changes of topics are limited
(KIP-599), and the rate over sampled windows, by which new connections are.

Rule: the clock is an argument, in milliseconds, and never goes back. The cost of a call is bounded
by the number of windows.
"""

from collections import deque
from math import inf

import msgspec

MAX_THROTTLE_MS = 2**31 - 1


class TokenBucket:
    """A bucket that is full at first. `rate` is what flows in a second and `burst` is its size,
    which may change from call to call. It may hold less than nothing: a caller that finds it at
    zero or above may take more than it holds, and pays with time.
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


class Windows(msgspec.Struct, frozen=True):
    """How long events are remembered."""

    count: int = 11
    """Kafka: `quota.window.num`."""
    size_ms: int = 1000
    """Kafka: `quota.window.size.seconds`."""


class SampledRate:
    """Counts events, and tells how many there were in a second of the last windows."""

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: deque[list[int]] = deque()
        """The start of each window and its number of events, the oldest first."""

    def add(self, events: int, now_ms: int) -> None:
        if not self._samples or now_ms - self._samples[-1][0] >= self._windows.size_ms:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += events

    def excess_ms(self, limit: float, now_ms: int) -> int:
        """Return for how long nothing may happen, so that the rate falls to `limit`; 0 if it is
        not above it.
        """
        rate = self.rate(now_ms)
        if rate <= limit:
            return 0
        if limit <= 0:
            return self._windows.size_ms
        return min(int((rate - limit) / limit * self._span_ms(now_ms) + 0.5), self._windows.size_ms)

    def rate(self, now_ms: int) -> float:
        """Return the number of events in a second."""
        span_ms = self._span_ms(now_ms)
        return sum(events for _, events in self._samples) / (span_ms / 1000)

    def is_idle(self, now_ms: int) -> bool:
        self._forget(now_ms)
        return not any(events for _, events in self._samples)

    def _span_ms(self, now_ms: int) -> int:
        """Return the time over which the events are averaged: all windows but the last at least."""
        self._forget(now_ms)
        size_ms = self._windows.size_ms
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        missing = self._windows.count - 1 - elapsed_ms // size_ms
        return max(elapsed_ms + max(0, missing) * size_ms, 1)

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows.count * self._windows.size_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            self._samples.popleft()
