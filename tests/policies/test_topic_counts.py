"""Counts of topics by the beginnings of their names, held against a dict."""

from hypothesis import given
from hypothesis import strategies as st

from minicontroller.policies.topic_counts import LARGEST_CHUNK, Held, TopicCounts

names = st.text("ab.", max_size=5)
changes = st.lists(st.tuples(names, st.none() | st.integers(0, 9)), max_size=40)
known = st.dictionaries(names, st.integers(0, 9), max_size=2 * LARGEST_CHUNK)


def after(counts: TopicCounts, made: list[tuple[str, int | None]]) -> TopicCounts:
    for name, partitions in made:
        counts = counts.without(name) if partitions is None else counts.with_topic(name, partitions)
    return counts


def as_dict(start: dict[str, int], made: list[tuple[str, int | None]]) -> dict[str, int]:
    topics: dict[str, int | None] = {**start, **dict(made)}
    return {name: partitions for name, partitions in topics.items() if partitions is not None}


def assert_tells(counts: TopicCounts, topics: dict[str, int], prefix: str) -> None:
    beginning = {name: partitions for name, partitions in topics.items() if name.startswith(prefix)}
    assert list(counts) == sorted(topics)
    assert counts.topics == len(topics)
    assert counts.held(prefix) == Held(len(beginning), sum(beginning.values()))
    assert list(counts.beginning(prefix)) == sorted(beginning.items())
    assert counts.partitions(prefix) == topics.get(prefix)


@given(known, changes, names)
def test_whatever_came_and_went_is_counted(
    start: dict[str, int], made: list[tuple[str, int | None]], prefix: str
) -> None:
    """Names, topics and partitions are those of a dict that lived through the same, and who holds
    older counts keeps them.
    """
    before = TopicCounts.of(start.items())
    assert_tells(after(before, made), as_dict(start, made), prefix)
    assert_tells(before, start, prefix)


def test_chunks_part_as_they_grow_and_go_when_they_are_empty() -> None:
    """However many topics come one by one, and go again, each is counted once."""
    numbers = range(4 * LARGEST_CHUNK)
    shuffled = sorted(numbers, key=lambda number: number * 7919 % 1009)
    counts = TopicCounts()
    for count, number in enumerate(shuffled, start=1):
        counts = counts.with_topic(f"t{number:04}", number)
        assert counts.held("t") == Held(count, sum(shuffled[:count]))
    assert list(counts) == [f"t{number:04}" for number in numbers]
    for number in shuffled:
        counts = counts.without(f"t{number:04}")
    assert list(counts) == [] and counts.held("") == Held(0, 0)
