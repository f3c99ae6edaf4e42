"""Snapshots: derived in one place, and frozen all the way down."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.policies import DeleteRecordsRequest, RequestedTopicState, TopicState
from minicontroller.policies.states import ClusterSnapshot, ReplicaAssignments, requested_state, topic_state
from tests.policies.asking import alter, create, delete_records

ROWS = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=4).map(tuple), max_size=5).map(tuple)


@given(ROWS)
def test_counts_follow_from_the_rows(rows: tuple[tuple[int, ...], ...]) -> None:
    """Partitions and replication factor (of partition 0) cannot contradict the assignments
    (K201-2).
    """
    state = topic_state(rows)
    assert state.num_partitions == len(rows)
    assert state.replication_factor == (len(rows[0]) if rows else 0)
    assert state.replica_assignments == dict(enumerate(rows))


@given(ROWS)
def test_assignments_are_a_mapping_in_the_order_of_the_partitions(rows: tuple[tuple[int, ...], ...]) -> None:
    """The lazy mapping answers everything as the dict of the same rows does."""
    lazy, eager = ReplicaAssignments(rows), dict(enumerate(rows))
    assert list(lazy.items()) == list(eager.items())
    assert len(lazy) == len(eager)
    assert repr(lazy) == repr(eager)
    assert lazy.get(len(rows)) is lazy.get(-1) is lazy.get("0") is None  # type: ignore[call-overload]
    assert (0 in lazy) == bool(rows)


def test_a_state_made_of_dicts_does_not_change_with_them() -> None:
    """Who built a state from dicts and lists may go on using them."""
    rows, configs = {0: [1, 2]}, {"retention.ms": "1"}
    state = TopicState(num_partitions=1, replication_factor=2, replica_assignments=rows, configs=configs)
    rows[0].append(3)
    rows[1] = [1]
    configs.clear()
    assert state.replica_assignments == {0: (1, 2)}
    assert state.configs == {"retention.ms": "1"}


def write(target: str) -> Callable[[], None]:
    state = RequestedTopicState(num_partitions=1, replication_factor=1, replica_assignments={0: [1]}, configs={})
    scope = {
        "state": state,
        "built": requested_state([[1]], {}),
        "create": create(),
        "alter": alter(operations={}),
        "records": delete_records(),
        "cluster": ClusterSnapshot({"orders": state}),
    }
    return lambda: exec(target, scope)


@pytest.mark.parametrize(
    "statement",
    [
        "state.num_partitions = 9",
        "state.configs['a'] = 'b'",
        "state.replica_assignments[0] = (9,)",
        "state.replica_assignments[0].append(9)",
        "state.configs.clear()",
        "built.replica_assignments[0] = (9,)",
        "built.replica_assignments[0][0] = 9",
        "built.configs['a'] = 'b'",
        "create.requested_state = state",
        "create.topic = 'other'",
        "alter.config_operations['a'] = 'b'",
        "records.delete_records_offsets[0] = 9",
        "cluster.cluster_size = 9",
    ],
)
def test_nothing_that_a_policy_sees_can_be_written(statement: str) -> None:
    """A policy cannot change what it judges, at any depth."""
    with pytest.raises((AttributeError, TypeError)):
        write(statement)()


def test_snapshot_filters_as_the_kip_says() -> None:
    """Internal topics and those marked for deletion are listed on demand only (K201-3)."""
    snapshot = ClusterSnapshot(
        {
            "orders": topic_state([[1]]),
            "gone": topic_state([[1]], marked_for_deletion=True),
            "__consumer_offsets": topic_state([[1]], internal=True),
        },
        cluster_size=4,
    )
    assert snapshot.topics() == {"orders"}
    assert snapshot.topics(include_internal=True) == {"orders", "__consumer_offsets"}
    assert snapshot.topics(include_marked_for_deletion=True) == {"orders", "gone"}
    assert snapshot.cluster_size == 4
    assert snapshot.topic_state("absent") is None
    assert snapshot.topic_state("orders") == topic_state([[1]])


def test_offsets_are_copied() -> None:
    """The offsets of a request for record deletion are a snapshot too (K201-4)."""
    offsets = {0: 5}
    request = DeleteRecordsRequest(topic="orders", principal=None, delete_records_offsets=offsets)
    offsets[0] = 6
    assert request.delete_records_offsets == {0: 5}
