"""One policy over all that changes a topic: reassignments and deletions of records, as Kafka's own
client asks for them, in the audit log, in a replay and in a back-test.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from minicontroller.audit.event import Decision, Effect
from minicontroller.pipeline.backtest.recorded import RecordedTimeline
from tests.audit.logs import decisions_in, events_in, found, replayed
from tests.pipeline.backtest.asking import in_rules, told
from tests.pipeline.backtest.slicing import backtested
from tests.support.cluster import running_cluster
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import needs_maven

PROGRAM = Path(__file__).parents[1] / "java" / "one-policy" / "OnePolicy.java"
JAVA_SECONDS = 120
IN_FORCE = """
[[replication]]
min = 2
operations = "reassign"

[[protected_topics]]
topics = "ledger"
operations = "delete_records"
message = "The ledger keeps its records."
"""
STRICTER = """
[[protected_topics]]
name = "stay"
topics = "free"
operations = ["reassign", "delete_records"]
"""
ANY_TEXT = "Request parameters do not satisfy the configured policy."
"""The client's own text where a response has no field for the policy's."""


@pytest.mark.slow
@needs_maven
def test_the_policy_judges_what_the_java_client_asks_for(tmp_path: Path) -> None:
    """K201-1c, K201-1e, K201-4, K201-5, K201-6: reassignments and deletions of records are refused,
    recorded, replayed and back-tested as what they are.
    """
    rules, log = tmp_path / "rules.toml", tmp_path / "audit"
    rules.write_text(IN_FORCE)
    settings = {"policy.rules.files": str(rules), "audit.dir": str(log), "audit.flush": "always"}
    with running_cluster(settings=settings) as cluster:
        asked = asked_by_java(cluster.bootstrap)
    too_few = "PolicyViolationException: 1 replica is fewer than 2."
    assert asked == [
        f"reassign ledger [3]: {too_few}",
        "reassign ledger [3, 2]: done",
        f"records ledger: PolicyViolationException: {ANY_TEXT}",
        f"reassign free [3]: {too_few}",
        "reassign free [3, 2]: done",
        "records free: done",
    ]
    assert found(log) == []
    decisions = [each for each in decisions_in(log) if each.operation != "create_topic"]
    assert [recorded(each) for each in decisions] == [
        ("alter_partition_reassignments", "ledger", "replication", {0: (3,)}),
        ("alter_partition_reassignments", "ledger", "", {0: (3, 2)}),
        ("delete_records", "ledger", "protected_topics", {1: 0}),
        ("alter_partition_reassignments", "free", "replication", {0: (3,)}),
        ("alter_partition_reassignments", "free", "", {0: (3, 2)}),
        ("delete_records", "free", "", {1: 0}),
    ]
    assert all(each.effect is (Effect.NONE if each.error_code else Effect.APPLIED) for each in decisions)
    events = events_in(log)
    rows = ((3, 2), (2, 3))
    assert {name: state.replicas for name, state in replayed(events).topics.items()} == {"ledger": rows, "free": rows}
    assert backtested(events, in_rules(tmp_path, IN_FORCE), RecordedTimeline())[0] == []
    differences, tally = backtested(events, in_rules(tmp_path, IN_FORCE + STRICTER), RecordedTimeline())
    assert told(differences, lambda each: (each.operation, each.rule)) == [
        ("other-message", "free", ("alter_partition_reassignments", "replication")),  # two rules deny it now
        ("newly-denied", "free", ("alter_partition_reassignments", "stay")),
        ("newly-denied", "free", ("delete_records", "stay")),
    ]
    assert tally.by("operation", "newly-denied") == {"alter_partition_reassignments": 1, "delete_records": 1}


def asked_by_java(bootstrap: str) -> Sequence[str]:
    command = [*java(kafka_libs()), str(PROGRAM), bootstrap]
    run = subprocess.run(command, capture_output=True, text=True, timeout=JAVA_SECONDS, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()


def recorded(event: Decision) -> tuple[str, str, str, object]:
    rule = "" if event.policy is None else event.policy.rule
    return event.operation, event.name, rule, event.reassignments or event.delete_records_offsets
