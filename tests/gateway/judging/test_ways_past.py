"""Requests that might get past the judgement of a gateway, or be held up by it: topics that others
have deleted, policies that hang, and states that the cluster does not tell.
"""

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from minicontroller.audit.event import Effect
from minicontroller.gateway.judging.mirror import NAMES_AT_ONCE
from tests.gateway.judging.asking import (
    NO_ID,
    RULES,
    UNKNOWN_TOPIC,
    VIOLATION,
    create,
    decisions,
    shown,
    topic,
)
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.wire import Wire

HANGING = """
import time
from minicontroller import policies

class Hanging(policies.TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        time.sleep(3600)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=1, settings={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


def unjudged_requests(gateway: GatewayProcess) -> float:
    with urllib.request.urlopen(f"http://{gateway.http}/metrics") as response:
        text = response.read().decode()
    found = re.search(r"^minicontroller_gateway_unjudged_requests_total\{.*\} (\S+)$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize("version", [1, 9])
def test_a_topic_that_others_have_deleted(cluster: MiniCluster, tmp_path: Path, version: int) -> None:
    """A topic that the gateway has seen and that others have deleted since is created again by a
    mere question for it only if the rules allow it.
    """
    name = f"DELETED{version}"
    (tmp_path / "rules.toml").write_text(RULES)
    settings = {"policy.rules.files": f"{tmp_path}/rules.toml", "audit.dir": f"{tmp_path}/audit"}
    with Wire(cluster.bootstrap) as direct:
        create(direct, topic(name))
        with running_gateway(cluster.bootstrap, settings=settings) as gateway, Wire(gateway.bootstrap) as wire:
            deleted = {"topics": [{"name": name, "topic_id": NO_ID}], "timeout_ms": 10_000}
            assert direct.ask("DeleteTopics", 6, deleted)["responses"][0]["error_code"] == 0
            others = [{"name": f"OTHER{number}"} for number in range(NAMES_AT_ONCE)] if version >= 4 else []
            asked = {"topics": [*others, {"name": name}]} | ({"allow_auto_topic_creation": True} if others else {})
            rows = wire.ask("Metadata", version, asked)["topics"]
            assert {row["error_code"] for row in rows} == {VIOLATION}
        assert shown(direct, name) == {name: (UNKNOWN_TOPIC, 0)}
    (decision,) = decisions(tmp_path, name)
    assert (decision.api, decision.error, decision.effect) == ("Metadata", "POLICY_VIOLATION", Effect.NONE)


def test_observing_does_not_wait_for_a_policy_that_hangs(cluster: MiniCluster, tmp_path: Path) -> None:
    """A gateway that observes passes a request before its policy has said anything, counts it as
    not judged, and ends though the policy still hangs.
    """
    (tmp_path / "hanging.py").write_text(HANGING)
    settings = {
        "topic.management.policy.class.name": f"{tmp_path}/hanging.py:Hanging",
        "policy.timeout.ms": "600000",
        "audit.dir": f"{tmp_path}/audit",
        "observe": "true",
        "http.listen": "127.0.0.1:0",
    }
    with running_gateway(cluster.bootstrap, settings=settings) as gateway, Wire(gateway.bootstrap) as wire:
        assert create(wire, topic("hangs"), topic("too")) == [("hangs", 0), ("too", 0)]
        assert unjudged_requests(gateway) == 1
    recorded = [(each.name, each.effect, each.policy) for each in decisions(tmp_path, "hangs", "too")]
    assert recorded == [("hangs", Effect.APPLIED, None), ("too", Effect.APPLIED, None)]
