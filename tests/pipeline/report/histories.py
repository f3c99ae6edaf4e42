"""Reports on events made by hand: a history that has everything in it, and how a report is asked
for.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from minicontroller.audit.event import (
    AuditEvent,
    Decision,
    Effect,
    NamedState,
    RecordedState,
    Removal,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
)
from minicontroller.audit.outcomes import would_be_refused
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.page.tables import ReportTable
from minicontroller.pipeline.progress import Stages
from minicontroller.pipeline.report.making import STAGES, make
from minicontroller.pipeline.report.question import Report
from minicontroller.pipeline.report.selection import Selection
from minicontroller.pipeline.schemas import Table
from tests.pipeline.by_hand import (
    START_MS,
    Row,
    a_decision,
    a_refusal,
    a_state,
    a_verdict,
    a_warning,
    changed,
    write_tables,
)

CLUSTERS = ("cluster-one", "cluster-two")
EPOCHS = 4
DECISIONS = 60
"""In each epoch."""
PEOPLE = (None, *(f"User:{name}" for name in ("alice", "bob", "carol", "dave")))
PREFIXES = ("orders", "fraud", "ads")
RULES = ("partitions", "naming", "")


def report_of(
    spark: SparkSession,
    folder: Path,
    events: Iterable[AuditEvent],
    others: dict[Table, list[Row]] | None = None,
    *,
    rules: Sequence[str] = (),
    **selected: Any,
) -> Report:
    """Of tables with these events."""
    write_tables(folder, events, others)
    selection = Selection(spark, Tables(Location.local(folder)), **selected)
    with Stages(spark, STAGES).shown() as progress:
        return make(selection, progress, rules)


def answer(report: Report, question: str) -> str:
    return next(each.answer(report) for each in report.questions if each.name == question)


def rows(table: ReportTable, *names: str) -> list[tuple[Any, ...]]:
    """Some of its columns."""
    return list(zip(*(table.values(name) for name in names), strict=True))


def a_reign(epoch: int, topics: dict[str, RecordedState] | None = None, **values: Any) -> list[AuditEvent]:
    """The snapshot with which an epoch begins."""
    held = topics or {}
    stamp: dict[str, Any] = {
        "schema_version": 1,
        "cluster_id": CLUSTERS[0],
        "epoch": epoch,
        "time_ms": START_MS,
        "decided_node": 1,
    } | values
    named = tuple(NamedState(topic=name, state=state) for name, state in held.items())
    return [
        SnapshotBegin(**stamp, sequence=1, reason="elected", cluster_size=3, topics=len(held)),
        SnapshotTopics(**stamp, sequence=2, topics=named),
        SnapshotEnd(**stamp, sequence=3, topics=len(held)),
    ]


class Maker:
    """Makes one cluster's events, each a while after the one before."""

    def __init__(self, cluster: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = cluster
        self.topics: dict[str, RecordedState] = {}
        self.now = START_MS

    def events(self) -> Iterator[AuditEvent]:
        for epoch in range(1, EPOCHS + 1):
            node = self.chance.randint(1, 3)
            self.now += 5_000
            stamp = {"cluster_id": self.cluster, "time_ms": self.now, "decided_node": node}
            opening = a_reign(epoch, self.topics, **stamp)
            yield from opening
            sequence = len(opening)
            for _ in range(DECISIONS):
                for event in self.decision(sequence + 1, {**stamp, "epoch": epoch}):
                    sequence += 1
                    yield changed(event, sequence=sequence)

    def decision(self, sequence: int, stamp: dict[str, Any]) -> Iterator[AuditEvent]:
        chance = self.chance
        self.now += chance.randint(0, 3_000)
        values = stamp | {
            "time_ms": self.now,
            "principal": chance.choice(PEOPLE),
            "received_node": chance.choice((-1, 1, 2, 3)),
            "software": chance.choice(("", "librdkafka/2.6", "apache-kafka-java/3.9")),
            "latency_us": round(chance.lognormvariate(9, 2)),
            "validate_only": False,
        }
        name = f"{chance.choice(PREFIXES)}.{chance.randint(1, 12)}"
        before = self.topics.get(name)
        match chance.choice(("change", "change", "change", "refused", "refused", "broken", "validated", "unknown")):
            case "refused":
                why = f"{name} may not."
                yield a_refusal(
                    sequence, name, rule=chance.choice(RULES), why=why, before=before, after=before, **values
                )
            case "broken":
                failed = a_verdict("broken", message="division by zero")
                yield a_refusal(sequence, name, before=before, after=before, **(values | {"policy": failed}))
            case "validated":
                values |= {"validate_only": True, "effect": Effect.NONE}
                yield a_decision(sequence, name, before=before, after=before, **values)
            case "unknown":
                yield a_decision(sequence, name, before=before, after=before, effect=Effect.UNKNOWN, **values)
            case _:
                yield from self.change(sequence, name, before, values)

    def change(
        self, sequence: int, name: str, before: RecordedState | None, values: dict[str, Any]
    ) -> Iterator[AuditEvent]:
        warned = a_verdict(findings=(a_warning("replicas", action=self.chance.choice(("warn", "audit"))),))
        values |= {"before": before, "policy": self.chance.choice((a_verdict(), warned))}
        if sequence % 11 == 0:
            values |= {"policy": None, "enforced": False, "unjudged": "The topics are not known."}
        elif sequence % 3 == 0:  # a gateway that only observes
            rule, said = (*RULES, "broken")[sequence // 3 % 4], f"{name} may not."
            verdict = a_verdict("broken", message=f"Traceback:\n  1 / 0\n{said}\n") if rule == "broken" else None
            values |= {"policy": verdict or a_verdict("violated", rule=rule, message=said), "enforced": False}
        if before is None:
            self.topics[name] = a_state(self.chance.randint(1, 9), topic_id=f"{name:A>22}")
            yield a_decision(sequence, name, **(values | {"after": self.topics[name]}))
        elif self.chance.random() < 0.5:
            exists = {"effect": Effect.NONE, "error_code": 36, "error": "TOPIC_ALREADY_EXISTS", "policy": None}
            if self.chance.random() < 0.3:  # a gateway that only observes
                exists |= {"policy": a_verdict("violated", rule=self.chance.choice(RULES)), "enforced": False}
            yield a_decision(sequence, name, **(values | exists | {"after": before, "message": "It is there."}))
        else:
            del self.topics[name]
            gone = changed(before, marked_for_deletion=True)
            asked = {"api": "DeleteTopics", "operation": "delete_topic", "after": gone}
            yield a_decision(sequence, name, **(values | asked))
            place = {key: values[key] for key in ("cluster_id", "epoch", "decided_node", "time_ms")}
            yield Removal(schema_version=1, sequence=sequence, topic=name, before=gone, **place)


def a_history(seed: int = 1) -> list[AuditEvent]:
    """Of two clusters, with everything in it that is counted."""
    return [event for number, cluster in enumerate(CLUSTERS) for event in Maker(cluster, seed + number).events()]


def decisions(events: Iterable[AuditEvent]) -> list[Decision]:
    return [event for event in events if isinstance(event, Decision)]


def outcome(event: Decision) -> str:
    """As docs/pipeline.md says it."""
    if event.effect is not Effect.NONE:
        return str(event.effect.value)
    if event.error_code == 0:
        return "validated"
    judged = None if event.policy is None or not event.enforced else event.policy.decision
    return {"violated": "refused", "broken": "refused"}.get(judged or "", "errors")


def objected(event: Decision) -> tuple[str, str | None] | None:
    """What a change would be refused by, and what it said."""
    found = would_be_refused(event)
    return None if found is None else (found.by, found.message)


def blamed(event: Decision) -> str:
    assert event.policy is not None
    return event.policy.rule or event.policy.policy
