"""What there is of a history is found the same, however its events lie in files."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.pipeline.backtest.replaying import Window
from minicontroller.pipeline.backtest.running import EventFiles, buckets_of, merged_buckets
from tests.pipeline.backtest.by_words import CLUSTER
from tests.pipeline.backtest.files import written
from tests.pipeline.backtest.slicing import buckets
from tests.pipeline.backtest.test_slices import a_life

EXAMPLES = 25
"""Each writes up to six files, and connects to DuckDB three times."""


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 5), st.booleans())
@settings(max_examples=EXAMPLES)
def test_buckets_are_found_in_any_files(
    tmp_path_factory: pytest.TempPathFactory, seed: int, bucket_events: int, count: int, is_windowed: bool
) -> None:
    """Events in any order in any number of files, looked into by any number of workers: what the
    log says, bucket by bucket.
    """
    folder, chance, events = tmp_path_factory.mktemp("events"), Random(seed), a_life(seed, 20)
    times = [event.time_ms for event in events]
    window = Window(times[len(times) // 3], times[len(times) * 2 // 3]) if is_windowed else Window()
    mixed = chance.sample(events, len(events))
    edges = sorted({0, len(mixed), *(chance.randrange(1, len(mixed)) for _ in range(count))})
    shares = {f"{folder}/{begin}.parquet": mixed[begin:end] for begin, end in pairwise(edges)}
    for number, share in enumerate(shares.values()):
        written(folder / f"{edges[number]}.parquet", share)
    cut = chance.randrange(len(shares) + 1)
    halves = (tuple(shares)[:cut], tuple(shares)[cut:])
    found = merged_buckets(
        table for half in halves for table in buckets_of(EventFiles(CLUSTER, half), window, bucket_events)
    )
    files = {(event.epoch, event.sequence): file for file, share in shares.items() for event in share}
    assert found == list(buckets(events, bucket_events, window, files))
