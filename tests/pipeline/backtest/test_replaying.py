"""Recorded decisions put to a candidate, one history at a time: which differences there are, and
what is said of what the log lacks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from minicontroller.audit.event import AuditEvent, Decision, EntityChange, PolicyDecision, RuleFinding, encode
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.backtest.counterfactual import Counterfactual
from minicontroller.pipeline.backtest.lines import ASKED_ABOUT, request_of, step_of
from minicontroller.pipeline.backtest.replaying import Window
from minicontroller.pipeline.backtest.verdicts import DifferenceKind
from tests.pipeline.backtest.asking import at_most, in_python, in_rules, names, told
from tests.pipeline.backtest.by_words import BEGAN_MS, History, broken, denied
from tests.pipeline.backtest.slicing import backtested

PARTITIONS = "{} partitions are more than {}."


def too_many(wanted: int, most: int) -> Any:
    return denied(PARTITIONS.format(wanted, most), "partitions")


def test_each_kind_of_difference(tmp_path: Path) -> None:
    """Newly denied, newly allowed, the same with another message, and nothing where all is as it
    was.
    """
    history = History().create("t.1", 3).create("t.2", 9).create("t.3", 7, policy=too_many(7, 4))
    history.create("t.4", 5, policy=too_many(5, 4)).create("t.5", 6, policy=too_many(6, 5))
    differences, tally = backtested(history.events, at_most(tmp_path, 5))
    assert told(differences, lambda each: (each.rule, each.candidate.message)) == [
        ("newly-denied", "t.2", ("partitions", "9 partitions are more than 5.")),
        ("other-message", "t.3", ("partitions", "7 partitions are more than 5.")),
        ("newly-allowed", "t.4", ("partitions", None)),
    ]
    assert tally.by("label") == {"newly-allowed": 1, "newly-denied": 1, "other-message": 1, "same": 2}
    assert (tally.of("asked"), tally.of("verdicts", "violated", "violated")) == (5, 2)
    assert tally.by("principal", "newly-denied") == {"User:alice": 1}
    assert tally.by("operation", "same") == {"create_topic": 2}
    assert tally.by("day", "newly-allowed") == {str(BEGAN_MS // 86_400_000): 1}


def test_a_difference_holds_the_event_as_it_was_recorded(tmp_path: Path) -> None:
    """Request, states and outcome are in it word by word, as the line has them."""
    history = History().create("t", 9, configs={"retention.ms": "5"})
    [difference], _ = backtested(history.events, at_most(tmp_path, 5))
    assert bytes(difference.event) == encode(history.events[-1]).strip()
    assert msgspec.json.decode(msgspec.json.encode(difference))["event"]["after"]["configs"] == {"retention.ms": "5"}


def test_other_warnings_are_differences_too(tmp_path: Path) -> None:
    """A candidate that only warns is found in each request that it would have warned of."""
    rules = "[[partitions]]\nname = 'soon'\nmax = 4\naction = 'warn'\n"
    history = History().create("t.1", 3).create("t.2", 9)
    differences, tally = backtested(history.events, in_rules(tmp_path, rules))
    assert told(differences, lambda each: each.rule) == [("other-message", "t.2", "soon")]
    assert list(tally.beginning("finding")) == [(("candidate", "soon", "warn"), 1)]


def test_a_warning_of_then_is_not_what_denies_now(tmp_path: Path) -> None:
    """A class that denies what a rule only warned of is no rule's doing."""
    warned = PolicyDecision(
        decision="allowed", policy="rules", policy_hash="0", rule="", message=None, microseconds=1,
        findings=(RuleFinding(rule="soon", action="warn", message="soon", error=None),),
    )  # fmt: skip
    candidate = in_python(
        tmp_path, "def validate_create_topic(self, request, cluster):\n    raise PolicyViolation('no')"
    )
    differences, _ = backtested(History().create("t", 3, policy=warned).events, candidate)
    assert told(differences, lambda each: each.rule) == [("newly-denied", "t", "")]


def test_where_there_was_no_policy_everything_was_allowed(tmp_path: Path) -> None:
    """A log from before the first policy tells whom it would have hit."""
    history = History().create("t.1", 3, policy=None).create("t.2", 9, policy=None)
    differences, tally = backtested(history.events, at_most(tmp_path, 5))
    assert told(differences) == [("newly-denied", "t.2")]
    assert tally.by("in-force", "") == {"": 2}


def test_what_was_not_the_policys_to_decide_is_counted_apart(tmp_path: Path) -> None:
    """Requests that were wrong in themselves, and those about brokers, are not put to the
    candidate.
    """
    history = (
        History()
        .refuse("t", "INVALID_TOPIC_EXCEPTION")
        .refuse("t", "TOPIC_ALREADY_EXISTS")
        .refuse("t", "TOPIC_ALREADY_EXISTS")
    )
    history.refuse("", "NONE", resource="broker", operation="alter_configs")
    _, tally = backtested(history.events, at_most(tmp_path, 5))
    assert tally.by("not-asked") == {"INVALID_TOPIC_EXCEPTION": 1, "TOPIC_ALREADY_EXISTS": 2}
    assert tally.by("other-resource") == {"broker": 1}
    assert tally.of("asked") == 0


def test_brokers_and_loggers_are_put_to_the_candidate(tmp_path: Path) -> None:
    """With their configs before and after, whatever topics are called alike; one that never was
    there for them has nothing to say.
    """
    silent = EntityChange(before={"root": "INFO"}, requested={"root": "FATAL"}, after={"root": "FATAL"})
    fewer = EntityChange(before={"log.cleaner.threads": "2"}, requested={}, after={})
    history = History().create("1")
    for resource, entity in (("logger", silent), ("broker", fewer)):
        operands = {key: entity.requested.get(key) for key in entity.before}
        history.decide_entity(resource, "1", entity, operands)
    candidate = in_python(
        tmp_path,
        "def validate_alter_loggers(self, request, cluster):\n"
        "    if (request.broker, request.before['root'], request.after['root']) == ('1', 'INFO', 'FATAL'):\n"
        "        raise PolicyViolation('no')\n"
        "def validate_alter_broker_configs(self, request, cluster):\n"
        "    if 'log.cleaner.threads' in request.before and request.config_operation_kinds == {'log.cleaner.threads': 'delete'}:\n"
        "        raise PolicyViolation('no')\n",
    )
    for timeline in (None, Counterfactual()):
        differences, tally = backtested(history.events, candidate, timeline)
        assert told(differences) == [("newly-denied", "logger 1"), ("newly-denied", "broker 1")]
        assert tally.by("other-resource") == {}


NO_ACLS = """
[[protected_operations]]
operations = ["acls", "elect_leaders"]
except_principals = "User:bob"

[[rule]]
name = "slow"
operations = "alter_client_quotas"
condition = 'request.kind == "client_quota" && double(request.config_operations["producer_byte_rate"]) < 1000.0'
"""


def test_administration_is_put_to_a_candidate_that_judges_it(tmp_path: Path) -> None:
    """Changes of ACLs, quotas and leaders are judged by what the log tells of them, also where no
    policy was asked then; what was refused before, or nobody judges, is counted apart.
    """
    history = History().create("t", policy=None)
    granted: Mapping[str, str | None] = {"Allow Read to User:x from *": ""}
    history.administer("create_acls", "acl", "Topic:LITERAL:a", granted, policy=None, principal="User:alice")
    history.administer(
        "delete_acls", "acl", "Topic:LITERAL:b", dict.fromkeys(granted), policy=None, principal="User:bob"
    )
    history.administer("alter_client_quotas", "client_quota", "user=x", {"producer_byte_rate": "5.0"})
    history.administer(
        "alter_client_quotas", "client_quota", "user=y", {"producer_byte_rate": "5000.0"}, validate_only=True
    )
    history.administer("elect_leaders", "topic", "t", {}, policy=None)
    history.administer("delete_groups", "group", "g", {}, policy=None)
    history.administer("offset_commit", "group", "g", {"t-0": "1"}, policy=denied("no", "then"))
    history.refuse("Topic:LITERAL:c", "INVALID_REQUEST", resource="acl", operation="create_acls", api="CreateAcls")
    for timeline in (None, Counterfactual()):
        differences, tally = backtested(history.events, in_rules(tmp_path, NO_ACLS), timeline)
        assert told(differences, lambda each: each.rule) == [
            ("newly-denied", "acl Topic:LITERAL:a", "protected_operations"),
            ("newly-denied", "client_quota user=y", "slow"),
            ("newly-denied", "t", "protected_operations"),
            ("newly-allowed", "group g", "then"),
        ]
        assert tally.by("unjudged") == {"delete_groups": 1}
        assert tally.by("not-asked") == {"INVALID_REQUEST": 1}
        assert tally.by("other-resource") == tally.by("unknown-operation") == {}
        assert tally.of("asked") == 7


def test_an_election_of_a_topic_that_would_not_be_there_is_moot(tmp_path: Path) -> None:
    """With `--counterfactual` a denied election changes no topic, and one needs its topic."""
    rules = "[[protected_operations]]\noperations = 'elect_leaders'\n[[partitions]]\nmax = 1\n"
    history = History().create("t").create("u", 2).alter("t", {"a": "1"})
    history.administer("elect_leaders", "topic", "t", {}).administer("elect_leaders", "topic", "u", {}).delete("t")
    differences, _ = backtested(history.events, in_rules(tmp_path, rules), Counterfactual())
    assert told(differences) == [("newly-denied", "u"), ("newly-denied", "t"), ("moot", "u")]


def test_a_policy_that_failed_then(tmp_path: Path) -> None:
    """What became of such a request says nothing about rules; a candidate that fails alike is the
    same.
    """
    history = History().create("t.1", policy=broken("it raised:\nTraceback (most recent call last):\nValueError: no"))
    differences, _ = backtested(history.events, at_most(tmp_path, 5))
    assert told(differences) == [("recorded-broken", "t.1")]
    again = in_python(tmp_path, "def validate_create_topic(self, request, cluster):\n    raise ValueError('no')")
    assert backtested(history.events, again)[0] == []
    otherwise = in_python(tmp_path, "def validate_create_topic(self, request, cluster):\n    raise ValueError('yes')")
    assert told(backtested(history.events, otherwise)[0]) == [("broken", "t.1")]


def test_only_requests_of_the_time_are_judged_and_all_before_them_counts(tmp_path: Path) -> None:
    """`--since` and `--until` choose requests by their time; the topics are what all events before
    made them.
    """
    history = History().create("a.1").create("a.2").create("a.3").create("a.4")
    times = [event.time_ms for event in history.events]
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 2\n")
    differences, tally = backtested(history.events, candidate, window=Window(times[-2], times[-1]))
    assert told(differences) == [("newly-denied", "a.3")]
    assert tally.of("asked") == 1


# ------------------------------------------------------------------ what the log lacks


def test_a_gap_is_told_with_what_it_means(tmp_path: Path) -> None:
    """Requests after a loss are judged by what is known: the topic itself is as the request says,
    others are as they were last; until a snapshot tells all.
    """
    history = History().create("a.1").create("a.2").lose().create("a.3").grow("a.2", 9).elect().create("a.4")
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 2\n[[partitions]]\nmax = 5\n")
    differences, tally = backtested(history.events, candidate)
    assert told(differences, lambda each: (each.is_certain, each.candidate.message)) == [
        ("newly-denied", "a.2", (False, "9 partitions are more than 5.")),
        ("newly-denied", "a.4", (True, "User:alice has 3 of 2 topics already.")),
    ]
    assert (tally.of("missing"), tally.of("uncertain"), tally.of("note", "gap")) == (1, 2, 1)
    [note] = tally.notes["gap"]
    assert (note.epoch, note.sequence, note.text) == (1, 5, "1 event before this one")


def test_a_log_that_begins_in_the_middle(tmp_path: Path) -> None:
    """Nobody knows how much was before; until the first snapshot the requests are uncertain."""
    history = History().create("a.1").create("a.2").elect().create("a.3")
    _, tally = backtested(history.events[3:], at_most(tmp_path, 5))
    assert tally.notes["begins-late"][0].text == "3 events before this one"
    assert (tally.of("asked"), tally.of("uncertain")) == (2, 1)


def test_dropped_events_are_a_loss(tmp_path: Path) -> None:
    """The log itself says that it lacks them; the snapshot after them ends the doubt."""
    history = History().create("a.1").drop(5).create("a.2").snapshot("recovered").create("a.3")
    _, tally = backtested(history.events, at_most(tmp_path, 5))
    assert (tally.of("missing"), tally.of("uncertain"), tally.of("note", "dropped")) == (5, 1, 1)


def test_a_log_that_does_not_fit_itself_is_told(tmp_path: Path) -> None:
    """A topic that is otherwise than the events before it say, and a snapshot that is, are told
    with their place.
    """
    history = History().create("t").become("t", None).create("t").elect()
    _, tally = backtested(history.events, at_most(tmp_path, 5))
    assert [note.sequence for note in tally.notes["misfit"]] == [4]


def test_the_same_event_twice_is_one(tmp_path: Path) -> None:
    """Whoever feeds a line again changes nothing."""
    history = History().create("t.1", 9).create("t.2")
    twice: list[AuditEvent] = [event for event in history.events for _ in range(2)]
    whole, again = (backtested(events, at_most(tmp_path, 5)) for events in (history.events, twice))
    assert whole[0] == again[0] and whole[1].counts == again[1].counts


def test_hidden_values_are_told(tmp_path: Path) -> None:
    """Where the candidate saw [hidden] and the policy then a value is told: how often, of which
    configs, and in which differences.
    """
    secret = {"some.plugin.key": "[hidden]"}
    history = (
        History()
        .create("t.1", configs=secret)
        .create("t.2", 9, configs=secret)
        .adjust("t.1", {"retention.ms": "5"})
        .create("t.3")
    )
    differences, tally = backtested(history.events, at_most(tmp_path, 5))
    assert told(differences, lambda each: each.hidden) == [("newly-denied", "t.2", ("some.plugin.key",))]
    assert tally.by("hidden") == {"some.plugin.key": 3}
    assert tally.of("hidden-differences") == 1


def test_a_message_with_something_hidden_in_it_is_compared_as_far_as_it_is_shown(tmp_path: Path) -> None:
    """The policy then quoted a value that the log hides: the candidate, which quotes what it is
    shown, says the same.
    """
    code = """
    def validate_create_topic(self, request, cluster):
        raise PolicyViolation(f"{request.requested_state.configs['k']} in {request.topic} is no good")
    """
    history = History().create("t.1", configs={"k": "[hidden]"}, policy=denied("[hidden] in t.1 is no good"))
    history.create("t.2", configs={"k": "[hidden]"}, policy=denied("[hidden] in [hidden].2 is no good"))
    history.create("t.3", configs={"k": "[hidden]"}, policy=denied("[hidden] in t.3 is bad"))
    assert told(backtested(history.events, in_python(tmp_path, code))[0]) == [("other-message", "t.3")]


def test_kinds_have_the_names_that_the_command_takes() -> None:
    """Names are written in files and read by others."""
    assert [kind.value for kind in DifferenceKind] == [
        "newly-denied", "newly-allowed", "other-message", "broken", "timed-out", "recorded-broken", "moot",
    ]  # fmt: skip


@pytest.mark.parametrize("event", ["create", "nothing"])
def test_a_candidate_without_an_opinion_differs_in_nothing(event: str, tmp_path: Path) -> None:
    """Whatever is not judged is allowed; a history without requests has nothing to differ in."""
    history = History().create("t") if event == "create" else History()
    differences, tally = backtested(history.events, names(tmp_path, ".*"))
    assert (differences, tally.of("asked")) == ([], int(event == "create"))


class Watched:
    """A decision that keeps which of its fields are read."""

    def __init__(self, event: Decision, read: set[str]) -> None:
        self._event = event
        self._read = read

    def __getattr__(self, name: str) -> Any:
        self._read.add(name)
        return getattr(self._event, name)


def test_lines_are_read_as_far_as_a_replay_asks() -> None:
    """The fields that are decoded of a line are those that a replay reads to ask a policy, and
    those that tell the place of the decision and its difference.
    """
    history = History().create("t", 2, validate_only=True).create("t", 2).grow("t", 3).alter("t", {"a": "1"})
    history.adjust("t", {"a": None}).reassign("t", {0: (2,)}).delete_records("t", {0: 5}).delete("t")
    replay, read = Replay(), set[str]()
    for event in history.events:
        if isinstance(event, Decision):
            replay.question(cast(Decision, Watched(event, read)))
        assert list(replay.apply(event)) == []
    line = encode(history.events[-1])
    placed = {*step_of(line).__struct_fields__, *request_of(line).__struct_fields__} & {*Decision.__struct_fields__}
    assert set(ASKED_ABOUT) == read | placed
