"""Leaders and ISRs, as pure functions."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.entities import NO_LEADER, Partition
from minicontroller.cluster.leadership import RECOVERING, controlled_shutdown, elect_leader

LED = Partition(replicas=(1, 2, 3), leader=1, leader_epoch=4, isr=(1, 2, 3), partition_epoch=7)

brokers = st.lists(st.integers(1, 6), unique=True, min_size=1, max_size=5)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    replicas = draw(brokers)
    isr = draw(st.lists(st.sampled_from(replicas), unique=True, min_size=1))
    leader = draw(st.sampled_from([*isr, NO_LEADER]))
    return Partition(replicas=tuple(replicas), leader=leader, isr=tuple(isr), leader_epoch=3, partition_epoch=3)


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    """The first live replica in the order of the assignment leads, all live ones are in sync, both
    epochs are 0.
    """
    elected = elect_leader(Partition(replicas=(3, 1, 2)), {1, 2})
    assert elected is not None
    assert (elected.leader, elected.isr, elected.leader_epoch, elected.partition_epoch) == (1, (1, 2), 0, 0)


def test_a_new_partition_without_a_live_replica_stays_without_a_state() -> None:
    """No state is written for a new partition until one of its brokers is live."""
    assert elect_leader(Partition(replicas=(3,)), {1, 2}) is None


def test_the_next_in_sync_replica_takes_over() -> None:
    """When the leader dies the first live in-sync replica leads, and the leader epoch
    rises by one.
    """
    elected = elect_leader(LED, {2, 3})
    assert elected is not None
    assert (elected.leader, elected.isr, elected.leader_epoch, elected.partition_epoch) == (2, (2, 3), 5, 8)


def test_a_dead_follower_leaves_the_isr() -> None:
    """The leader stays, the epoch rises all the same: the controller wrote the state."""
    elected = elect_leader(LED, {1, 3})
    assert elected is not None
    assert (elected.leader, elected.isr, elected.leader_epoch) == (1, (1, 3), 5)


def test_the_last_in_sync_replica_is_never_forgotten() -> None:
    """Without a live in-sync replica there is no leader, and the ISR keeps its last member."""
    elected = elect_leader(msgspec.structs.replace(LED, isr=(1, 2)), {3})
    assert elected is not None
    assert (elected.leader, elected.isr) == (NO_LEADER, (2,))
    assert elect_leader(elected, {3}) is None


def test_an_unclean_election_only_where_it_is_allowed() -> None:
    """A live replica out of sync leads only if unclean election is on, and is marked
    as recovering.
    """
    lost = msgspec.structs.replace(LED, isr=(1,))
    elected = elect_leader(lost, {3}, unclean=True)
    assert elected is not None
    assert (elected.leader, elected.isr, elected.leader_recovery_state) == (3, (3,), RECOVERING)


def test_a_lost_replica_is_as_good_as_dead() -> None:
    """On a broker that lives: it neither leads nor is in sync, unclean or not, and a broker that
    shuts down does not hand over to it.
    """
    lost = msgspec.structs.replace(LED, lost_replicas=(1, 2))
    elected = elect_leader(lost, {1, 2, 3})
    assert elected is not None
    assert (elected.leader, elected.isr, elected.offline(frozenset({1, 2, 3}))) == (3, (3,), (1, 2))
    assert controlled_shutdown(lost, 3, {1, 2}) is None
    only = elect_leader(msgspec.structs.replace(lost, isr=(1,)), {1, 2}, unclean=True)
    assert only is not None
    assert (only.leader, only.isr) == (NO_LEADER, (1,))


@given(partitions(), st.sets(st.integers(1, 6)), st.booleans())
def test_settling_holds_its_invariants(partition: Partition, live: set[int], unclean: bool) -> None:
    """A leader is live and in sync, the ISR is never empty and never grows, and settling twice is
    settling once.
    """
    elected = elect_leader(partition, live, unclean=unclean) or partition
    assert elected.isr
    if elected.leader != NO_LEADER:
        assert elected.leader in live
        assert elected.leader in elected.isr
    if not unclean:
        assert set(elected.isr) <= set(partition.isr)
    assert elect_leader(elected, live, unclean=unclean) is None


def test_a_broker_that_shuts_down_hands_its_leadership_over() -> None:
    """The next live in-sync replica leads and the broker leaves the ISR."""
    released = controlled_shutdown(LED, 1, {2, 3})
    assert released is not None
    assert (released.leader, released.isr, released.leader_epoch) == (2, (2, 3), 5)


def test_a_broker_that_shuts_down_keeps_what_nobody_can_take() -> None:
    """The only in-sync replica, and the only replica, stay with a broker that shuts down."""
    assert controlled_shutdown(msgspec.structs.replace(LED, isr=(1,)), 1, {2, 3}) is None
    assert (
        controlled_shutdown(Partition(replicas=(1,), leader=1, isr=(1,), leader_epoch=0, partition_epoch=0), 1, {2})
        is None
    )


@given(partitions(), st.sets(st.integers(1, 6)))
def test_release_never_leaves_a_partition_worse_than_led(partition: Partition, live: set[int]) -> None:
    """After a controlled shutdown the leader is live, in sync and another broker."""
    for broker in partition.replicas:
        released = controlled_shutdown(partition, broker, live - {broker})
        if released is not None:
            assert broker not in released.isr
            assert released.leader in released.isr
