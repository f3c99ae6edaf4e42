"""/metrics: what is counted, what never is, and that dashboard, alerts and documents speak of what is there."""

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

from minicontroller.controller.http.exposition import FAMILIES, PREFIX
from tests.support.cluster import MiniCluster
from tests.support.http import ask
from tests.support.wire import Wire

ROOT = Path(__file__).parents[2]
FROM_PROMETHEUS = {"job", "instance"}
"""Labels that the scraping adds."""
VARIABLES = {"$job": ".*", "$node": ".*", "$__rate_interval": "5m"}
"""Grafana's, as it fills them in."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(cluster: MiniCluster) -> Samples:
    families = text_string_to_metric_families(ask(cluster, "/metrics").text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """Of all samples with at least these labels, together."""
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
    """A request is counted once, by its version and the first error code in its answer, and its time is in the histogram."""
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
    assert grown("policy_verdicts_total", policy="Teams", decision="violated") == 1
    assert grown("commits_total") == 1


def test_the_controller_is_told_from_the_others(cluster: MiniCluster) -> None:
    """Of three nodes in one process, each has its own series; one is the controller."""
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


def test_strangers_make_no_series(cluster: MiniCluster) -> None:
    """Other client ids, topics, versions and software make no new series, and appear nowhere in the scrape."""

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
    """Each query parses, and names only metrics and labels that this version exposes; groupings too."""
    for variable, text in VARIABLES.items():
        query = query.replace(variable, text)
    found = list(selectors(promql_parser.parse(query)))
    assert found, place
    ours = exposed()
    process = {name for name, _ in scraped(cluster) if name.startswith("process_")}
    for name, labels in found:
        assert name in ours or name in process, f"{place}: {name} is not exposed"
        assert labels <= ours.get(name, set()) | FROM_PROMETHEUS, f"{place}: {name} has no labels {labels}"
        for group in re.findall(r"by \(([^)]*)\)", query):
            assert {label.strip() for label in group.split(",")} <= ours.get(name, set()) | FROM_PROMETHEUS, place


def test_the_scrape_is_what_is_declared(cluster: MiniCluster) -> None:
    """Every sample of ours belongs to a declared family and carries exactly its labels; histograms add up."""
    ours = exposed()
    samples = scraped(cluster)
    for name, labels in samples:
        if name.startswith(PREFIX):
            assert {label for label, _ in labels} == ours[name], name
    for (name, labels), number in samples.items():
        if name == f"{PREFIX}request_seconds_count":
            assert samples[f"{PREFIX}request_seconds_bucket", labels | {("le", "+Inf")}] == number


def test_the_document_lists_every_metric() -> None:
    """docs/operations.md has a row for each family, with its labels, and no other."""
    text = (ROOT / "docs" / "operations.md").read_text()
    listed = {
        name: {label.strip("` ") for label in labels.split(",") if label.strip()}
        for name, labels in re.findall(rf"^\| `({PREFIX}\w+)` \| ([^|]*) \|", text, re.MULTILINE)
    }
    declared = {
        PREFIX + name + ("_total" if kind is CounterMetricFamily else ""): set(labels)
        for name, (kind, _, labels) in FAMILIES.items()
    }
    assert listed == declared


def test_alerts_say_what_to_do() -> None:
    """Each alert has a severity, a summary and a description."""
    for group in yaml.safe_load((ROOT / "config" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in {"warning", "critical"}, rule["alert"]
            assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
