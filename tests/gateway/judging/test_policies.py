"""Requests through gateways that do not just enforce rules: one that observes, some whose policy
fails or judges requests without a state, and some whose cluster changes or is gone.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from minicontroller.audit.event import Decision, Effect
from minicontroller.audit.verifying import Verification
from tests.conformance.scenario import error_codes
from tests.gateway.judging.asking import (
    NO_ID,
    NOT_CONTROLLER,
    NOT_LEADER,
    RULES,
    UNKNOWN_SERVER_ERROR,
    VIOLATION,
    create,
    decisions,
    events,
    topic,
)
from tests.gateway.test_site import told
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.waiting import until
from tests.support.wire import Wire

FAILING = """
from minicontroller import policies

class Failing(policies.TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        return "something that is no verdict"
"""
NO_MALLORY = """
from minicontroller import policies

class NoMallory(policies.TopicManagementPolicy):
    def validate_admin(self, request, cluster):
        if "mallory" in request.name:
            raise policies.PolicyViolation("Not mallory.")
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    """A cluster with ACLs, in which everybody may do everything."""
    settings = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}
    with running_cluster(brokers=1, settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="module", name="audited")
def audited_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("no-mallory")


@pytest.fixture(scope="module", name="no_mallory")
def gateway_of_no_mallory(cluster: MiniCluster, audited: Path) -> Iterator[GatewayProcess]:
    (audited / "no_mallory.py").write_text(NO_MALLORY)
    settings = {
        "topic.management.policy.class.name": f"{audited}/no_mallory.py:NoMallory",
        "audit.dir": f"{audited}/audit",
        "audit.flush": "always",
    }
    with running_gateway(cluster.bootstrap, settings=settings) as gateway:
        yield gateway


def test_changes_that_others_make_are_observed(cluster: MiniCluster, tmp_path: Path) -> None:
    """What is changed at the cluster itself is in the log of a gateway when it has read it, and
    before a request about it is judged.
    """
    settings = {"audit.dir": f"{tmp_path}/audit", "audit.flush": "always", "metadata.max.age.ms": "100"}
    with (
        running_gateway(cluster.bootstrap, settings=settings) as gateway,
        Wire(cluster.bootstrap) as direct,
    ):
        create(direct, topic("seen"))
        until(lambda: [each for each in events(tmp_path) if getattr(each, "topic", "") == "seen"])
        create(direct, topic("looked-at"))
        with Wire(gateway.bootstrap) as wire:
            (row,) = wire.ask(
                "DeleteTopics", 6, {"topics": [{"name": "looked-at", "topic_id": NO_ID}], "timeout_ms": 10_000}
            )["responses"]
        assert row["error_code"] == 0
        (deleted,) = decisions(tmp_path, "looked-at")
        assert deleted.before is not None and deleted.policy is None
    assert not list(Verification([tmp_path / "audit"]).findings())


def test_a_gateway_that_observes_refuses_nothing(cluster: MiniCluster, tmp_path: Path) -> None:
    """With `--observe` the verdict is recorded, and the cluster decides."""
    (tmp_path / "rules.toml").write_text(RULES)
    settings = {"policy.rules.files": f"{tmp_path}/rules.toml", "audit.dir": f"{tmp_path}/audit", "observe": "true"}
    with running_gateway(cluster.bootstrap, settings=settings) as gateway, Wire(gateway.bootstrap) as wire:
        assert create(wire, topic("OBSERVED")) == [("OBSERVED", 0)]
    (created,) = decisions(tmp_path, "OBSERVED")
    assert created.policy is not None and created.policy.decision == "violated"
    assert (created.error_code, created.effect, created.enforced) == (0, Effect.APPLIED, False)
    assert "the gateway observes" in gateway.output


@pytest.mark.parametrize(("on_failure", "code"), [("refuse", UNKNOWN_SERVER_ERROR), ("pass", 0)])
def test_a_policy_that_fails(cluster: MiniCluster, tmp_path: Path, on_failure: str, code: int) -> None:
    """`on.failure` says what becomes of a request that the policy cannot judge; its failure is
    recorded, and the log says of no request that passed that it was refused.
    """
    (tmp_path / "failing.py").write_text(FAILING)
    settings = {
        "topic.management.policy.class.name": f"{tmp_path}/failing.py:Failing",
        "audit.dir": f"{tmp_path}/audit",
        "on.failure": on_failure,
    }
    with running_gateway(cluster.bootstrap, settings=settings) as gateway, Wire(gateway.bootstrap) as wire:
        assert create(wire, topic(f"judged-{on_failure}")) == [(f"judged-{on_failure}", code)]
    (decision,) = decisions(tmp_path, f"judged-{on_failure}")
    assert decision.policy is not None and decision.policy.decision == "broken"
    assert decision.enforced is (on_failure == "refuse")
    assert f"Failing failed on CreateTopics of topic judged-{on_failure} by " in gateway.output
    passed = "is passed, because the gateway cannot judge it: its policy failed"
    assert (passed in gateway.output) is (on_failure == "pass")
    assert "refused" not in gateway.output


def test_clients_learn_no_address_of_a_cluster_that_is_gone(tmp_path: Path) -> None:
    """What cannot be judged is refused by a code for which clients ask again, without a word of the
    brokers. The log names them, once a minute, and health says why changes are refused.
    """
    (tmp_path / "rules.toml").write_text(RULES)
    settings = {"policy.rules.files": f"{tmp_path}/rules.toml", "http.listen": "127.0.0.1:0"}
    resource = {"resource_type": 2, "resource_name": "after", "configs": []}
    asked: dict[str, tuple[int, dict[str, Any]]] = {
        "CreateTopics": (7, {"topics": [topic("after")], "timeout_ms": 10_000}),
        "DeleteTopics": (5, {"topic_names": ["after"], "timeout_ms": 10_000}),
        "IncrementalAlterConfigs": (1, {"resources": [resource]}),
        "DeleteRecords": (
            2,
            {"topics": [{"name": "after", "partitions": [{"partition_index": 0, "offset": 1}]}], "timeout_ms": 1},
        ),
    }
    cluster = MiniCluster(brokers=1)
    cluster.start()
    try:
        with running_gateway(cluster.bootstrap, settings=settings) as gateway:
            cluster.kill()
            with Wire(gateway.bootstrap) as wire:
                answers = {api: wire.ask(api, *question) for api, question in asked.items()}
            until(lambda: "cannot judge it: asking the cluster failed: " in gateway.output)
            health = until(partial(told, gateway, "/health/ready"), right=lambda told: bool(told["reasons"]))
            peer = [line for line in gateway.output.splitlines() if "minicontroller.peer" in line]
    finally:
        cluster.kill()
    (row,) = answers["CreateTopics"]["topics"]
    text = "The gateway cannot judge the request now: asking the cluster failed."
    assert (row["error_code"], row["error_message"]) == (NOT_CONTROLLER, text)
    assert {api: set(error_codes(answer)) for api, answer in answers.items()} == {
        "CreateTopics": {NOT_CONTROLLER},
        "DeleteTopics": {NOT_CONTROLLER},
        "IncrementalAlterConfigs": {NOT_CONTROLLER},
        "DeleteRecords": {NOT_LEADER},
    }
    assert len(peer) <= 2
    assert health["ready"] and health["reasons"][0].startswith("the cluster does not answer: ")


def test_requests_without_a_state_are_judged_as_a_whole(no_mallory: GatewayProcess, audited: Path) -> None:
    """A policy judges quotas, users, groups and the like by principal and name; one resource that
    it refuses refuses the request, and everything is recorded.
    """
    with Wire(no_mallory.bootstrap) as wire:
        for users, code in ((["alice"], 0), (["bob", "mallory"], VIOLATION)):
            entries = [
                {
                    "entity": [{"entity_type": "user", "entity_name": user}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e6, "remove": False}],
                }
                for user in users
            ]
            rows = wire.ask("AlterClientQuotas", 1, {"entries": entries, "validate_only": False})["entries"]
            assert [(row["error_code"], row["error_message"]) for row in rows] == [
                (code, "Not mallory." if code else None)
            ] * len(users)
    recorded = [each for each in events(audited) if isinstance(each, Decision)]
    assert [(each.name, each.error, each.effect) for each in recorded if each.api == "AlterClientQuotas"] == [
        ("user=alice", "NONE", Effect.APPLIED),
        ("user=bob", "POLICY_VIOLATION", Effect.NONE),
        ("user=mallory", "POLICY_VIOLATION", Effect.NONE),
    ]


def test_what_a_request_means_is_judged(cluster: MiniCluster, no_mallory: GatewayProcess) -> None:
    """DeleteAcls is judged by the ACLs that its filters match, and an election of everything by
    each topic: saying less gets around no rule.
    """
    with Wire(cluster.bootstrap) as direct, Wire(no_mallory.bootstrap) as wire:
        create(wire, topic("mallory-1"))
        acl = {"resource_type": 2, "resource_pattern_type": 3, "host": "*", "operation": 3, "permission_type": 3}
        for name in ("alice-1", "mallory-1"):
            creation = {**acl, "resource_name": name, "principal": "User:alice"}
            assert direct.ask("CreateAcls", 3, {"creations": [creation]})["results"][0]["error_code"] == 0
        anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        nobody = {"principal_filter": None, "host_filter": None}
        for wanted, code in ((None, VIOLATION), ("alice-1", 0)):
            asked = {"filters": [{**anything, **nobody, "resource_name_filter": wanted}]}
            (row,) = wire.ask("DeleteAcls", 3, asked)["filter_results"]
            assert row["error_code"] == code
        left = {**anything, **nobody, "resource_name_filter": None}
        assert [each["resource_name"] for each in direct.ask("DescribeAcls", 3, left)["resources"]] == ["mallory-1"]
        everything = {"election_type": 0, "topic_partitions": None, "timeout_ms": 10_000}
        until(lambda: elected(wire, everything).get("mallory-1") == [VIOLATION])
        assert {code for codes in elected(wire, everything).values() for code in codes} == {VIOLATION}
        path = direct.ask("DescribeLogDirs", 4, {"topics": []})["results"][0]["log_dir"]
        moved = {"path": path, "topics": [{"name": "mallory-1", "partitions": [0]}]}
        for each, code in ((wire, VIOLATION), (direct, 0)):
            (row,) = each.ask("AlterReplicaLogDirs", 2, {"dirs": [moved]})["results"]
            assert row["partitions"] == [{"partition_index": 0, "error_code": code}]


def elected(wire: Wire, asked: Mapping[str, Any]) -> dict[str, list[int]]:
    rows = wire.ask("ElectLeaders", 2, asked)["replica_election_results"]
    return {row["topic"]: [each["error_code"] for each in row["partition_result"]] for row in rows}
