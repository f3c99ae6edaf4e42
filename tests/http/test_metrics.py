"""/metrics: what is counted, what never is, and that dashboard, alerts and documents speak of what
is there.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from minicontroller.network.http.families import FAMILIES, PREFIX
from minicontroller.protocol.error_codes import ErrorCode
from tests.http.conftest import POLICY
from tests.support.certificates import Authority
from tests.support.cluster import MiniCluster, controller_id, running_cluster
from tests.support.http import ask
from tests.support.waiting import until
from tests.support.wire import Wire

ROOT = Path(__file__).parents[2]
FROM_PROMETHEUS = {"job", "instance"}
"""Labels that the scraping adds."""
VARIABLES = {"$job": ".*", "$node": ".*", "$__rate_interval": "5m"}
"""Grafana's, as it fills them in."""

RULES = """
[[partitions]]
name = "few"
max = 2
action = "warn"

[[partitions]]
name = "one"
max = 1
action = "audit"

[[rule]]
name = "lasting"
operations = ["create"]
topics = ["team-lasting*"]
condition = 'int(after.configs["retention.ms"]) > 1'
"""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(name="folder", scope="module")
def of_rules_and_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(name="cluster", scope="module")
def with_everything_that_is_counted(folder: Path) -> Iterator[MiniCluster]:
    """Run a cluster with a policy, rules and an audit log, after a request to each node."""
    (folder / "teams.py").write_text(POLICY)
    (folder / "rules.toml").write_text(RULES)
    settings = {
        "topic.management.policy.class.name": f"{folder}/teams.py:Teams",
        "policy.rules.files": f"{folder}/rules.toml",
        "policy.rules.reload.interval.ms": "50",
        "audit.dir": f"{folder}/audit",
        "audit.max.bytes": "1024",
        "audit.flush": "always",
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0,SECURED://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,SECURED:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(Authority(folder).issue("node", "127.0.0.1")),
    }
    with running_cluster(settings=settings) as cluster:
        for number in cluster.addresses:
            make(cluster, f"team-{number}", partitions=3, node=number)
        yield cluster


def make(cluster: MiniCluster, name: str, *, partitions: int = 1, node: int = 1, timeout_ms: int = 30_000) -> int:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    with Wire(cluster.addresses[node]) as wire:
        (row,) = wire.ask("CreateTopics", 5, {"topics": [topic], "timeout_ms": timeout_ms})["topics"]
    code: int = row["error_code"]
    return code


def scraped(cluster: MiniCluster) -> Samples:
    families = text_string_to_metric_families(ask(cluster, "/metrics").text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """Return the sum of all samples with at least these labels."""
    return sum(
        number for (found, has), number in samples.items() if found == PREFIX + name and has >= set(labels.items())
    )


def exposed() -> dict[str, set[str]]:
    """Every name that a query may use, with its labels."""
    names: dict[str, set[str]] = {}
    for name, (kind, _, labels) in FAMILIES.items():
        if kind is HistogramMetricFamily:
            names |= {f"{PREFIX}{name}_{part}": {*labels} for part in ("sum", "count")}
            names[f"{PREFIX}{name}_bucket"] = {*labels, "le"}
        else:
            names[PREFIX + name + ("_total" if kind is CounterMetricFamily else "")] = {*labels}
    return names


def test_requests_are_counted_by_outcome(cluster: MiniCluster) -> None:
    """A request is counted once, by its version and the first error code in its answer, and its
    time is in the histogram.
    """
    before = scraped(cluster)
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("team-counted", "uncounted")]
    with Wire(cluster.addresses[1]) as wire:
        wire.ask("CreateTopics", 5, {"topics": topics, "timeout_ms": 30_000})
        wire.ask("Metadata", 9, {"topics": [{"name": "no-such"}], "allow_auto_topic_creation": False})
    after = scraped(cluster)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("requests_total", node="1", api="CreateTopics", version="5", outcome="POLICY_VIOLATION") == 1
    assert grown("requests_total", api="Metadata", version="9", outcome="UNKNOWN_TOPIC_OR_PARTITION") == 1
    assert grown("request_seconds_count", node="1", api="CreateTopics") == 1
    assert grown("decisions_total", api="CreateTopics", outcome="NONE") == 1
    assert grown("decisions_total", api="CreateTopics", outcome="POLICY_VIOLATION") == 1
    assert grown("policy_verdicts_total", decision="violated") == 1
    assert grown("commits_total") == 1


def test_the_controller_is_told_from_the_others(cluster: MiniCluster) -> None:
    """Each of three nodes in one process has its own series, and one is the controller."""
    samples = scraped(cluster)
    assert value(samples, "is_controller") == 1
    assert value(samples, "ready") == 3
    assert value(samples, "elections_won_total") >= 1
    assert {value(samples, "brokers", node=str(number)) for number in (1, 2, 3)} == {3}
    assert value(samples, "store_session", state="connected") == 3


def test_forwarded_requests_are_counted_where_they_came(cluster: MiniCluster) -> None:
    """The node that was asked counts that it sent the request on, and what came of it."""
    with Wire(cluster.addresses[1]) as wire:
        controller = wire.ask("Metadata", 1, {"topics": []})["controller_id"]
    other = next(number for number in cluster.addresses if number != controller)
    before = value(scraped(cluster), "forwarded_requests_total", node=str(other), result="answered")
    with Wire(cluster.addresses[other]) as wire:
        wire.ask("CreateTopics", 5, {"topics": [{"name": "sent-on"}], "timeout_ms": 30_000})
    assert value(scraped(cluster), "forwarded_requests_total", node=str(other), result="answered") == before + 1


def test_unknown_names_make_no_series(cluster: MiniCluster) -> None:
    """Unknown client ids, topics, versions and software make no new series and appear nowhere in
    the metrics.
    """

    def ask_as(name: str) -> None:
        with Wire(cluster.addresses[1]) as wire:
            wire.ask("ApiVersions", 3, {"client_software_name": name, "client_software_version": "1"})
            topics = [{"name": f"team-{name}", "num_partitions": 1, "replication_factor": 1}]
            wire.ask("CreateTopics", 5, {"topics": topics, "timeout_ms": 30_000})

    ask_as("stranger-0")
    before = scraped(cluster)
    for number in range(1, 30):
        ask_as(f"stranger-{number}")
    assert scraped(cluster).keys() == before.keys()
    assert "stranger" not in ask(cluster, "/metrics").text


def test_rules_are_counted_whatever_they_do(cluster: MiniCluster) -> None:
    """A warning, a note and a rule that cannot be evaluated: each by its name and what it did, also
    where nothing was refused.
    """
    before = scraped(cluster)
    assert make(cluster, "team-wide", partitions=3) == 0
    assert make(cluster, "team-lasting") == ErrorCode.POLICY_VIOLATION
    after = scraped(cluster)
    for rule, action in (("few", "warn"), ("one", "audit"), ("lasting", "failed")):
        labels = {"rule": rule, "action": action}
        name = "policy_findings_total"
        assert value(after, name, **labels) - value(before, name, **labels) == 1, rule
    would_be = "would_be_refused_total"
    assert value(after, would_be, rule="few") - value(before, would_be, rule="few") == 1


def test_rule_files_tell_whether_they_are_in_force(cluster: MiniCluster, folder: Path) -> None:
    """A mistake shows at once, and so does its end; a rule that is no longer there leaves no
    series.
    """
    first = scraped(cluster)
    assert {value(first, name, node="1") for name in ("rule_files_valid", "rules")} == {1, 3}
    policies = {dict(labels)["policy"] for name, labels in first if name == f"{PREFIX}policy_verdicts_total"}
    assert len(policies) == 1 and policies.pop().startswith("Teams and ")
    rewrite(folder, "[[partitions]]\nmaks = 1\n")
    until(lambda: value(scraped(cluster), "rule_files_valid"), right=lambda number: number == 0)
    assert value(scraped(cluster), "rule_loads_total", node="1", result="refused") == 1
    rewrite(folder, "rule_count = 0\n")
    until(lambda: value(scraped(cluster), "rule_files_valid"), right=lambda number: number == 3)
    until(lambda: value(scraped(cluster), "rules"), right=lambda number: number == 0)
    last = scraped(cluster)
    assert value(last, "rule_loads_total", node="1", result="in_force") == 2
    loaded = "rule_files_loaded_timestamp_seconds"
    assert value(last, loaded, node="1") > value(first, loaded, node="1")
    assert not [labels for name, labels in last if name == f"{PREFIX}policy_findings_total"]
    rewrite(folder, RULES)
    until(lambda: value(scraped(cluster), "rules"), right=lambda number: number == 9)
    make(cluster, "team-again", partitions=3)


def rewrite(folder: Path, rules: str) -> None:
    """At once, so that no node reads half of it."""
    (folder / "rules.new").write_text(rules)
    (folder / "rules.new").rename(folder / "rules.toml")


def test_the_audit_log_is_counted(cluster: MiniCluster, folder: Path) -> None:
    """Written events, failed writes and refusals of the audit log are counted."""
    node = str(controller_id(cluster))
    before = scraped(cluster)
    make(cluster, "team-recorded")
    name = "audit_events_total"
    assert value(scraped(cluster), name, node=node) > value(before, name, node=node)
    audit = folder / "audit"
    audit.rename(folder / "away")
    try:
        until(
            lambda: make(cluster, "team-unrecorded", timeout_ms=500),
            right=lambda code: code == ErrorCode.POLICY_VIOLATION,
        )
    finally:
        (folder / "away").rename(audit)
    after = scraped(cluster)
    for name in ("audit_failed_writes_total", "audit_refused_requests_total"):
        assert value(after, name, node=node) > value(before, name, node=node), name


def queries() -> Iterator[tuple[str, str]]:
    """Each query of the dashboard and of the alerts, with its place."""
    dashboard: dict[str, Any] = json.loads((ROOT / "config" / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield f"{panel['title']}-{target['refId']}", target["expr"]
    for group in yaml.safe_load((ROOT / "config" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def selectors(node: Any) -> Iterator[tuple[str, set[str]]]:
    """Each metric of a parsed query, with the labels that are asked of it."""
    if isinstance(node, promql_parser.VectorSelector):
        assert node.name
        yield node.name, {matcher.name for matcher in node.matchers.matchers}
    elif isinstance(node, promql_parser.MatrixSelector):
        yield from selectors(node.vector_selector)
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from selectors(argument)
    elif isinstance(node, promql_parser.BinaryExpr):
        yield from selectors(node.lhs)
        yield from selectors(node.rhs)
    elif isinstance(node, (promql_parser.AggregateExpr, promql_parser.ParenExpr, promql_parser.UnaryExpr)):
        yield from selectors(node.expr)


@pytest.mark.parametrize(("place", "query"), [*queries()])
def test_queries_ask_for_what_is_there(cluster: MiniCluster, place: str, query: str) -> None:
    """Each query parses, and finds series with the labels that it asks for in a real scrape;
    groupings name labels that there are.
    """
    for variable, text in VARIABLES.items():
        query = query.replace(variable, text)
    found = list(selectors(promql_parser.parse(query)))
    assert found, place
    ours, samples = exposed(), [(name, {label for label, _ in labels}) for name, labels in scraped(cluster)]
    for name, labels in found:
        if name == "up":
            continue  # Prometheus' own
        assert name in ours or name.startswith("process_"), f"{place}: {name} is not exposed"
        assert any(name == each and labels - FROM_PROMETHEUS <= has for each, has in samples), (
            f"{place}: no series {name} with {labels}"
        )
        for group in re.findall(r"by \(([^)]*)\)", query):
            assert {label.strip() for label in group.split(",")} <= ours.get(name, set()) | FROM_PROMETHEUS, place


def test_the_scrape_is_what_is_declared(cluster: MiniCluster) -> None:
    """Every sample of ours belongs to a declared family and carries exactly its labels; histograms
    add up.
    """
    ours = exposed()
    samples = scraped(cluster)
    for name, labels in samples:
        if name.startswith(PREFIX):
            assert {label for label, _ in labels} == ours[name], name
    for (name, labels), number in samples.items():
        if name == f"{PREFIX}request_seconds_count":
            assert samples[f"{PREFIX}request_seconds_bucket", labels | {("le", "+Inf")}] == number


def test_the_document_lists_every_metric() -> None:
    """docs/operations.md has a row for each family, with its labels and its help, and no other."""
    text = (ROOT / "docs" / "operations.md").read_text()
    row = re.compile(rf"^\| `({PREFIX}\w+)` \| ([^|]*) \|[^|]*\| ([^|]*) \|$", re.MULTILINE)
    listed = {
        name: ({label.strip("` ") for label in labels.split(",") if label.strip()}, meaning)
        for name, labels, meaning in row.findall(text)
    }
    declared = {
        PREFIX + name + ("_total" if kind is CounterMetricFamily else ""): (set(labels), text)
        for name, (kind, text, labels) in FAMILIES.items()
    }
    assert listed == declared


def test_alerts_say_what_to_do() -> None:
    """Each alert has a severity, a summary and a description."""
    for group in yaml.safe_load((ROOT / "config" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in {"info", "warning", "critical"}, rule["alert"]
            assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
