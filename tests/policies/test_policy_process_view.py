"""A policy in its own process sees the present cluster, and is sent only what has changed."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.policies import AdminRequest, AlterTopicRequest, TopicState
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.states import ClusterSnapshot, topic_state
from tests.policies import deeds
from tests.policies.asking import administer, alter, create, delete, delete_records, reassign
from tests.policies.in_place import InPlace
from tests.policies.in_process import process_of, said


def cancel(topic: str) -> AlterTopicRequest:
    return reassign(topic, reassignments={0: None, 2: (3,)})


def grant(topic: str) -> AdminRequest:
    return administer(name=f"Topic:LITERAL:{topic}")


states = st.builds(
    topic_state,
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["retention.ms", "cleanup.policy"]), st.sampled_from(["1", "compact"])),
    marked_for_deletion=st.booleans(),
    internal=st.booleans(),
)
changes = st.lists(st.tuples(st.sampled_from([f"t{number}" for number in range(25)]), st.none() | states), max_size=12)
questions = st.sampled_from([create, alter, delete, delete_records, reassign, cancel, grant])


@given(
    lives=st.lists(
        st.tuples(changes, questions, st.sampled_from(["", "one", "some", "names", "all", "one names", "some all"])),
        max_size=12,
    )
)
@settings(max_examples=40)
async def test_it_sees_what_there_is(
    lives: list[tuple[list[tuple[str, TopicState | None]], Callable[[str], JudgedRequest], str]],
) -> None:
    """Requests and topics are the same as for a policy that is asked in place, however the cluster
    has changed since it looked last.
    """
    here, topics = PolicyRunner(InPlace(deeds.Looking())), dict[str, TopicState]()
    async with process_of("Looking") as (there, process):
        for changed, question, how in lives:
            for name, state in changed:
                topics.pop(name, None)
                if state is not None:
                    topics[name] = state
            snapshot = ClusterSnapshot(dict(topics), 3)
            request = msgspec.structs.replace(question("t1"), client_id=how)
            assert await said(there, request, snapshot) == await said(here, request, snapshot) != ""
        assert process.restarts == 0


async def test_it_is_told_only_what_changed() -> None:
    """A policy that looks at all topics is sent each topic once, until that topic changes."""
    told: list[str] = []

    class Counted(ClusterSnapshot, frozen=True):
        def topic_state(self, topic: str) -> TopicState | None:
            told.append(topic)
            return super().topic_state(topic)

    first = {f"t{number}": topic_state([[1]]) for number in range(1000)}
    second = {**first, "t7": topic_state([[2]]), "new": topic_state([[3]])}
    del second["t8"]
    request = msgspec.structs.replace(create("t1"), client_id="all")
    async with process_of("Looking") as (runner, _):
        counts = []
        for topics in (first, first, second, second):
            await said(runner, request, Counted(topics))
            counts.append(len(told))
        assert counts == [1000, 1000, 1002, 1002]
        assert sorted(told[1000:]) == ["new", "t7"]


async def test_what_is_gone_is_forgotten() -> None:
    """Topics that came and went leave nothing behind, neither in the node nor in the policy's
    process.
    """
    here = PolicyRunner(InPlace(deeds.Looking()))
    async with process_of("Looking") as (there, process):
        for number in range(2500):
            snapshot = ClusterSnapshot({f"t{number}": topic_state([[1]])})
            request = msgspec.structs.replace(create(f"t{number}"), client_id="one")
            assert await said(there, request, snapshot) == await said(here, request, snapshot)
        child = process._child
        assert child is not None
        assert len(child._sent) <= 1002
        request = msgspec.structs.replace(create("t1"), client_id="all")
        assert await said(there, request) == await said(here, request)


async def test_a_judgement_is_over_when_the_method_returns(caplog: pytest.LogCaptureFixture) -> None:
    """A cluster object that a policy keeps raises when it is used after the judgement."""
    async with process_of("Keeping") as (runner, process):
        assert await said(runner, create()) == ""
        assert await said(runner, create()) is None
        assert "can be read only until the method returns" in caplog.text
        assert process.restarts == 0
