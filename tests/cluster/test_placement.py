"""Placement of replicas: Kafka's worked examples, and what must hold whatever the brokers."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.placement import PlacedBroker, alternate_racks, assign_replicas, start_for_new_partitions
from minicontroller.protocol.error_codes import ErrorCode

RACKS: list[PlacedBroker] = [(0, "r1"), (1, "r3"), (2, "r3"), (3, "r2"), (4, "r2"), (5, "r1")]


def without_racks(count: int) -> list[PlacedBroker]:
    return [(broker, None) for broker in range(count)]


def no_chance(_: int) -> int:
    raise AssertionError("a fixed start leaves nothing to chance")


def test_ten_partitions_on_five_brokers() -> None:
    """Kafka's example: leaders walk round, and the second round's followers stand one further."""
    placed = assign_replicas(without_racks(5), 10, 3, start=0, random=no_chance)
    assert placed == [
        (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1),
        (0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2),
    ]  # fmt: skip


def test_seven_partitions_on_three_racks() -> None:
    """Kafka's example: the racks alternate, and each partition has a replica in every rack."""
    assert [broker for broker, _ in alternate_racks(RACKS)] == [0, 3, 1, 5, 4, 2]
    assert [broker for broker, _ in alternate_racks(RACKS[:5])] == [0, 3, 1, 4, 2]
    placed = assign_replicas(RACKS, 7, 3, start=0, random=no_chance)
    assert placed == [(0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3), (0, 4, 2)]


def test_partitions_that_are_added_go_on_where_the_others_end() -> None:
    """Kafka's examples of CreatePartitions: the start follows from partition 0, nothing is left to
    chance.
    """
    brokers = without_racks(4)
    start = start_for_new_partitions(brokers, 2)
    placed = assign_replicas(brokers, 6, 4, start=start, first_partition=1, random=no_chance)
    assert placed == [(3, 2, 0, 1), (0, 3, 1, 2), (1, 0, 2, 3), (2, 3, 0, 1), (3, 0, 1, 2), (0, 1, 2, 3)]
    start = start_for_new_partitions(brokers, 1)
    assert assign_replicas(brokers, 2, 2, start=start, first_partition=1, random=no_chance) == [(2, 0), (3, 1)]


def test_the_start_is_the_first_broker_that_is_not_before_the_leader() -> None:
    """The leader's own place, or its successor's where it is gone, or the first."""
    brokers: list[PlacedBroker] = [(1, None), (4, None), (6, None)]
    assert [start_for_new_partitions(brokers, leader) for leader in (1, 2, 4, 5, 6, 7)] == [0, 1, 1, 2, 2, 0]


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "code", "text"),
    [
        (0, 0, 0, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (1, -2, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (0, 1, 0, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (1, 1, 4, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor: 4 larger than available brokers: 1."),
        (0, 1, 1, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor: 1 larger than available brokers: 0."),
    ],
)
def test_impossible_counts_are_refused(brokers: int, partitions: int, factor: int, code: ErrorCode, text: str) -> None:
    """K4-C8b: partitions are judged before replicas, with Kafka's words."""
    with pytest.raises(Refusal) as caught:
        assign_replicas(without_racks(brokers), partitions, factor, random=no_chance)
    assert (caught.value.code, caught.value.message) == (code, text)


def test_racks_for_some_brokers_only_are_refused() -> None:
    """Kafka's code is the unknown server error; the brokers without a rack are named."""
    with pytest.raises(Refusal) as caught:
        assign_replicas([(3, None), (1, "a"), (2, None)], 1, 1, random=no_chance)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert caught.value.message is not None
    assert "2, 3" in caught.value.message


def test_chance_decides_where_the_leaders_begin_and_how_far_the_followers_are() -> None:
    """Two numbers are drawn, the leader's first, both below the number of brokers."""
    draws = iter([3, 1])
    asked = []

    def draw(bound: int) -> int:
        asked.append(bound)
        return next(draws)

    assert assign_replicas(without_racks(5), 2, 3, random=draw) == [(3, 0, 1), (4, 1, 2)]
    assert asked == [5, 5]


BROKERS = st.lists(st.integers(0, 1000), min_size=1, max_size=8, unique=True)
SEEDS = st.integers(0, 2**32).map(Random)


@st.composite
def requests(draw: st.DrawFn, *, racks: bool) -> tuple[list[PlacedBroker], int, int, int, int]:
    """Brokers, partitions, replication factor, start, first partition."""
    names = st.sampled_from("abcd") if racks else st.none()
    brokers = [(broker, draw(names)) for broker in draw(BROKERS)]
    factor = draw(st.integers(1, len(brokers)))
    return brokers, draw(st.integers(1, 40)), factor, draw(st.integers(-1, len(brokers) - 1)), draw(st.integers(0, 30))


@given(st.booleans().flatmap(lambda racks: requests(racks=racks)), SEEDS)
def test_replicas_are_distinct_and_leaders_even(
    request: tuple[list[PlacedBroker], int, int, int, int], random: Random
) -> None:
    """No broker twice in a partition; of as many consecutive partitions as there are brokers each
    leads exactly one.
    """
    brokers, partitions, factor, start, first = request
    placed = assign_replicas(brokers, partitions, factor, start=start, first_partition=first, random=random.randrange)
    ids = {broker for broker, _ in brokers}
    assert len(placed) == partitions
    assert all(len(set(replicas)) == len(replicas) == factor and set(replicas) <= ids for replicas in placed)
    leaders = [replicas[0] for replicas in placed]
    for begin in range(partitions - len(ids) + 1):
        assert set(leaders[begin : begin + len(ids)]) == ids


@given(requests(racks=False), SEEDS)
def test_without_racks_every_broker_bears_the_same(
    request: tuple[list[PlacedBroker], int, int, int, int], random: Random
) -> None:
    """In each whole round every broker holds as many replicas as the replication factor; the next
    round differs.
    """
    brokers, _, factor, start, _ = request
    count = len(brokers)
    placed = assign_replicas(brokers, 2 * count, factor, start=start, random=random.randrange)
    rounds = placed[:count], placed[count:]
    for one_round in rounds:
        assert set(Counter(broker for replicas in one_round for broker in replicas).values()) == {factor}
    if factor > 1 and count > 2:
        assert rounds[0] != rounds[1]


@given(requests(racks=True), SEEDS)
def test_replicas_are_spread_over_the_racks(
    request: tuple[list[PlacedBroker], int, int, int, int], random: Random
) -> None:
    """Every rack has one as far as there are enough replicas, and none has two before every rack
    has one.
    """
    brokers, partitions, factor, start, first = request
    rack_of = dict(brokers)
    racks = set(rack_of.values())
    for replicas in assign_replicas(
        brokers, partitions, factor, start=start, first_partition=first, random=random.randrange
    ):
        held = Counter(rack_of[broker] for broker in replicas)
        assert len(held) == min(factor, len(racks))
        assert factor > len(racks) or max(held.values()) == 1


@given(st.integers(1, 3), st.integers(1, 4), SEEDS)
def test_equal_racks_are_used_evenly(per_rack: int, racks: int, random: Random) -> None:
    """With as many replicas as racks of one size, leaders and replicas are even after a whole
    round.
    """
    brokers: list[PlacedBroker] = [(number, f"rack{number % racks}") for number in range(per_rack * racks)]
    placed = assign_replicas(brokers, len(brokers), racks, random=random.randrange)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {1}
    assert set(Counter(broker for replicas in placed for broker in replicas).values()) == {racks}


@given(requests(racks=True), st.integers())
def test_the_same_draws_give_the_same_placement(
    request: tuple[list[PlacedBroker], int, int, int, int], seed: int
) -> None:
    """The order in which brokers are given does not matter where they have racks; chance is all
    there is besides.
    """
    brokers, partitions, factor, start, first = request

    def place(order: list[PlacedBroker]) -> list[tuple[int, ...]]:
        return assign_replicas(
            order, partitions, factor, start=start, first_partition=first, random=Random(seed).randrange
        )

    assert place(brokers) == place(brokers[::-1])
