"""The token bucket and the sampled rate, whatever happens to them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.cluster.quotas import mutation_quota
from minicontroller.cluster.quotas.client_quotas import ClientQuotas
from minicontroller.cluster.quotas.mutation_quota import MutationQuotas
from minicontroller.cluster.quotas.rates import MAX_THROTTLE_MS, SampledRate, TokenBucket, Windows, throttle_ms

BURST_SECONDS = 11
cases = settings(max_examples=150, derandomize=True, database=None)
steps = st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 50)), max_size=40)
"""Milliseconds that pass, and what is asked for then."""


@cases
@given(st.floats(0.01, 100), steps)
def test_no_more_flows_than_the_rate_and_a_burst(rate: float, asked: list[tuple[int, int]]) -> None:
    """A strict client gets the burst, what flows in meanwhile, and the last element as a whole."""
    bucket, now, given_out, largest = TokenBucket(), 1_000, 0, 0
    for elapsed, count in asked:
        now += elapsed
        if bucket.level(rate, rate * BURST_SECONDS, now) >= 0:
            bucket.take(count, rate, rate * BURST_SECONDS, now)
            given_out, largest = given_out + count, max(largest, count)
    seconds = (now - 1_000) / 1000
    assert given_out <= rate * (BURST_SECONDS + seconds) + largest + 1e-6


@cases
@given(st.floats(0.01, 100), steps)
def test_whoever_waits_as_told_is_let_through(rate: float, asked: list[tuple[int, int]]) -> None:
    """After the throttle time, and a millisecond for rounding, the bucket lacks nothing."""
    bucket, now, burst = TokenBucket(), 0, rate * BURST_SECONDS
    for elapsed, count in asked:
        now += elapsed
        wait_ms = throttle_ms(bucket.take(count, rate, burst, now), rate)
        if wait_ms < MAX_THROTTLE_MS:
            now += wait_ms + 1
            assert bucket.level(rate, burst, now) >= -1e-6
        assert bucket.level(rate, burst, now) <= burst


def test_a_bucket_is_full_at_first_and_follows_a_changed_rate() -> None:
    """A smaller quota holds from the next request on."""
    bucket = TokenBucket()
    assert bucket.level(2.0, 22.0, 5) == 22.0
    assert bucket.level(1.0, 11.0, 5) == 11.0
    assert bucket.take(12, 1.0, 11.0, 5) == -1.0
    assert (throttle_ms(-1.0, 1.0), throttle_ms(-1.0, 0.0), throttle_ms(0.0, 1.0)) == (1000, 0, 0)
    assert throttle_ms(-1e9, 0.001) == MAX_THROTTLE_MS


@cases
@given(st.integers(1, 50), steps)
def test_waiting_is_bounded_and_memory_too(limit: int, asked: list[tuple[int, int]]) -> None:
    """Nobody waits longer than one window, and no more windows are remembered than there are."""
    windows, now = Windows(), 0
    rate = SampledRate(windows)
    for elapsed, count in asked:
        now += elapsed
        rate.add(count, now)
        excess = rate.excess_ms(limit, now)
        assert 0 <= excess <= windows.size_ms
        assert (excess > 0) <= (rate.rate(now) > limit)
        assert len(rate._samples) <= windows.count
    assert rate.is_idle(now + windows.count * windows.size_ms)


def test_what_is_remembered_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a default quota each client id has a bucket of its own, and a client may choose a new
    one, of 32 KB, for each request; its own stays in force.
    """
    monkeypatch.setattr(mutation_quota, "MANY_BUCKETS", 10)
    monkeypatch.setattr(mutation_quota, "MOST_BUCKETS", 100)
    quotas = ClientQuotas()
    quotas.set({"user": "eve", "client-id": None}, {"controller_mutation_rate": "0.001"})
    changes = MutationQuotas(quotas, BURST_SECONDS, lambda: 0)
    for number in range(1_000):
        client = f"{number}" + "x" * 30_000
        assert not changes.take("eve", client, 1, strict=True).is_refused
        assert changes.take("eve", client, 1, strict=True).is_refused
        assert len(changes._buckets) <= 100
    assert all(len(name) <= 64 for key in changes._buckets for name in key)
