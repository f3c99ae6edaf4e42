"""The policy that was in force says again what it said then, about every request of lives made by
chance; and slices say what the whole says.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from minicontroller.audit.event import AuditEvent, Decision
from minicontroller.pipeline.backtest.candidate import Candidate, read_candidate
from minicontroller.pipeline.backtest.replaying import Window
from tests.pipeline.backtest.lives import recorded
from tests.pipeline.backtest.slicing import Outcome, backtested, otherwise, sliced

RULES = """
[[partitions]]
max = 4

[[quota]]
owned = "a.*"
max_topics = 1
max_partitions = 6

[[quota]]
owned = "*.users"
action = "warn"
max_partitions = 2

[[deletion_age]]
action = "audit"
min = "1s"

[[rule]]
name = "short retention"
operations = ["create", "alter"]
match_conditions = ['"retention.ms" in after.configs']
condition = 'int(after.configs["retention.ms"]) > 2'

[[rule]]
name = "breaks without retention"
operations = ["alter"]
topics = ["b.*"]
condition = 'int(after.configs["retention.ms"]) < 9'

[[replication]]
min = 2
operations = "reassign"

[[rule]]
name = "keep"
operations = "delete_records"
condition = "before.num_partitions < 3 && request.delete_records_offsets.all(p, p < 3)"

[[rule]]
name = "moved alone"
action = "warn"
operations = "reassign"
condition = "request.reassignments.size() == 1 || before.replica_assignments == after.replica_assignments"

[[protected_operations]]
operations = ["alter_user_scram_credentials", "elect_leaders"]
except_principals = ["User:alice", "User:ANONYMOUS"]
except_resources = "b.*"

[[rule]]
name = "slow"
operations = "alter_client_quotas"
action = "warn"
condition = 'double(request.config_operations["producer_byte_rate"]) < 5.0 && !request.validate_only'

[[rule]]
name = "crowded"
action = "warn"
condition = 'cluster.topic_count < 3'
"""

NEIGHBOUR = """
LIMIT = 4


def crowd(cluster):
    return sorted(cluster.topics(include_marked_for_deletion=True))
"""

IN_PYTHON = """
from minicontroller.policies import PolicyViolation, TopicManagementPolicy

import neighbour


class Strict(TopicManagementPolicy):
    def configure(self, configs):
        self.most = int(configs["topic.management.policy.config.topics"])

    def validate_create_topic(self, request, cluster):
        import neighbour  # once more, where nobody looks

        crowd = neighbour.crowd(cluster)
        if len(crowd) >= self.most:
            raise PolicyViolation(f"{', '.join(crowd)} are enough, {request.principal}.")
        if request.requested_state.replication_factor == 2:
            return "no"

    def validate_alter_topic(self, request, cluster):
        before = cluster.topic_state(request.topic)
        if before.num_partitions == neighbour.LIMIT:
            raise ValueError(f"{request.topic} has {before.num_partitions} partitions; {object()}")
        if request.reassignments and None in request.reassignments.values():
            raise PolicyViolation(f"{dict(before.replica_assignments)} stays {dict(request.reassignments)}")

    def validate_delete_topic(self, request, cluster):
        if request.principal == "User:bob":
            raise PolicyViolation("Bob deletes nothing.")

    def validate_admin(self, request, cluster):
        if request.principal is None or request.name == "c":
            raise PolicyViolation(f"{request.api} of {request.name}: {dict(request.config_operations)} at {request.time_ms}")

    def validate_delete_records(self, request, cluster):
        if request.delete_records_offsets.get(0) == -1:
            raise PolicyViolation(f"{cluster.topic_state(request.topic).num_partitions} partitions keep records.")


class Create:
    def validate(self, metadata):
        if metadata.replicas_assignments is not None:
            raise PolicyViolation("by counts, please")
        if metadata.num_partitions > neighbour.LIMIT:
            raise PolicyViolation(f"{metadata.num_partitions} are too many")


class Alter:
    def validate(self, metadata):
        if metadata.configs.get("retention.ms") == "3":
            raise PolicyViolation(f"{dict(metadata.configs)} is no good")
"""

LIVES = (("python", 0), ("rules", 0), ("both", 0), ("both", 1), ("both", 2), ("older", 0), ("older", 1))
"""Kinds of policies and seeds; both together judge all that either judges alone."""


def settings_of(kind: str, folder: Path) -> Mapping[str, str]:
    """Of a node; the same that a back-test is told."""
    (folder / "rules.toml").write_text(RULES)
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "strict.py").write_text(IN_PYTHON)
    python = {
        "topic.management.policy.class.name": f"{folder}/strict.py:Strict",
        "topic.management.policy.config.topics": "3",
    }
    rules = {"policy.rules.files": f"{folder}/rules.toml"}
    older = {
        "create.topic.policy.class.name": f"{folder}/strict.py:Create",
        "alter.config.policy.class.name": f"{folder}/strict.py:Alter",
    }
    return {"python": python, "rules": rules, "both": {**python, **rules}, "older": older}[kind]


def candidate_of(settings: Mapping[str, str], folder: Path) -> Candidate:
    file = folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return read_candidate(str(file)).candidate


Life = tuple[list[AuditEvent], Candidate]


@pytest.fixture(scope="module", params=LIVES, ids=lambda life: f"{life[0]}-{life[1]}")
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """What happened under a policy, and that policy."""
    kind, seed = request.param
    folder = tmp_path_factory.mktemp(kind)
    settings = settings_of(kind, folder)
    events = recorded(folder / "audit", settings, seed, rounds=16)
    return events, candidate_of(settings, folder)


def plain(outcome: Outcome) -> tuple[object, ...]:
    differences, tally = outcome
    return differences, dict(tally.counts), tally.notes, tally.side_effects


def test_the_policy_that_was_in_force_differs_in_nothing(life: Life) -> None:
    """Allowed, denied with its text, or broken: each recorded verdict comes out again, warnings
    included; and it is known for the same (P-4a).
    """
    events, candidate = life
    differences, tally = backtested(events, candidate)
    assert differences == []
    asked = [event for event in events if isinstance(event, Decision) and event.policy]
    assert tally.of("asked") == len(asked) > 15
    assert {event.policy.decision for event in asked if event.policy} >= {"allowed", "violated"}
    assert tally.by("in-force", candidate.name) == {candidate.policy_hash: len(asked)}
    assert (tally.of("missing"), tally.of("uncertain"), tally.notes) == (0, 0, {})


def test_slices_of_it_differ_in_nothing(life: Life) -> None:
    """However a history is cut, the policy that was in force says in no slice anything else, and
    all is counted once.
    """
    events, candidate = life
    whole = plain(backtested(events, candidate))
    counts = []
    for slice_events in (len(events) // 2, len(events) // 7, 1):
        outcome, slices = sliced(events, candidate, slice_events)
        assert plain(outcome) == whole
        counts.append(slices)
    assert counts[0] >= 2 and counts[1] >= 4 and counts[2] > counts[1]


@pytest.mark.parametrize("seed", [11])
def test_slices_of_any_candidate_say_what_one_says(seed: int, tmp_path: Path) -> None:
    """Candidates that never were in force differ in the same way, slice by slice or all in one, and
    within any time.
    """
    settings = settings_of("rules", tmp_path)
    events = recorded(tmp_path / "audit", settings, seed)
    times = [event.time_ms for event in events]
    middle = Window(times[len(times) // 4], times[len(times) * 3 // 4])
    for kind in ("python", "both", "older"):
        other = candidate_of({**settings_of(kind, tmp_path), "topic.management.policy.config.topics": "2"}, tmp_path)
        for window in (Window(), middle):
            whole = backtested(events, other, window=window)
            assert whole[0]
            for slice_events in (1, 40):
                outcome, slices = sliced(events, other, slice_events, window=window)
                assert slices > 2 or slice_events > 1
                assert plain(outcome) == plain(whole)


def test_history_as_it_would_have_been_is_as_it_was_under_the_same_policy(life: Life) -> None:
    """With the recorded decisions the counterfactual timeline is the recorded one, to the last
    topic: nothing is moot, and nothing parts.
    """
    events, candidate = life
    differences, timeline = otherwise(events, candidate)
    assert differences == []
    assert list(timeline.parted()) == []
