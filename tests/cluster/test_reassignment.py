"""Reassignments of one partition, as pure functions."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from minicontroller.cluster import reassignment
from minicontroller.cluster.entities import NO_LEADER, Partition
from minicontroller.cluster.leadership import elect_leader

LED = Partition(replicas=(1, 2), leader=1, leader_epoch=4, isr=(1, 2), partition_epoch=7)
ALL = frozenset(range(1, 7))

replicas = st.lists(st.integers(1, 6), unique=True, min_size=1, max_size=4).map(tuple)
lives = st.frozensets(st.integers(1, 6))


def test_adding_comes_first() -> None:
    """While a partition moves it has the wanted replicas first and then those of before, the same
    leader and ISR, and a leader epoch more.
    """
    moving = reassignment.reassign(LED, (3, 1), ALL)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((3, 1, 2), (3,), (2,))
    assert (moving.leader, moving.isr, moving.leader_epoch, moving.partition_epoch) == (1, (1, 2), 5, 8)
    assert reassignment.complete(moving, ALL) is None


def test_arrival() -> None:
    """Once the wanted replicas are in sync the others are forgotten. The leader stays if it is
    wanted; the leader epoch grows for the arrival and for each replica that leaves the ISR.
    """
    moving = reassignment.reassign(LED, (3, 1), ALL)
    arrived = reassignment.complete(replace(moving, isr=(1, 2, 3)), ALL)
    assert arrived is not None
    assert (arrived.replicas, arrived.is_moving, arrived.leader, arrived.isr) == ((3, 1), False, 1, (1, 3))
    assert (arrived.leader_epoch, arrived.partition_epoch) == (7, 9)


def test_the_leader_goes() -> None:
    """If the leader is not wanted, the first wanted replica that is online leads."""
    moving = replace(reassignment.reassign(LED, (3, 4), ALL), isr=(1, 2, 3, 4))
    arrived = reassignment.complete(moving, ALL - {3})
    assert arrived is not None
    assert (arrived.leader, arrived.isr) == (4, (3, 4))
    assert reassignment.complete(moving, frozenset({1, 2})) is None


def test_only_the_order_changes() -> None:
    """Another order of the same replicas is there at once, whether or not all are in sync."""
    arrived = reassignment.reassign(replace(LED, isr=(1,)), (2, 1), ALL)
    assert (arrived.replicas, arrived.is_moving, arrived.leader, arrived.isr) == ((2, 1), False, 1, (1,))
    assert (arrived.leader_epoch, arrived.partition_epoch) == (5, 8)


def test_nobody_can_lead() -> None:
    """The order of the replicas of a partition without a leader changes without a new state."""
    led = replace(LED, leader=NO_LEADER, isr=(1,))
    assert reassignment.reassign(led, (2, 1), frozenset({2})) == replace(led, replicas=(2, 1))


def test_replacing_one() -> None:
    """A reassignment under way is replaced from where it began, and replicas that it has added and
    the new one does not want go at once.
    """
    moving = replace(reassignment.reassign(LED, (3, 4), ALL), isr=(1, 2, 3))
    now = reassignment.reassign(moving, (4, 5), ALL)
    assert (now.replicas, now.adding_replicas, now.removing_replicas) == ((4, 5, 1, 2), (4, 5), (1, 2))
    assert (now.isr, now.leader_epoch, now.partition_epoch) == ((1, 2), 7, 9)


def test_records_are_kept() -> None:
    """A reassignment whose adding replicas alone are in sync cannot be cancelled: they go."""
    moving = replace(reassignment.reassign(LED, (3,), ALL), isr=(3,), leader=3)
    assert not reassignment.keeps_records(moving, reassignment.origin(moving))
    assert reassignment.keeps_records(moving, (3, 4))


@given(before=replicas, wanted=replicas, other=replicas, live=lives, steps=st.lists(lives, max_size=4))
def test_any_order_of_events(
    before: tuple[int, ...],
    wanted: tuple[int, ...],
    other: tuple[int, ...],
    live: frozenset[int],
    steps: list[frozenset[int]],
) -> None:
    """Whatever brokers do while a partition moves, and while its move is replaced: what is in sync
    is a replica, one always is, the leader is one of them, and no epoch falls. Once all wanted
    replicas live, the partition arrives.
    """
    partition = Partition(before, before[0], 0, before, partition_epoch=0)
    goal = wanted
    for turn, brokers in enumerate([live, *steps]):
        if turn in (0, 2):
            goal = wanted if turn == 0 else other
            if not reassignment.keeps_records(partition, goal):
                return
            partition = _checked(partition, reassignment.reassign(partition, goal, brokers))
        partition = _checked(partition, elect_leader(partition, brokers))
        partition = _checked(partition, _grown(partition, brokers))
        partition = _checked(partition, reassignment.complete(partition, brokers))
    partition = _checked(partition, elect_leader(partition, ALL))
    partition = _checked(partition, _grown(partition, ALL))
    partition = _checked(partition, reassignment.complete(partition, ALL))
    assert partition.replicas == goal
    assert not partition.is_moving


def _grown(partition: Partition, live: frozenset[int]) -> Partition | None:
    """The leader brings all replicas that live into the ISR (AlterPartition)."""
    if partition.leader not in live:
        return None
    missing = tuple(each for each in partition.replicas if each in live and each not in partition.isr)
    return replace(partition, isr=partition.isr + missing, partition_epoch=partition.partition_epoch + 1)


def _checked(before: Partition, after: Partition | None) -> Partition:
    if after is None:
        return before
    assert after.isr and set(after.isr) <= set(after.replicas)
    assert after.leader == NO_LEADER or after.leader in after.isr
    assert after.leader_epoch >= before.leader_epoch
    assert after.partition_epoch - before.partition_epoch in (0, 1)
    assert set(reassignment.target(after)) | set(reassignment.origin(after)) == set(after.replicas)
    return after
