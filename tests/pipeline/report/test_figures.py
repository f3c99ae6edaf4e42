"""The figures of a report, against the same events counted one by one."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from minicontroller.audit.event import AuditEvent, Decision
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.page.tables import ReportTable
from minicontroller.pipeline.report.durations import bucket, percentiles
from minicontroller.pipeline.report.question import Report
from tests.pipeline.report.histories import (
    CLUSTERS,
    a_history,
    answer,
    blamed,
    decisions,
    objected,
    outcome,
    report_of,
    rows,
)

OUTCOMES = ("asked", "applied", "validated", "refused", "errors", "unknown")
DOCUMENT = Path(__file__).parents[3] / "docs" / "pipeline.md"
EVENTS = a_history()
DECISIONS = decisions(EVENTS)


@pytest.fixture(name="report", scope="module")
def of_that_history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(spark, tmp_path_factory.mktemp("tables"), EVENTS, rules=("never", "naming"))


def by(key: Callable[[Decision], Any], events: Iterable[Decision] = DECISIONS) -> dict[Any, list[Decision]]:
    groups = defaultdict(list)
    for event in events:
        groups[key(event)].append(event)
    return groups


def outcomes(events: list[Decision]) -> tuple[int, ...]:
    counted = Counter(map(outcome, events))
    return (len(events), *(counted[name] for name in OUTCOMES[1:]))


def last(events: list[Decision]) -> int:
    return max(event.time_ms for event in events) * 1000


def newest(events: list[Decision]) -> Decision:
    return max(events, key=lambda event: (event.time_ms, event.cluster_id, event.epoch, event.sequence))


def counted(table: ReportTable, *keys: str) -> dict[Any, tuple[Any, ...]]:
    return {row[0] if len(keys) == 1 else row[: len(keys)]: row[len(keys) :] for row in rows(table, *keys, *OUTCOMES)}


def is_sorted(table: ReportTable, name: str) -> bool:
    values = table.values(name)
    return values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("table", "keys", "key"),
    [
        ("activity_by_principal", ("principal",), lambda event: event.principal),
        ("activity_by_api", ("api", "operation"), lambda event: (event.api, event.operation)),
        ("activity_by_client", ("software",), lambda event: event.software),
        ("activity_by_topic", ("cluster_id", "topic"), lambda event: (event.cluster_id, event.name)),
    ],
)
def test_activity_is_counted_by_outcome(
    report: Report, table: str, keys: tuple[str, ...], key: Callable[[Decision], Any]
) -> None:
    """Each change is counted once, with what became of it, under who asked, by which API and
    client, and about what (P-3a).
    """
    found = report.table(table)
    assert counted(found, *keys) == {name: outcomes(events) for name, events in by(key).items()}
    assert found.totals == dict(zip(OUTCOMES, outcomes(DECISIONS), strict=True))
    assert is_sorted(found, "asked")
    assert dict(zip(rows(found, *keys), found.values("last"), strict=True)) == {
        (name if len(keys) > 1 else (name,)): last(events) for name, events in by(key).items()
    }


def test_of_several_clusters_topics_and_nodes_are_told_with_theirs(report: Report) -> None:
    """The same name may stand for two topics, and the same id for two nodes (P-3a)."""
    cluster, topic = rows(report.table("activity_by_topic"), "cluster_id", "topic")[0]
    assert answer(report, "topics").startswith(f"{topic} of {cluster} was named in requests most often")
    plot = next(question for question in report.questions if question.name == "topics").draw(report)
    assert plot is not None and f">{topic} of {cluster}<" in plot.wide
    assert answer(report, "controllers").startswith("The controller changed 6 times in 2 clusters. ")


def test_activity_over_time_has_every_step(report: Report) -> None:
    """Each step between the first and the last event has its row, and their sum is all."""
    table, starts = report.table("activity_over_time"), report.selection.axis.starts
    assert table.values("time") == starts[:-1]
    for row, begin, end in zip(rows(table, *OUTCOMES), starts, starts[1:], strict=False):
        assert row == outcomes([event for event in DECISIONS if begin <= event.time_ms * 1000 < end])
    assert table.totals["asked"] == len(DECISIONS)


def test_refusals_are_counted_by_rule_and_by_principal(report: Report) -> None:
    """Who was refused, by which rule or else by which policy, how often it had failed, and what was
    said last (P-3a).
    """
    refused = [event for event in DECISIONS if outcome(event) == "refused"]
    rules = by(blamed, refused)
    assert {row[0]: row[1:] for row in rows(report.table("refusals_by_rule"), "rule", "refused", "failed")} == {
        rule: (len(events), sum(event.policy is not None and event.policy.decision == "broken" for event in events))
        for rule, events in rules.items()
    }
    for rule, people, names, at, message in rows(
        report.table("refusals_by_rule"), "rule", "principals", "names", "last", "message"
    ):
        assert people == len({event.principal for event in rules[rule]})
        assert names == len({event.name for event in rules[rule]})
        assert at == last(rules[rule])
        policy = newest(rules[rule]).policy
        assert policy is not None and message == policy.message
    pairs = report.table("refusals_by_principal_and_rule")
    assert {row[:2]: row[2] for row in rows(pairs, "principal", "rule", "refused")} == {
        key: len(events) for key, events in by(lambda event: (event.principal, blamed(event)), refused).items()
    }
    people = report.table("refusals_by_principal")
    assert dict(rows(people, "principal", "refused")) == {
        name: len(events) for name, events in by(lambda event: event.principal, refused).items()
    }
    assert list(dict.fromkeys(pairs.values("principal"))) == people.values("principal")


def test_what_was_refused_without_a_policy_is_apart(report: Report) -> None:
    """Errors are counted by their name, and are no refusals."""
    wrong = [event for event in DECISIONS if outcome(event) == "errors"]
    assert rows(report.table("errors"), "error", "operation", "changes", "message") == [
        ("TOPIC_ALREADY_EXISTS", "create_topic", len(wrong), "It is there.")
    ]


def test_findings_that_refuse_nothing_are_counted(report: Report) -> None:
    """Findings are counted by rule and action, with how often the change was carried out all the
    same.
    """
    found = Counter(
        (finding.rule, finding.action)
        for event in DECISIONS
        for finding in (event.policy.findings if event.policy else ())
    )
    table = report.table("warnings_by_rule")
    assert {row[:2]: row[2] for row in rows(table, "rule", "action", "findings")} == found
    assert table.values("applied") == table.values("findings")


def test_what_would_be_refused_is_counted(report: Report) -> None:
    """Whatever was let pass although something objected is counted once, by principal, rule and
    topic, with what was said last and how often it was carried out; and rules that never fired are
    there.
    """
    found = {id(event): said for event in DECISIONS if (said := objected(event)) is not None}
    wanted = [event for event in DECISIONS if id(event) in found]
    assert {event.enforced for event in wanted} == {True, False}
    pairs = by(lambda event: (event.principal, found[id(event)][0]), wanted)
    table = report.table("would_be_refused_by_principal_and_rule")
    columns = ("principal", "rule", "would_be_refused", "applied", "last", "message")
    for principal, rule, number, applied, at, message in rows(table, *columns):
        events = pairs.pop((principal, rule))
        assert (number, at) == (len(events), last(events))
        assert applied == sum(outcome(event) == "applied" for event in events)
        assert message == found[id(newest(events))][1]
    assert not pairs
    for name, key in (("rule", lambda event: found[id(event)][0]), ("principal", lambda event: event.principal)):
        counts = dict(rows(report.table(f"would_be_refused_by_{name}"), name, "would_be_refused"))
        assert counts == Counter(map(key, wanted))
    topics = rows(report.table("would_be_refused_by_topic"), "cluster_id", "name", "would_be_refused")
    assert {row[:2]: row[2] for row in topics} == Counter((event.cluster_id, event.name) for event in wanted)
    rules = {row[0]: row[1:] for row in rows(report.table("rules"), "rule", "refused", "would_be_refused", "last")}
    assert rules.pop("never") == (0, 0, None)
    refused = Counter(blamed(event) for event in DECISIONS if outcome(event) == "refused")
    would = Counter(rule for rule, _ in found.values())
    assert {rule: row[:2] for rule, row in rules.items()} == {
        rule: (refused[rule], would[rule]) for rule in {*refused, *would}
    }
    assert f"{len(wanted):,} of {len(DECISIONS):,} changes" in answer(report, "would_be_refused")


def test_growth_follows_the_topics(report: Report) -> None:
    """At the end of each step, the topics that clients saw and their partitions; created and
    deleted by prefix (P-3a).
    """
    starts = report.selection.axis.starts
    for cluster in CLUSTERS:
        own = [event for event in EVENTS if event.cluster_id == cluster]
        expected = [sizes_at(own, end) for end in starts[1:]]
        found = [
            row[1:]
            for row in rows(report.table("growth_over_time"), "cluster_id", "topics", "partitions")
            if row[0] == cluster
        ]
        assert found == expected
    prefixes = report.table("growth_by_prefix")
    assert prefixes.totals["partitions"] == sum(
        sizes_at([e for e in EVENTS if e.cluster_id == c], starts[-1])[1] for c in CLUSTERS
    )
    done = [event for event in DECISIONS if outcome(event) == "applied"]
    for column, operation in (("created", "create_topic"), ("deleted", "delete_topic")):
        key = [(event.cluster_id, event.name.partition(".")[0]) for event in done if event.operation == operation]
        assert {row[:2]: row[2] for row in rows(prefixes, "cluster_id", "prefix", column)} == Counter(key)


def sizes_at(events: list[AuditEvent], end: int) -> tuple[int, int]:
    replay = Replay()
    for event in events:
        if event.time_ms * 1000 < end:
            assert list(replay.apply(event)) == []
    seen = [state for state in replay.topics.values() if not state.marked_for_deletion]
    return len(seen), sum(len(state.replicas) for state in seen)


def test_durations_are_those_of_what_was_carried_out(report: Report) -> None:
    """p50, p90 and p99 are less than 1 % off, by operation, way and cluster; the slowest is exact
    (P-3a).
    """
    done = [event for event in DECISIONS if outcome(event) == "applied"]
    ways = {-1: "unknown", 0: "forwarded", 1: "local"}

    def way(event: Decision) -> str:
        return ways[-1 if event.received_node == -1 else int(event.received_node == event.decided_node)]

    groups = by(lambda event: (event.cluster_id, event.operation, way(event)), done)
    table = report.table("durations_by_operation")
    assert rows(table, "cluster_id", "operation", "way") == sorted(groups)
    for key, figures in zip(
        sorted(groups), rows(table, "changes", "p50_us", "p90_us", "p99_us", "slowest_us"), strict=True
    ):
        values = sorted(event.latency_us for event in groups[key])
        assert (figures[0], figures[4]) == (len(values), values[-1])
        for percent, value in zip((50, 90, 99), figures[1:4], strict=True):
            assert value == pytest.approx(values[-(-len(values) * percent // 100) - 1], rel=0.01)
    assert sum(report.table("durations_over_time").values("changes")) == len(done)


def test_forwarding_is_counted_by_the_node_that_was_asked(report: Report) -> None:
    """Each node's own and forwarded decisions are counted; what came from nobody knows where is
    left out (P-3a).
    """
    known = [event for event in DECISIONS if event.received_node != -1]
    assert {
        row[:2]: row[2:]
        for row in rows(report.table("forwarding_by_node"), "cluster_id", "received_node", "local", "forwarded")
    } == {
        key: (local := sum(event.received_node == event.decided_node for event in events), len(events) - local)
        for key, events in by(lambda event: (event.cluster_id, event.received_node), known).items()
    }


def test_changes_of_controllers_are_told(report: Report) -> None:
    """Each with the nodes, the time without events, and what was carried out in the first minute
    (P-3a).
    """
    table = report.table("controller_changes")
    for cluster, epoch, began, before, node, silence, first, slowest in rows(
        table, "cluster_id", "epoch", "began", "node_before", "node", "silence_us", "first_minute", "slowest_us"
    ):
        own = [event for event in EVENTS if (event.cluster_id, event.epoch) == (cluster, epoch)]
        earlier = [event for event in EVENTS if (event.cluster_id, event.epoch) == (cluster, epoch - 1)]
        assert (before, node) == (earlier[0].decided_node, own[0].decided_node)
        assert began == own[0].time_ms * 1000
        assert silence == began - earlier[-1].time_ms * 1000
        near = [
            event
            for event in decisions(own)
            if outcome(event) == "applied" and event.time_ms * 1000 < began + 60_000_000
        ]
        assert (first, slowest) == (len(near), max(event.latency_us for event in near))
    assert table.all_rows == 6
    around = report.table("durations_around_controller_changes")
    assert around.values("seconds") == list(range(-60, 60, 5))


# ------------------------------------------------------------------ percentiles


@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_a_percentile_is_less_than_one_percent_off(values: list[int]) -> None:
    """A percentile is less than one percent off whatever the values are, and exact below 128."""
    counted = f"""(
        SELECT 'a' AS name, {bucket("value")} AS bucket, count(*) AS changes, max(value) AS slowest
        FROM (SELECT unnest(?::BIGINT[]) AS value) GROUP BY ALL)"""
    found = duckdb.execute(percentiles("name", counted), [values]).fetchall()
    exact = [sorted(values)[-(-len(values) * percent // 100) - 1] for percent in (50, 90, 99)]
    assert found == [("a", len(values), *(pytest.approx(value, rel=0.01) for value in exact), max(values))]
    assert all(value >= 128 or value == told for value, told in zip(exact, found[0][2:5], strict=True))


def test_tasks_find_the_same_buckets() -> None:
    """The bucket of a value keeps its seven leading bits, at all powers of two up to years."""
    values = sorted({-5, 0, 1, *(2**power + more for power in range(1, 47) for more in (-1, 0, 1))})
    query = f"SELECT value, {bucket('value')} FROM (SELECT unnest({values})::BIGINT AS value)"
    for value, found in duckdb.execute(query).fetchall():
        shift = max(value.bit_length() - 7, 0)
        assert found == (max(value, 0) >> shift << shift)


def test_every_table_is_documented(report: Report) -> None:
    """docs/pipeline.md tells of every table of a report and its columns, and of no other (P-3a)."""
    section = DOCUMENT.read_text(encoding="utf-8").partition("### The tables of a report\n")[2].partition("\n## ")[0]
    told = [
        [re.findall(r"`(\w+)`", cell) for cell in line.split(" | ")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    assert {cells[0][0]: cells[-1] for cells in told} == {
        table.name: [column.name for column in table.columns] for table in report.tables
    }
