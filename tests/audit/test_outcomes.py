"""What would be refused: one definition, which the command line and the page read, too."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from minicontroller.admin.changes import Change, Judgement, Outcome, Unjudged
from minicontroller.admin.recording.decisions import NodeDecisions, RecentDecision, RecentDecisions
from minicontroller.audit.event import Decision, Effect, PolicyDecision, RuleFinding
from minicontroller.audit.outcomes import ALLOWED, REFUSED, WOULD_BE_REFUSED, Objection, outcome, would_be_refused
from minicontroller.cli.commands import commands
from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.image import Image
from minicontroller.network.http.history import HistoryFilter, history_entry
from minicontroller.policies.interface import AdminRequest
from minicontroller.policies.verdict import Finding, PolicyOutcome, RuleAction, Verdict
from minicontroller.protocol.error_codes import ErrorCode
from tests.audit.logs import a_creation, an_empty_snapshot, write
from tests.audit.test_records import a_context

DENY, WARN, NOTE = (Finding(action.value, action, f"{action.value} says no") for action in RuleAction)
CASES: dict[str, tuple[dict[str, Any], str, Objection | None]] = {
    "nothing objects": ({}, ALLOWED, None),
    "a rule denies": ({"decision": "violated", "findings": (DENY,), "code": 44}, REFUSED, None),
    "a gateway observes": (
        {"decision": "violated", "findings": (WARN, DENY), "enforced": False},
        WOULD_BE_REFUSED,
        Objection("deny", "rules.toml", "deny says no"),
    ),
    "a gateway observes what the cluster refuses": (
        {"decision": "violated", "findings": (DENY,), "enforced": False, "code": 36},
        REFUSED,
        None,
    ),
    "a class objects and is observed": (
        {"decision": "violated", "message": "No.", "enforced": False},
        WOULD_BE_REFUSED,
        Objection("", "rules.toml", "No."),
    ),
    "a policy fails and is not enforced": (
        {"decision": "broken", "message": "Traceback:\n  x\nValueError: y", "enforced": False},
        WOULD_BE_REFUSED,
        Objection("", "rules.toml", "The policy failed: ValueError: y"),
    ),
    "a policy fails": ({"decision": "broken", "code": -1}, REFUSED, None),
    "a rule warns": ({"findings": (WARN, NOTE)}, WOULD_BE_REFUSED, Objection("warn", "rules.toml", "warn says no")),
    "a rule notes": ({"findings": (NOTE,)}, WOULD_BE_REFUSED, Objection("audit", "rules.toml", "audit says no")),
    "a rule warns of what is refused": ({"findings": (WARN,), "code": 36}, REFUSED, None),
    "nothing could judge": (
        {"unjudged": "no broker answers", "enforced": False},
        WOULD_BE_REFUSED,
        Objection("", "", "no broker answers"),
    ),
    "nothing had to judge": ({"unjudged": "there is no policy"}, ALLOWED, None),
    "nothing could judge, refused": ({"unjudged": "no broker answers", "code": 44}, REFUSED, None),
}


def event_of(case: dict[str, Any], sequence: int = 3) -> Decision:
    code, unjudged = case.get("code", 0), case.get("unjudged")
    found = tuple(RuleFinding(rule=f.rule, action=f.action.value, message=f.message) for f in case.get("findings", ()))
    denied = next((each for each in found if each.action == "deny"), None)
    policy = PolicyDecision(
        decision=case.get("decision", "allowed"),
        policy="rules.toml",
        policy_hash="h",
        rule="" if denied is None else denied.rule,
        findings=found,
        message=case.get("message") if denied is None else denied.message,
        microseconds=1,
    )
    return a_creation(
        sequence,
        f"t{sequence}",
        policy=None if unjudged else policy,
        enforced=case.get("enforced", True),
        unjudged=unjudged,
        error_code=code,
        error=ErrorCode(code).name,
        effect=Effect.NONE if code else Effect.APPLIED,
    )


def change_of(case: dict[str, Any]) -> Outcome:
    """The same decision, as a controller or a gateway has it."""
    found = tuple(case.get("findings", ()))
    denied = next((each for each in found if each.action is RuleAction.DENY), None)
    verdict = Verdict(
        PolicyOutcome(case.get("decision", "allowed")),
        "rules.toml",
        case.get("message") if denied is None else denied.message,
        findings=found,
    )
    request = AdminRequest(api="CreateAcls", kind="acl", name="a", principal=None)
    return Outcome(
        Change("t3"),
        refusal=Refusal(ErrorCode(case["code"])) if case.get("code") else None,
        judgement=None
        if case.get("unjudged")
        else Judgement(request, Image(), verdict, is_enforced=case.get("enforced", True)),
        unjudged=Unjudged(case["unjudged"], was_due=not case.get("enforced", True)) if "unjudged" in case else None,
    )


@pytest.mark.parametrize("name", CASES)
def test_what_would_be_refused(name: str) -> None:
    """Whatever was carried out against a rule or without a judgement would be refused, and the log,
    the page, its history and the counter agree on why.
    """
    case, word, why = CASES[name]
    event = event_of(case)
    assert (outcome(event), would_be_refused(event)) == (word, why)
    shown = history_entry(HistoryFilter(), event)
    recent, counted = RecentDecisions(), Counter[tuple[str, str]]()
    of_node = NodeDecisions(recent, broker_id=1, epoch=lambda: 1, counts=Counter(), would_be_refused=counted)
    of_node.record(a_context(), [change_of(case)], validate_only=False)
    for each in (shown, *recent):
        assert isinstance(each, RecentDecision)
        assert each.would_be_refused == (why is not None)
        if why is not None:
            assert (each.rule, each.policy, each.reason) == why
    assert counted == ({} if why is None else {(why.policy, why.rule): 1})
    assert (history_entry(HistoryFilter(refused=True), event) is None) == (word == ALLOWED)


def test_a_log_is_asked_for_what_would_be_refused(tmp_path: Path) -> None:
    """`--outcome would-be-refused` lists these events and no others, and each line has the word,
    who objects, and why; nothing is said to be refused by a rule that was not enforced.
    """
    events = [event_of(case, number) for number, (case, _, _) in enumerate(CASES.values(), 3)]
    write(tmp_path / "a.ndjson", [*an_empty_snapshot(), *events])
    lines = call("tail", tmp_path, "--outcome", "would-be-refused")
    wanted = [(event, why) for event, (_, _, why) in zip(events, CASES.values(), strict=True) if why is not None]
    assert len(lines) == len(wanted)
    for line, (event, why) in zip(lines, wanted, strict=True):
        by = f" by {why.by}" if why.by else ""
        assert f"create_topic {event.name} would be refused{by} - {why.message}" in line
    as_json = [
        json.loads(line)["sequence"] for line in call("show", tmp_path, "--json", "--outcome", "Would be refused")
    ]
    assert as_json == [event.sequence for event, _ in wanted]
    [by_the_cluster] = [line for line in call("tail", tmp_path) if " t6 " in line]
    assert "TOPIC_ALREADY_EXISTS" in by_the_cluster and " by " not in by_the_cluster


def call(*arguments: str | Path) -> list[str]:
    result = CliRunner().invoke(commands, ["audit", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_older_logs_are_read_as_before() -> None:
    """A log without the newer fields is read, and says as much as it can."""
    event = event_of(CASES["a gateway observes"][0])
    older = msgspec.to_builtins(event)
    for name in ("unjudged", "election_type"):
        del older[name]
    again = msgspec.convert(older, Decision)
    assert again == event and outcome(again) == WOULD_BE_REFUSED
