"""Where histories are cut: nowhere that the topics are not known, and never so that the parts say
anything else than the whole.
"""

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.audit.event import AuditEvent, Decision, Effect
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.backtest.candidate import Candidate
from minicontroller.pipeline.backtest.counterfactual import Counterfactual
from minicontroller.pipeline.backtest.replaying import NOWHERE, Window
from minicontroller.pipeline.backtest.slices import Bucket, Piece, Slice, good_size, planned
from minicontroller.pipeline.backtest.timelines import CandidateQuestion
from minicontroller.policies.interface import ClusterState
from tests.audit.logs import a_state
from tests.pipeline.backtest.asking import in_rules
from tests.pipeline.backtest.by_words import ALLOWED, BEGAN_MS, History, denied
from tests.pipeline.backtest.slicing import backtested, buckets, sliced

NAMES = ("a.1", "a.2", "b")


@pytest.fixture(name="candidate", scope="module")
def a_candidate(tmp_path_factory: pytest.TempPathFactory) -> Candidate:
    """It looks at other topics, at what was before, and at what is asked for."""
    text = "[[quota]]\nowned = 'a.*'\nmax_topics = 1\nmax_partitions = 4\n[[rule]]\nname = 'grown'\noperations = ['alter']\n"
    return in_rules(tmp_path_factory.mktemp("rules"), text + "condition = 'before.num_partitions == 1'\n")


def a_life(seed: int, steps: int = 40) -> list[AuditEvent]:
    """With all that happens to a cluster and to its log."""
    chance, history = Random(seed), History()
    for _ in range(steps):
        name, count = chance.choice(NAMES), chance.randint(1, 3)
        policy = chance.choice([ALLOWED, ALLOWED, denied("no", "r")])
        there = history.topics.get(name)
        match chance.choice(
            [
                "create",
                "create",
                "delete",
                "grow",
                "batch",
                "parts",
                "elect",
                "torn",
                "reread",
                "lose",
                "drop",
                "doubt",
                "others",
                "quiet",
            ]
        ):
            case "create" if there is None:
                history.create(name, count, policy=policy)
            case "delete" if there is not None:
                history.delete(name)
                if chance.random() < 0.7:
                    history.remove(name)
            case "grow" if there is not None:
                history.grow(name, count, policy=policy)
            case "batch":
                for element, each in enumerate(NAMES):
                    history.create(f"a.{each}", element=element, elements=3, validate_only=True)
            case "parts":
                in_parts(history, chance)
            case "elect":
                history.elect()
            case "torn":
                history.elect()
                del history.events[-2 - bool(history.topics)]  # the snapshot's begin
            case "reread":
                history.snapshot("reread")
            case "lose":
                history.lose(min(chance.randint(1, 2), len(history.events) - 2))
            case "drop":
                history.drop(count).snapshot("recovered")
            case "doubt" if there is None:
                history.create(name, effect=Effect.UNKNOWN)
            case "others":
                history.observe(name, a_state(count))
            case _:
                history.refuse(name, "TOPIC_ALREADY_EXISTS")
    return history.events


def in_parts(history: History, chance: Random) -> None:
    """A request whose elements are validated with others in between."""
    request = 10_000 + len(history.events)
    for element, each in enumerate(NAMES):
        history.create(f"a.{each}", element=element, elements=3, request=request, validate_only=True)
        if element < 2:
            history.create(f"z.{len(history.events)}", element=0, elements=1, request=request + 1 + element)


def test_there_is_no_cut_within_a_request_that_is_decided_in_parts(candidate: Candidate) -> None:
    """A later element sees what the earlier ones would have made, even with others in between."""
    history = History()
    for number in range(12):
        history.create(f"b.{number}")
    first = len(history.events) + 1
    for element, each in enumerate(NAMES):
        history.create(f"a.{each}", element=element, elements=3, request=77, validate_only=True).create(f"z.{each}")
    whole = backtested(history.events, candidate)
    for bucket_events in range(1, 6):
        parts, slices = sliced(history.events, candidate, 1, bucket_events=bucket_events)
        assert slices > 1
        assert parts[0] == whole[0]
    plan = planned(list(buckets(history.events, 1)), slice_events=1)
    cuts = {each.after[1] + 1 for each in plan}
    assert cuts & set(range(first - 1, first + 6)) == {first - 1, first + 5}


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 30), st.booleans())
def test_the_parts_say_what_the_whole_says(
    candidate: Candidate, seed: int, bucket_events: int, slice_events: int, is_windowed: bool
) -> None:
    """Whatever happened, whatever was lost, however it is cut and whatever time is asked for: the
    same differences, counts and notes.
    """
    events = a_life(seed)
    times = [event.time_ms for event in events]
    window = Window(times[len(times) // 3], times[len(times) * 2 // 3]) if is_windowed else Window()
    whole = backtested(events, candidate, window=window)
    parts, _ = sliced(events, candidate, slice_events, window=window, bucket_events=bucket_events)
    assert parts[0] == whole[0]
    assert dict(parts[1].counts) == dict(whole[1].counts)
    assert parts[1].notes == whole[1].notes


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 60), st.integers(0, 60))
def test_history_as_it_would_have_been_is_one_slice(
    candidate: Candidate, seed: int, bucket_events: int, since: int, until: int
) -> None:
    """However wrong the clocks are: it begins before all events of the time that is asked for, and
    ends with the last of them.
    """
    chance = Random(seed)
    wrong = {epoch: chance.choice([0, 0, -20_000, 20_000]) for epoch in range(1, 60)}
    events = [msgspec.structs.replace(each, time_ms=each.time_ms + wrong[each.epoch]) for each in a_life(seed)]
    window = Window(BEGAN_MS + 1000 * since, BEGAN_MS + 1000 * until)
    wanted = [number for number, event in enumerate(events, 1) if window.has(event.time_ms)]
    whole = backtested(events[: max(wanted, default=0)], candidate, Counterfactual(), window=window)
    parts, slices = sliced(events, candidate, None, window=window, bucket_events=bucket_events)
    assert slices == bool(wanted)
    assert parts[0] == whole[0]
    assert dict(parts[1].counts) == dict(whole[1].counts)
    assert parts[1].notes == whole[1].notes


@given(st.integers(0, 10_000))
def test_who_decides_as_the_policy_did_changes_nothing(seed: int) -> None:
    """Whatever happened and was lost: history as it would have been is then the recorded one, in
    its topics and in what policies are asked.
    """
    recorded, otherwise, last = Replay(), Counterfactual(), NOWHERE
    for event in a_life(seed):
        if event.sequence != (last[1] + 1 if event.epoch == last[0] else 1):
            recorded.lost()
            otherwise.lost()
        last = event.epoch, event.sequence
        if isinstance(event, Decision):
            then, now = recorded.question(event), otherwise.question(event)
            assert (then is None) == (now is None)
            if then is not None:
                assert isinstance(now, CandidateQuestion)
                assert (now.request, shown(now.cluster)) == (then[0], shown(then[1]))
                otherwise.decided(event, allowed=event.policy is None or event.policy.decision == "allowed")
        assert list(otherwise.apply(event)) == list(recorded.apply(event))
        assert list(otherwise.parted()) == []


def shown(cluster: ClusterState) -> object:
    """All that a policy can see of a cluster."""
    names = cluster.topics(include_internal=True, include_marked_for_deletion=True)
    return cluster.cluster_size, cluster.topics(), {name: cluster.topic_state(name) for name in names}


def test_a_snapshot_whose_begin_is_lost_tells_nothing(candidate: Candidate) -> None:
    """The topics are not known after it, though nothing is missing from its own bucket."""
    history = History().create("a.1").elect().create("a.2").create("a.3").create("a.4")
    torn = next(event for event in history.events if event.epoch == 2)
    history.events.remove(torn)
    for bucket_events in (1, 2, 3):
        plan = planned(list(buckets(history.events, bucket_events)), slice_events=1)
        assert [each.after for each in plan if each.after[0] == 2] == []
        parts, _ = sliced(history.events, candidate, 1, bucket_events=bucket_events)
        assert parts[0] == backtested(history.events, candidate)[0]


def test_a_history_without_loss_is_cut_often(candidate: Candidate) -> None:
    """A slice has about as many events as are wanted."""
    history = History()
    for number in range(60):
        history.create(f"t.{number}")
    _, slices = sliced(history.events, candidate, 10, bucket_events=5)
    assert slices == 7


def test_nothing_is_cut_before_the_first_snapshot_and_after_a_loss(candidate: Candidate) -> None:
    """All is one slice until the topics are known again."""
    history = History()
    for number in range(10):
        history.create(f"t.{number}")
    history.lose().create("t.x")
    for number in range(10, 20):
        history.create(f"t.{number}")
    history.elect().create("z.1").create("z.2")
    plan = planned(list(buckets(history.events, 1)), slice_events=1)
    places = [each.after for each in plan]
    assert places[0] == NOWHERE
    assert [place for place in places if place[0] == 1] == [(1, sequence) for sequence in range(2, 11)]
    assert places[-1] == (2, 4)


def a_bucket(number: int, cluster_id: str = "c", *, is_wanted: bool = True) -> Bucket:
    """Five events; the first ones are a snapshot."""
    first, last = number * 5 + 1, number * 5 + 5
    begin, end = (0, 0) if number else (first, last)
    first_wanted, last_wanted = (first, last) if is_wanted else (0, 0)
    return Bucket(
        cluster_id=cluster_id, epoch=1, events=5, first=first, last=last, start=first, snapshot_begin=begin, snapshot_end=end,
        first_wanted=first_wanted, last_wanted=last_wanted,
    )  # fmt: skip


def test_what_is_outside_of_the_time_is_not_replayed() -> None:
    """Only slices with events of that time are replayed, and their numbers have no gaps."""
    found = [a_bucket(number, is_wanted=number in {3, 4}) for number in range(8)]
    plan = planned(found, slice_events=1000)
    assert plan == [Slice("c", (1, 15), (Piece((1, 16), (1, 25), (), 10),))]
    assert plan[0].events == 10


def test_clusters_are_apart(candidate: Candidate) -> None:
    """No slice has events of two clusters."""
    plan = planned([a_bucket(0, "a"), a_bucket(1, "a"), a_bucket(0, "b")], slice_events=None)
    assert plan == [
        Slice("a", NOWHERE, (Piece((1, 1), (1, 10), (), 10),)),
        Slice("b", NOWHERE, (Piece((1, 1), (1, 5), (), 5),)),
    ]


def test_slices_are_of_a_size_that_keeps_all_processors_busy() -> None:
    """Few events are not cut finely, and of many each processor has several slices."""

    def size(events: int) -> int:
        return good_size([Bucket(cluster_id="a", epoch=1, events=events, first=1, last=events)], cores=2)

    assert (size(100), size(400_000), size(10_000_000)) == (5_000, 50_000, 100_000)


def test_the_candidate_of_these_tests_sees_a_difference(candidate: Candidate, tmp_path: Path) -> None:
    """Else they would prove nothing."""
    assert any(backtested(a_life(seed), candidate)[0] for seed in range(5))
