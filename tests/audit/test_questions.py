"""A replay shows a policy exactly what the events say at every point; compared with a plain dict
over random histories.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minicontroller.audit.event import Decision, NamedState, RecordedState, Requested, decode, encode
from minicontroller.audit.replay import Replay
from minicontroller.policies import (
    AlterTopicRequest,
    ClusterState,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
)
from minicontroller.policies.states import requested_state, topic_state
from minicontroller.policies.topic_counts import counts_of
from tests.audit.logs import a_creation, a_state, an_empty_snapshot

NAMES = ("a", "a.b", "b")
FLAGS = [(internal, marked) for internal in (False, True) for marked in (False, True)]

states = st.builds(
    a_state, st.integers(1, 3), marked_for_deletion=st.booleans(), internal=st.booleans(), created_ms=st.integers(1, 2)
)
maybe = st.none() | states
steps = st.lists(
    st.tuples(st.sampled_from(NAMES), maybe, st.booleans(), st.booleans(), st.dictionaries(st.sampled_from(NAMES), maybe, max_size=1)),
    max_size=15,
)  # fmt: skip


def as_wanted(state: RecordedState) -> Requested:
    return Requested(
        replicas=state.replicas,
        configs=state.configs,
        marked_for_deletion=state.marked_for_deletion,
        internal=state.internal,
        generated_replica_assignments=True,
    )


def shown(cluster: ClusterState) -> tuple[Any, ...]:
    names = {flags: cluster.topics(include_internal=flags[0], include_marked_for_deletion=flags[1]) for flags in FLAGS}
    counts = counts_of(cluster)
    assert counts is not None
    return {name: cluster.topic_state(name) for name in NAMES}, names, dict(counts.beginning(""))


def expected(topics: Mapping[str, RecordedState]) -> tuple[Any, ...]:
    names = {
        (internal, marked): {
            name
            for name, state in topics.items()
            if (internal or not state.internal) and (marked or not state.marked_for_deletion)
        }
        for internal, marked in FLAGS
    }
    seen = {
        name: topic_state(
            state.replicas, state.configs, marked_for_deletion=state.marked_for_deletion, internal=state.internal
        )
        for name, state in topics.items()
    }
    return (
        {name: seen.get(name) for name in NAMES},
        names,
        {name: seen[name].num_partitions for name in names[False, False]},
    )


def a_life(
    made: list[tuple[str, RecordedState | None, bool, bool, dict[str, RecordedState | None]]],
) -> list[tuple[Decision, Any]]:
    """Decisions, and the topics that the policy was shown at each of them, by the words of
    docs/audit.md.
    """
    topics: dict[str, RecordedState] = {}
    validated: dict[str, RecordedState] = {}
    life, request = [], 0
    for sequence, (name, state, validates, goes_on, assumed) in enumerate(made, start=3):
        if not goes_on:
            request, validated = request + 1, {}
        before = topics.get(name)
        event = a_creation(
            sequence, name, request=request, before=before, after=before if validates else state, validate_only=validates,
            requested=None if state is None else as_wanted(state),
            assumed=tuple(NamedState(topic=each, state=other) for each, other in assumed.items()),
        )  # fmt: skip
        if state is None:
            event = msgspec.structs.replace(event, operation="delete_topic")
        seen: dict[str, RecordedState | None] = {**topics, **validated, **assumed}
        life.append((event, expected({each: one for each, one in seen.items() if one is not None})))
        supposed = state or (before and msgspec.structs.replace(before, marked_for_deletion=True))
        if validates and supposed is not None:
            validated[name] = supposed
        elif not validates:
            topics = {each: one for each, one in {**topics, name: state}.items() if one is not None}
    return life


@settings(max_examples=200)  # the machine may be busy
@example([("a", a_state(1), True, False, {}), ("a", a_state(2), False, True, {}), ("b", None, False, True, {})])
@given(steps)
def test_what_a_policy_is_shown(
    made: list[tuple[str, RecordedState | None, bool, bool, dict[str, RecordedState | None]]],
) -> None:
    """A policy is shown what the events before, the request's validated elements and what was
    assumed give, for good.
    """
    replay = Replay()
    for event in an_empty_snapshot():
        list(replay.apply(event))
    kept = []
    for event, wanted in a_life(made):
        question = replay.question(event)
        assert question is not None
        assert shown(question[1]) == wanted
        kept.append((question[1], wanted))
        assert list(replay.apply(event)) == []
    for cluster, wanted in kept:
        assert shown(cluster) == wanted


def test_an_event_is_of_the_kind_that_it_says() -> None:
    """A request without a requested state is the deletion of a topic only if it says so, and an
    operation of a later version is nobody's question.
    """
    there, moved = a_state(2), as_wanted(a_state(2, replicas=((1,), (2,))))
    expected: list[tuple[dict[str, Any], PolicyRequest | None]] = [
        ({"operation": "delete_topic"}, DeleteTopicRequest(**ASKED, created_ms=1)),
        (
            {"operation": "delete_records", "delete_records_offsets": {0: -1, 1: 5}},
            DeleteRecordsRequest(**ASKED, delete_records_offsets={0: -1, 1: 5}),
        ),
        (
            {"operation": "alter_partition_reassignments", "reassignments": {0: None, 1: (2,)}, "requested": moved},
            AlterTopicRequest(
                **ASKED,
                requested_state=requested_state([[1], [2]], generated_replica_assignments=True),
                reassignments={0: None, 1: (2,)},
            ),
        ),
        ({"operation": "shrink_topic"}, None),
        ({"operation": "shrink_topic", "requested": moved}, None),
    ]
    for changed, wanted in expected:
        event = a_creation(3, "t", before=there, after=there, **changed)
        question = Replay({"t": there}).question(decoded(event))
        assert (question and question[0]) == wanted, changed


def decoded(event: Decision) -> Decision:
    """Return the event as it is read from its line."""
    again = decode(encode(event))
    assert isinstance(again, Decision)
    return again


ASKED: dict[str, Any] = {
    "topic": "t",
    "principal": "User:alice",
    "client_id": "c",
    "client_host": "127.0.0.1",
    "api": "CreateTopics",
    "time_ms": 3,
}
