"""The page, the metrics and the health of a gateway, over its HTTP port."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from minicontroller.gateway.site import GATEWAY_FAMILIES, SHARED_FAMILIES
from minicontroller.network.http.families import PREFIX
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.waiting import until
from tests.support.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
RULES = """
[[partitions]]
max = 5
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateway(cluster: MiniCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "rules.toml").write_text(RULES)
    settings = {
        "policy.rules.files": f"{folder}/rules.toml",
        "http.listen": "127.0.0.1:0",
        "audit.dir": f"{folder}/audit",
    }
    with running_gateway(cluster.bootstrap, settings=settings) as gateway, Wire(gateway.bootstrap) as wire:
        topics = [
            {"name": name, "num_partitions": count, "replication_factor": 1} for name, count in (("a", 2), ("b", 6))
        ]
        answer = wire.ask("CreateTopics", 7, {"topics": topics, "timeout_ms": 10_000})
        assert [row["error_code"] for row in answer["topics"]] == [0, 44]
        yield gateway


def get(gateway: GatewayProcess, path: str) -> bytes:
    with urlopen(f"http://{gateway.http}{path}", timeout=30) as answer:
        body: bytes = answer.read()
    return body


def told(gateway: GatewayProcess, path: str) -> Any:
    return json.loads(get(gateway, path))


def test_the_page_shows_decisions_and_topics(gateway: GatewayProcess) -> None:
    """The page shows what was decided and why, the topics of the cluster, and how the gateway
    judges.
    """
    assert b"<title>minicontroller</title>" in get(gateway, "/")
    until(lambda: len(told(gateway, "/api/decisions")) == 2)
    decided = {each["name"]: (each["outcome"], each.get("reason", "")) for each in told(gateway, "/api/decisions")}
    assert decided == {"a": ("NONE", ""), "b": ("POLICY_VIOLATION", "6 partitions are more than 5.")}
    assert [row["name"] for row in told(gateway, "/api/topics")["rows"]] == ["a"]
    topic = told(gateway, "/api/topic?name=a")
    assert (topic["there"], topic["partitions"], topic["configs"]) == (True, 2, {})
    state = told(gateway, "/api/state")
    assert state["ready"] and state["recorded"] and state["topics"] == 1 and len(state["nodes"]) == 1
    assert state["gateway"][0] == "This is a gateway that enforces its policy."
    history = told(gateway, "/api/history")
    assert {row["name"] for row in history["entries"]} == {"a", "b"}


def test_health(gateway: GatewayProcess) -> None:
    """A gateway that serves is ready."""
    assert told(gateway, "/health/live") == {"live": True}
    assert told(gateway, "/health/ready") == {"ready": True, "reasons": [], "nodes": []}


def test_health_tells_that_changes_are_refused(cluster: MiniCluster, tmp_path: Path) -> None:
    """While the audit log cannot be written, changes are refused and records flow: the gateway is
    ready, and says why to look.
    """
    folder = tmp_path / "audit"
    with running_gateway(
        cluster.bootstrap, settings={"http.listen": "127.0.0.1:0", "audit.dir": str(folder), "audit.flush": "always"}
    ) as gateway:
        folder.rename(tmp_path / "elsewhere")
        folder.write_text("")
        with Wire(gateway.bootstrap) as wire:
            wire.send(wire.frame("DeleteTopics", 3, {"topic_names": ["none"], "timeout_ms": 1}))  # its answer may wait
            health = until(partial(told, gateway, "/health/ready"), right=lambda seen: bool(seen["reasons"]))
        folder.unlink()
        (tmp_path / "elsewhere").rename(folder)
    assert health["ready"] and health["reasons"][0].startswith("The audit log cannot be written (")


def test_every_metric_is_there(gateway: GatewayProcess) -> None:
    """The scrape has the families that are declared, and counts what has passed."""
    families = {each.name: each for each in text_string_to_metric_families(get(gateway, "/metrics").decode())}
    assert {name for name in families if name.startswith(PREFIX)} == {PREFIX + name for name in GATEWAY_FAMILIES}
    requests = {each.labels["api"]: each.value for each in families[f"{PREFIX}gateway_requests"].samples}
    assert requests["CreateTopics"] == 1
    samples = families[f"{PREFIX}policy_verdicts"].samples
    verdicts = {each.labels["decision"]: each.value for each in samples if each.value}
    assert verdicts == {"allowed": 1, "violated": 1}


def test_the_document_lists_every_metric() -> None:
    """docs/gateway.md has a row for each family of its own, with its labels and its help."""
    text = (ROOT / "docs" / "gateway.md").read_text()
    row = re.compile(rf"^\| `({PREFIX}\w+)` \| ([^|]*) \|[^|]*\| ([^|]*) \|$", re.MULTILINE)
    listed = {
        name: (tuple(label.strip("` ") for label in labels.split(",")), meaning)
        for name, labels, meaning in row.findall(text)
    }
    assert listed == {
        PREFIX + name + ("_total" if kind is CounterMetricFamily else ""): (labels, text)
        for name, (kind, text, labels) in GATEWAY_FAMILIES.items()
        if name not in SHARED_FAMILIES
    }


def test_alerts_ask_for_what_is_there() -> None:
    """Each alert asks for a metric of the gateway, and says what to do."""
    (group,) = yaml.safe_load((ROOT / "config" / "gateway-alerts.yml").read_text())["groups"]
    names = {PREFIX + name for name in GATEWAY_FAMILIES}
    for rule in group["rules"]:
        asked = set(re.findall(rf"{PREFIX}\w+", rule["expr"]))
        assert asked and {each.removesuffix("_total") for each in asked} <= names, rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
