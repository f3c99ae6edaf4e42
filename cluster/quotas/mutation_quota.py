"""Limits how many partitions the clients of a cluster create and delete
(`controller_mutation_rate`, KIP-599).

Rule: each element of a request is counted once, however often it is planned. Buckets that are full
again are forgotten, so their number is bounded by what was used lately.
"""

from collections.abc import Callable, Hashable
from hashlib import sha256
from math import inf

import msgspec

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from .client_quotas import ClientQuotas, Limit
from .rates import TokenBucket, throttle_ms

MANY_BUCKETS = 1_000
"""With as many buckets, those that are full are looked for."""
MOST_BUCKETS = 50_000
"""With as many, the oldest are forgotten: a client may choose a new id for each request."""
MAX_NAME = 64
"""The longest name of a user or a client that is kept as it is."""


class MutationQuotas:
    """The buckets of one node, which it uses while it is the active controller. `burst_seconds` is
    what they hold: `controller.quota.window.num` windows of `controller.quota.window.size.seconds`.
    """

    def __init__(self, quotas: ClientQuotas, burst_seconds: float, clock_ms: Callable[[], int]) -> None:
        self._quotas = quotas
        self._burst_seconds = burst_seconds
        self._clock_ms = clock_ms
        self._buckets: dict[tuple[str, str], tuple[TokenBucket, Limit]] = {}
        """By those who share a bucket, with the limit that held last."""
        self._next_look = MANY_BUCKETS

    def of_request(self, user: str, client_id: str, *, strict: bool) -> "RequestQuota":
        """Return what limits the changes of one request. A strict one refuses changes, any other
        only tells how long the client has to wait.
        """
        return RequestQuota(self, user, client_id, strict=strict)

    def take(self, user: str, client_id: str, count: int, *, strict: bool) -> "Taken":
        """Count changes of this user and client, unless a strict limit has been reached."""
        limit, now_ms = self._quotas.mutation_limit(user, client_id), self._clock_ms()
        if limit is None or not limit.rate < inf:
            for shared_by in (user, ""), ("", client_id):  # full again, should a limit come back
                self._buckets.pop(_key(shared_by), None)
            return Taken(now_ms)
        bucket, burst = self._bucket(limit, now_ms), limit.rate * self._burst_seconds
        if strict:
            level = bucket.level(limit.rate, burst, now_ms)
            if level < 0:
                return Taken(now_ms, throttle_ms(level, limit.rate), is_refused=True)
        level = bucket.take(count, limit.rate, burst, now_ms)
        return Taken(now_ms, 0 if strict else throttle_ms(level, limit.rate))

    def left_of(self, taken: "Taken") -> int:
        """Return how much of a time to wait is left, in milliseconds."""
        return max(taken.throttle_ms - (self._clock_ms() - taken.at_ms), 0)

    def _bucket(self, limit: Limit, now_ms: int) -> TokenBucket:
        key = _key(limit.shared_by)
        bucket, _ = self._buckets.get(key, (None, limit))
        if bucket is None:
            if len(self._buckets) >= self._next_look:
                self._forget_full(now_ms)
            bucket = TokenBucket()
        self._buckets[key] = bucket, limit
        return bucket

    def _forget_full(self, now_ms: int) -> None:
        for key, (bucket, limit) in list(self._buckets.items()):
            if not 0 < limit.rate < inf or self._is_full(bucket, limit.rate, now_ms):
                del self._buckets[key]
        for key in list(self._buckets)[: len(self._buckets) - MOST_BUCKETS // 2]:
            del self._buckets[key]
        self._next_look = max(MANY_BUCKETS, 2 * len(self._buckets))

    def _is_full(self, bucket: TokenBucket, rate: float, now_ms: int) -> bool:
        burst = rate * self._burst_seconds
        return bucket.level(rate, burst, now_ms) >= burst


def _key(shared_by: tuple[str, str]) -> tuple[str, str]:
    """Return the key of a bucket: names in it are short, whatever clients call themselves."""
    user, client_id = shared_by
    return _short(user), _short(client_id)


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


class Taken(msgspec.Struct, frozen=True):
    """The outcome of one change at the quota."""

    at_ms: int
    throttle_ms: int = 0
    """How long the client has to wait from `at_ms` on."""
    is_refused: bool = False


class RequestQuota:
    """The quota of one request: its changes are counted by `count`."""

    def __init__(self, quotas: MutationQuotas, user: str, client_id: str, *, strict: bool) -> None:
        self._quotas = quotas
        self._user, self._client_id, self._strict = user, client_id, strict
        self._counted: dict[Hashable, bool] = {}
        """The elements that were counted, and whether each was refused."""
        self._last = Taken(0)

    def count(self, element: Hashable, partitions: int) -> None:
        """Count an element of the request. Raises THROTTLING_QUOTA_EXCEEDED."""
        is_refused = self._counted.get(element)
        if is_refused is None:
            taken = self._quotas.take(self._user, self._client_id, partitions, strict=self._strict)
            self._counted[element] = is_refused = taken.is_refused
            if taken.throttle_ms:
                self._last = taken
        if is_refused:
            raise Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, reason="The quota of changes has been reached.")

    def throttle_ms(self) -> int:
        """Return how long the client has to wait from now on."""
        return self._quotas.left_of(self._last)
