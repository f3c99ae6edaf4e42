"""History as it would have been, case by case: what is denied does not happen, what is allowed
does, and what follows from that.
"""

from pathlib import Path
from typing import Any

import msgspec

from minicontroller.audit.event import Decision, Effect, EntityChange, NamedState
from minicontroller.audit.replay import NO_ID
from minicontroller.pipeline.backtest.counterfactual import Counterfactual
from minicontroller.pipeline.backtest.recorded import RecordedTimeline
from minicontroller.pipeline.backtest.replaying import Window
from minicontroller.pipeline.backtest.timelines import NotApplicable
from tests.audit.logs import a_state
from tests.pipeline.backtest.asking import at_most, in_python, in_rules, names, protecting, told
from tests.pipeline.backtest.by_words import FAILED, History, denied
from tests.pipeline.backtest.slicing import backtested, otherwise


def test_what_follows_a_denied_creation_is_moot(tmp_path: Path) -> None:
    """Nobody alters, enlarges or deletes a topic that would not be there: such requests are moot,
    and its name is free for the next one.
    """
    history = History().create("bad").adjust("bad", {"retention.ms": "5"}).grow("bad", 3).delete("bad").remove("bad")
    history.create("good").adjust("good", {"retention.ms": "5"})
    differences, timeline = otherwise(history.events, names(tmp_path, "good"))
    assert told(differences) == [("newly-denied", "bad"), *[("moot", "bad")] * 3]
    assert differences[1].candidate.message == "There would be no topic bad."
    assert list(timeline.parted()) == []
    assert dict(timeline.topics) == history.topics


def test_what_would_not_be_there_is_told(tmp_path: Path) -> None:
    """At the end it is known which topics would be missing, and the others are as they are."""
    history = History().create("bad").create("good").alter("good", {"retention.ms": "1"})
    _, timeline = otherwise(history.events, names(tmp_path, "good"))
    assert list(timeline.parted()) == [("bad", "missing")]
    assert dict(timeline.topics) == {"good": history.topics["good"]}


def test_a_denied_deletion_leaves_the_topic(tmp_path: Path) -> None:
    """Who creates it again is told that it is there; its removal does not happen; and it goes on as
    it was.
    """
    history = (
        History()
        .create("kept", 2)
        .delete("kept")
        .remove("kept")
        .create("kept", 5)
        .adjust("kept", {"retention.ms": "7"})
    )
    candidate = in_rules(tmp_path, "[[rule]]\nname = 'keep'\noperations = ['delete']\ncondition = 'false'\n")
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences) == [("newly-denied", "kept"), ("moot", "kept")]
    assert timeline.topics["kept"].configs == {"retention.ms": "7"}
    assert len(timeline.topics["kept"].replicas) == 2
    assert list(timeline.parted()) == [("kept", "otherwise")]


def test_a_newly_allowed_creation_takes_place(tmp_path: Path) -> None:
    """It is carried out as it was asked for; its maker, who asks again with fewer partitions, meets
    it.
    """
    history = History().create("large", 9, policy=denied("too large")).create("large", 2)
    differences, timeline = otherwise(history.events, at_most(tmp_path, 9))
    assert told(differences) == [("newly-allowed", "large"), ("moot", "large")]
    assert len(timeline.topics["large"].replicas) == 9
    assert timeline.topics["large"].topic_id == NO_ID


def test_a_newly_allowed_deletion_is_complete_at_once(tmp_path: Path) -> None:
    """No removal will ever be recorded for it, so the topic is gone, and later requests about it
    are moot.
    """
    history = History().create("old").delete("old", policy=denied("never")).grow("old", 4)
    differences, timeline = otherwise(history.events, at_most(tmp_path, 99))
    assert told(differences) == [("newly-allowed", "old"), ("moot", "old")]
    assert dict(timeline.topics) == {}


def test_partitions_are_counted_from_where_the_topic_would_be(tmp_path: Path) -> None:
    """A topic that did not grow is asked to grow from what it has; one that would be larger already
    cannot.
    """
    history = History().create("t", 2).grow("t", 6).grow("t", 8)
    candidate = in_python(
        tmp_path,
        """
        def validate_alter_topic(self, request, cluster):
            before, after = cluster.topic_state(request.topic).num_partitions, request.requested_state.num_partitions
            if after == 6:
                raise PolicyViolation(f"{before} to {after}")
            if after > 3 * before:
                raise PolicyViolation(f"{before} to {after}")
        """,
    )
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences, lambda each: each.candidate.message) == [
        ("newly-denied", "t", "2 to 6"),
        ("newly-denied", "t", "2 to 8"),
    ]
    assert differences[1].before is not None and len(differences[1].before.replicas) == 2
    larger = History().create("t", 2).grow("t", 6, policy=denied("no")).grow("t", 4)
    differences, timeline = otherwise(larger.events, at_most(tmp_path, 99))
    assert told(differences, lambda each: each.candidate.message) == [
        ("newly-allowed", "t", None),
        ("moot", "t", "t would have 6 partitions already."),
    ]
    assert len(timeline.topics["t"].replicas) == 6


def test_configs_are_set_where_the_topic_would_be(tmp_path: Path) -> None:
    """An incremental change touches the configs it names and leaves those that would be there; a
    full one replaces them all.
    """
    candidate = in_rules(
        tmp_path,
        "[[rule]]\nname = 'no seven'\noperations = ['alter']\nmatch_conditions = ['\"a\" in after.configs']\n"
        'condition = \'after.configs["a"] != "7"\'\n',
    )
    history = (
        History().create("t", configs={"a": "1"}).adjust("t", {"a": "7", "b": "2"}).adjust("t", {"c": "3", "b": None})
    )
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences) == [("newly-denied", "t")]
    assert timeline.topics["t"].configs == {"a": "1", "c": "3"}
    history.alter("t", {"d": "4"})
    assert otherwise(history.events, candidate)[1].topics["t"].configs == {"d": "4"}


def test_a_quota_counts_what_would_be_there(tmp_path: Path) -> None:
    """The third topic is denied, and so is the fourth; after a deletion that happened in both
    timelines there is room again.
    """
    history = (
        History().create("a.1").create("a.2").create("a.3").create("a.4").delete("a.1").remove("a.1").create("a.5")
    )
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 2\n")
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences) == [("newly-denied", "a.3"), ("newly-denied", "a.4")]
    assert sorted(timeline.topics) == ["a.2", "a.5"]


def test_what_was_refused_before_the_policy_had_its_turn(tmp_path: Path) -> None:
    """A creation that was refused because its topic was there would have been asked about, but with
    what, the log does not tell.
    """
    history = (
        History().create("bad").refuse("bad", "TOPIC_ALREADY_EXISTS").refuse("other", "INVALID_REPLICATION_FACTOR")
    )
    differences, _ = otherwise(history.events, names(tmp_path, "good"))
    assert told(differences) == [("newly-denied", "bad"), ("moot", "bad")]
    assert "does not have the requested change" in (differences[1].candidate.message or "")


def test_elements_of_a_validated_batch_see_each_other(tmp_path: Path) -> None:
    """What only is validated is not there afterwards, but later elements of its request count it,
    as far as the candidate let it pass.
    """
    history = History().create("a.0")
    for element in range(3):
        history.create(f"a.{element + 1}", validate_only=True, element=element, elements=3)
    history.create("a.9")
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 3\n")
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences) == [("newly-denied", "a.3")]
    assert sorted(timeline.topics) == ["a.0", "a.9"]


def test_a_validated_batch_in_parts_goes_on_after_others(tmp_path: Path) -> None:
    """A request that was decided in parts has its own validated elements, with what others made in
    between, as they are recorded and as they would be.
    """
    history = History().create("a.0").create("a.1", validate_only=True, elements=4, request=7)
    history.create("a.5").create("a.6", validate_only=True, elements=2, request=8)
    history.create("a.2", validate_only=True, element=1, elements=4, request=7)
    history.create("a.7", validate_only=True, element=1, elements=2, request=8)
    history.create(
        "a.5", validate_only=True, element=2, elements=4, request=7, policy=None, error_code=36, asked_ms=None
    )
    history.create("a.3", validate_only=True, element=3, elements=4, request=7).create("a.4")
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 3\n")
    for timeline in (None, Counterfactual()):
        differences, _ = backtested(history.events, candidate, timeline)
        assert [each.topic for each in differences] == ["a.2", "a.7", "a.3"]


def test_what_others_write_happens_in_both_worlds(tmp_path: Path) -> None:
    """A topic of others comes and goes whatever the policy says; what would not be there, they
    cannot change.
    """
    candidate = names(tmp_path, "good")
    history = History().create("bad").observe("bad", a_state(7)).observe("theirs", a_state(2))
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences) == [("newly-denied", "bad")]
    assert dict(timeline.topics) == {"theirs": a_state(2)}
    history.observe("theirs", None)
    assert not otherwise(history.events, candidate)[1].topics


def test_a_snapshot_changes_what_others_changed_and_nothing_else(tmp_path: Path) -> None:
    """With a new controller the other timeline goes on, and takes over what changed while
    none looked.
    """
    history = History().create("bad").create("good").become("new", a_state(3)).elect().create("good.2")
    differences, timeline = otherwise(history.events, names(tmp_path, r"good.*"))
    assert told(differences) == [("newly-denied", "bad")]
    assert sorted(timeline.topics) == ["good", "good.2", "new"]


def test_a_change_that_failed_fails_there_as_well(tmp_path: Path) -> None:
    """What the policy allowed and the store refused is no change, whoever allows it."""
    history = History().create("t", effect=Effect.NONE, error_code=7, error="REQUEST_TIMED_OUT").create("t")
    differences, timeline = otherwise(history.events, at_most(tmp_path, 9))
    assert differences == []
    assert dict(timeline.topics) == history.topics


def test_what_was_assumed_is_assumed_of_topics_that_did_not_part(tmp_path: Path) -> None:
    """A policy saw a change on its way: the candidate sees it, too, unless the topic is otherwise
    there.
    """
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 1\n")
    ghost = (NamedState(topic="a.ghost", state=a_state()),)
    differences, _ = otherwise(History().create("a.1", assumed=ghost).events, candidate)
    assert told(differences) == [("newly-denied", "a.1")]


def test_a_protected_topic_stays_whatever_is_asked(tmp_path: Path) -> None:
    """Everything that is denied leaves no trace, however often it is asked for."""
    history = History().create("p").adjust("p", {"a": "1"}).adjust("p", {"a": "2"}).grow("p", 2).delete("p").remove("p")
    differences, timeline = otherwise(history.events, protecting(tmp_path, "p"))
    assert told(differences) == [("newly-denied", "p")] * 4
    assert timeline.topics["p"].configs == {}


def test_a_question_that_cannot_be_asked_is_no_verdict(tmp_path: Path) -> None:
    """A moot request is not put to the candidate at all."""
    history = History().create("bad").grow("bad", 3)
    candidate = in_python(
        tmp_path,
        """
        def validate_create_topic(self, request, cluster):
            raise PolicyViolation("no")

        def validate_alter_topic(self, request, cluster):
            raise AssertionError("nobody asks this")
        """,
    )
    differences, _ = otherwise(history.events, candidate)
    assert told(differences) == [("newly-denied", "bad"), ("moot", "bad")]
    assert NotApplicable("no-topic", "") != NotApplicable("topic-exists", "")


def test_a_reassignment_follows_the_candidate(tmp_path: Path) -> None:
    """What is denied does not move, though the log says that it did; what is allowed has its new
    replicas at once.
    """
    text = "[[replication]]\nmin = {}\noperations = 'reassign'\n"
    history = History().create("t", 2).reassign("t", {1: (2, 3)}).settle("t", {1: (2, 3)})
    differences, timeline = otherwise(history.events, in_rules(tmp_path, text.format(3)))
    assert told(differences) == [("newly-denied", "t")]
    assert timeline.topics["t"].replicas == ((1,), (1,))
    refused = History().create("t", 2).reassign("t", {1: (2, 3)}, policy=denied("no")).grow("t", 3)
    differences, timeline = otherwise(refused.events, in_rules(tmp_path, text.format(2)))
    assert told(differences) == [("newly-allowed", "t")]
    assert timeline.topics["t"].replicas == ((1,), (2, 3), (1,))


def test_a_deletion_of_records_leaves_the_topic(tmp_path: Path) -> None:
    """It is judged and changes no topic; of partitions that would not be there it is moot."""
    history = History().create("t", 2).grow("t", 4).delete_records("t", {3: -1}).delete_records("t", {0: 5})
    candidate = in_rules(
        tmp_path,
        "[[partitions]]\nmax = 2\n[[protected_topics]]\ntopics = 't'\noperations = 'delete_records'\n",
    )
    differences, timeline = otherwise(history.events, candidate)
    assert told(differences, lambda each: each.candidate.message) == [
        ("newly-denied", "t", "4 partitions are more than 2."),
        ("moot", "t", "t would have only 2 partitions."),
        ("newly-denied", "t", "t is protected: User:alice may not delete records of it."),
    ]
    assert not timeline.topics["t"].marked_for_deletion


def test_what_was_denied_and_not_enforced_took_place(tmp_path: Path) -> None:
    """Where a gateway only observed, the record tells what became of a request: a topic that is
    there on both sides is the same one, and its removal follows its deletion.
    """
    observed: dict[str, Any] = {"policy": denied("no"), "enforced": False}
    history = History().create("t", **observed).create("u", **observed).create("v", **observed)
    history.delete("u", **observed).remove("u").adjust("v", {"a": "1"})
    history.create("w", **{**observed, **FAILED}).create("w", 2)
    for window in (Window(), Window(since_ms=history.events[-3].time_ms)):
        differences, tally = backtested(history.events, at_most(tmp_path, 9), Counterfactual(), window=window)
        assert (told(differences), tally.by("not-asked")) == ([], {"INVALID_CONFIG": 1})
        assert not tally.by("parted")
    differences, timeline = otherwise(history.events, names(tmp_path, "v"))
    assert told(differences)[-1] == ("newly-denied", "w")
    assert list(timeline.parted()) == [("t", "missing"), ("w", "missing")]


def test_what_kafka_would_have_refused_first_does_not_happen(tmp_path: Path) -> None:
    """A gateway asks its policy before the cluster, and knows some of the cluster's own checks."""
    exists: dict[str, Any] = {"policy": denied("no"), "error": "TOPIC_ALREADY_EXISTS", "error_code": 36}
    history = History().create("t", 2).create("t", 5, **exists)
    differences, timeline = otherwise(history.events, at_most(tmp_path, 9))
    assert told(differences) == [("newly-allowed", "t")]
    assert dict(timeline.topics) == history.topics


def test_outside_of_the_time_what_was_refused_stays_refused(tmp_path: Path) -> None:
    """Only requests of the time that is asked for are put to the candidate; after them, what was
    asked of a topic that it changed is done or refused as it was in the record.
    """
    history = (
        History()
        .create("t")
        .adjust("t", {"a": "1"})
        .adjust("t", {"b": "1"})
        .adjust("t", {"c": "1"}, policy=denied("no"))
    )
    window = Window(until_ms=history.events[-2].time_ms)
    timeline = Counterfactual()
    text = "[[rule]]\nname = 'no a'\noperations = ['alter']\ncondition = '!(\"a\" in after.configs)'\n"
    differences, _ = backtested(history.events, in_rules(tmp_path, text), timeline, window=window)
    assert told(differences) == [("newly-denied", "t")]
    assert timeline.topics["t"].configs == {"b": "1"}


def test_after_a_loss_a_topic_is_as_its_event_says(tmp_path: Path) -> None:
    """It is not compared with what was last known of it, which is older."""
    history = History().create("t")
    history.drop(1).become("t", None).create("t", 3)
    _, timeline = otherwise(history.events, at_most(tmp_path, 9))
    assert list(timeline.parted()) == []


def test_what_no_policy_was_asked_about_is_not_asked(tmp_path: Path) -> None:
    """A change of a broker that was refused before the policy had its turn is counted as such."""
    entity = EntityChange(before={}, requested={"a": "1"}, after={})
    refused: dict[str, Any] = {"asked_ms": None, "policy": None, "error": "INVALID_CONFIG", "error_code": 40}
    history = History().decide_entity("broker", "1", entity, {"a": "1"}, **refused)
    candidate = in_rules(tmp_path, "[[rule]]\nname = 'no'\noperations = ['alter_broker']\ncondition = 'false'\n")
    for timeline in (Counterfactual(), RecordedTimeline()):
        differences, tally = backtested(history.events, candidate, timeline)
        assert differences == []
        assert tally.by("not-asked") == {"INVALID_CONFIG": 1}


def test_a_validated_deletion_of_records_changes_nothing(tmp_path: Path) -> None:
    """Later elements of its request see the topic as it is then."""
    history = History().create("a").delete_records("a", {0: 5}, validate_only=True, elements=2, request=7)
    history.grow("a", 3, request=8).create("b", validate_only=True, element=1, elements=2, request=7)
    candidate = in_rules(tmp_path, "[[quota]]\nowned = '*'\nmax_partitions = 3\n")
    assert told(otherwise(history.events, candidate)[0]) == [("newly-denied", "b")]


def test_a_change_of_unknown_effect_does_not_happen_if_it_is_denied(tmp_path: Path) -> None:
    """That a snapshot or an event shows it later is no change by others; what follows may be."""
    doubtful: dict[str, Any] = {"effect": Effect.UNKNOWN, "error": "NONE", "error_code": 0}
    history = History().create("bad", **doubtful).become("bad", a_state(1)).create("good", **doubtful)
    history.become("good", a_state(2)).elect().create("late", **doubtful).observe("late", a_state(1))
    differences, timeline = otherwise(history.events, names(tmp_path, "good"))
    assert told(differences) == [("newly-denied", "bad"), ("newly-denied", "late")]
    assert dict(timeline.topics) == {"good": a_state(2)}
    history.observe("late", None).observe("late", a_state(3))
    assert sorted(otherwise(history.events, names(tmp_path, "good"))[1].topics) == ["good", "late"]


def test_an_operation_of_a_later_version_is_told(tmp_path: Path) -> None:
    """It is not put to the candidate as if it were another one."""
    *events, last = History().create("t").grow("t", 2).events
    assert isinstance(last, Decision)
    events.append(msgspec.structs.replace(last, operation="shrink_topic"))
    for timeline in (Counterfactual(), RecordedTimeline()):
        differences, tally = backtested(events, names(tmp_path, "t"), timeline)
        assert differences == []
        assert tally.by("unknown-operation") == {"shrink_topic": 1}
        assert tally.of("asked") == 1
