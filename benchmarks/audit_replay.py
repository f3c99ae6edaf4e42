"""`python -m benchmarks.audit_replay`: how many recorded decisions a policy can be asked again in a
second, over small and large clusters.

Rule: the same made-up history for all kinds of policy; half of its decisions change the cluster, so
that nothing can be kept for long.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from minicontroller.audit.event import (
    AuditEvent,
    Decision,
    Effect,
    NamedState,
    RecordedState,
    Requested,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
)
from minicontroller.audit.replay import Replay
from minicontroller.policies import ClusterState
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.rules.mistakes import RuleSource
from minicontroller.policies.rules.ruleset import load_rules

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
TEAMS = 50
QUESTIONS = 5_000
ROUNDS = 3
SIZES = (1_000, 10_000)

RULES = {
    "partitions": "[[partitions]]\nmax = 100",
    "quota by prefix": "[[quota]]\nowned = '{user}.*'\nmax_topics = 100000\nmax_partitions = 1000000",
    "quota by glob": "[[quota]]\nowned = '{user}.*-*'\nmax_topics = 100000\nmax_partitions = 1000000",
    "topic_count": "[[rule]]\nname = 'r'\noperations = ['create', 'alter']\ncondition = 'cluster.topic_count < 100000'",
}

Judge = Callable[[JudgedRequest, ClusterState], object]


def a_state(random: Random) -> RecordedState:
    count = random.randint(1, 12)
    return RecordedState(
        topic_id=CLUSTER,
        replicas=((1, 2, 3),) * count,
        configs={"retention.ms": str(random.randint(1, 10**9))},
        marked_for_deletion=False,
        internal=False,
        created_ms=1,
    )


def history(size: int, questions: int = QUESTIONS) -> list[AuditEvent]:
    """A snapshot of so many topics, and decisions: creations, deletions and alterations, half of
    them refused.
    """
    random = Random(size)
    topics = {f"team-{number % TEAMS}.topic-{number}": a_state(random) for number in range(size)}
    names = list(topics)
    made: list[dict[str, Any]] = [
        {"type": SnapshotBegin, "reason": "elected", "cluster_size": 3, "topics": size},
        {"type": SnapshotTopics, "topics": tuple(NamedState(topic=n, state=s) for n, s in topics.items())},
        {"type": SnapshotEnd, "topics": size},
    ]
    made += (a_decision(random, topics, names, number) for number in range(questions))
    return [
        each.pop("type")(
            schema_version=1, cluster_id=CLUSTER, epoch=1, sequence=index + 1, time_ms=index, decided_node=1, **each
        )
        for index, each in enumerate(made)
    ]


def a_decision(random: Random, topics: dict[str, RecordedState], names: list[str], number: int) -> dict[str, Any]:
    operation = random.choice(["create_topic", "delete_topic", "alter_configs"])
    name = random.choice(names) if operation != "create_topic" else f"team-{number % TEAMS}.new-{number}"
    before, applied = topics.get(name), random.random() < 0.5
    after = None if operation == "delete_topic" else a_state(random)
    if applied and after is not None:
        if before is None:
            names.append(name)
        topics[name] = after
    elif applied:
        topics.pop(name, None)
    wanted = None
    if after is not None:
        wanted = Requested(
            replicas=after.replicas, configs=after.configs, marked_for_deletion=False, internal=False,
            generated_replica_assignments=True,
        )  # fmt: skip
    return {
        "type": Decision, "request": number, "element": 0, "elements": 1, "principal": f"User:team-{number % TEAMS}",
        "client_id": "c", "client_host": "127.0.0.1", "software": "", "listener": "L", "received_node": 1,
        "api": "CreateTopics", "api_version": 7, "operation": operation, "resource": "topic", "name": name,
        "requested": wanted, "config_operations": {} if operation == "alter_configs" else None, "validate_only": False,
        "asked_ms": number, "asked_created_ms": None, "cluster_size": 3, "before": before,
        "after": after if applied else before, "assumed": (), "policy": None,
        "effect": Effect.APPLIED if applied else Effect.NONE, "error_code": 0 if applied else 44,
        "error": "NONE" if applied else "POLICY_VIOLATION", "message": None, "latency_us": 5,
    }  # fmt: skip


def replayed(events: Sequence[AuditEvent], judge: Judge) -> float:
    """Seconds of the processor for each decision: fed, and asked again."""
    replay = Replay()
    asked = 0
    began = time.process_time()
    for event in events:
        if isinstance(event, Decision):
            question = replay.question(event)
            assert question is not None
            judge(*question)
            asked += 1
        elif isinstance(event, SnapshotEnd):
            began = time.process_time()
        for _ in replay.apply(event):
            pass
    return (time.process_time() - began) / asked


def judges() -> dict[str, Judge]:
    def nothing(request: JudgedRequest, cluster: ClusterState) -> None:
        """The replay alone."""

    def one_topic(request: JudgedRequest, cluster: ClusterState) -> object:
        return cluster.topic_state(getattr(request, "topic", ""))

    def all_names(_request: JudgedRequest, cluster: ClusterState) -> object:
        return len(cluster.topics())

    kinds: dict[str, Judge] = {"nothing": nothing, "one topic": one_topic, "all names": all_names}
    for name, text in RULES.items():
        kinds[name] = load_rules([RuleSource("r.toml", text.encode())]).judge
    return kinds


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(
        f"{'policy':<20}"
        + "".join(f"{f'{size} topics':>16}" for size in SIZES)
        + "   questions a second of one processor"
    )
    questions = {size: history(size) for size in SIZES}
    for name, judge in judges().items():
        rates = [1 / statistics.median(replayed(events, judge) for _ in range(ROUNDS)) for events in questions.values()]
        print(f"{name:<20}" + "".join(f"{rate:>16,.0f}" for rate in rates))


if __name__ == "__main__":
    main()
