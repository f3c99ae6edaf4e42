"""What people see of wishes to change something: all that was decided, and all that never came so
far, with the reason.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from minicontroller.admin.recording.decisions import KEPT, MAX_CHARACTERS
from minicontroller.policies import TopicManagementPolicy
from minicontroller.policies.interface import ClusterState, CreateTopicRequest, PolicyViolation
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages.create_topics import CreateTopicsRequest
from minicontroller.protocol.messages.stop_replica import StopReplicaRequest
from minicontroller.protocol.registry import KAFKA
from tests.handlers.altering import BROKER, BROKER_LOGGER
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import creating, ruling, wanted
from tests.support.cluster import MiniCluster, other_ids, running_cluster
from tests.support.http import ask
from tests.support.specs import APIS
from tests.support.waiting import until
from tests.support.wire import Wire

POLICY = """
import os
import time
from minicontroller.policies import PolicyViolation, TopicManagementPolicy


class Odd(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        while request.topic.startswith("slow") and not os.path.exists({gate!r}):
            time.sleep(0.01)
        if request.topic.startswith("broken"):
            raise ValueError("no such team")
"""
RULES = """
[[partitions]]
name = "many"
max = 2
action = "warn"
message = "These are many partitions."

[[replication]]
name = "never"
max = 9
"""


@pytest.fixture(name="gate", scope="module")
def the_policy_waits_for(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(name="odd", scope="module")
def that_refuses_much(gate: Path) -> Iterator[MiniCluster]:
    policy, rules = gate.with_name("odd.py"), gate.with_name("rules.toml")
    policy.write_text(POLICY.format(gate=str(gate)))
    rules.write_text(RULES)
    settings = {
        "topic.management.policy.class.name": f"{policy}:Odd",
        "policy.rules.files": str(rules),
        "policy.timeout.ms": "60000",
        "delete.topic.enable": "false",
        "controller.forwarding.enable": "false",
    }
    with running_cluster(settings=settings, traces=True) as cluster:
        yield cluster


def controller_of(cluster: MiniCluster) -> Wire:
    (number,) = cluster.addresses.keys() - set(other_ids(cluster))
    return Wire(cluster.addresses[number])


def last(cluster: MiniCluster) -> Mapping[str, Any]:
    decision: Mapping[str, Any] = ask(cluster, "/api/decisions").json[-1]
    return decision


def until_last(cluster: MiniCluster, wanted: tuple[str, str, str, str]) -> None:
    """Until this is the last decision that is shown."""
    until(lambda: shown(last(cluster)), right=lambda seen: seen == wanted)


def shown(decision: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return decision["api"], decision["kind"], decision["name"], decision["outcome"]


def test_what_is_switched_off_is_told(odd: MiniCluster) -> None:
    """With `delete.topic.enable=false` the page has the reason for a refused deletion, of which
    Kafka's client gets only a code.
    """
    with controller_of(odd) as wire:
        (row,) = wire.ask("DeleteTopics", 5, {"topic_names": ["mine"], "timeout_ms": 1000})["responses"]
    assert row["error_message"] is None
    until_last(odd, ("DeleteTopics", "topic", "mine", "TOPIC_DELETION_DISABLED"))
    assert last(odd)["reason"] == "delete.topic.enable is false."


def test_a_node_that_does_not_rule_is_told(odd: MiniCluster) -> None:
    """Without forwarding, the page shows requests that a node other than the controller refused,
    and topics that were not created automatically.
    """
    node = other_ids(odd)[0]
    with Wire(odd.addresses[node]) as wire:
        wire.ask("CreateTopics", 5, {"topics": [{"name": "astray", "num_partitions": 1, "replication_factor": 1}]})
        until_last(odd, ("CreateTopics", "topic", "astray", "NOT_CONTROLLER"))
        assert (last(odd)["node"], last(odd)["reason"]) == (node, "This node is not the controller.")
        wire.ask("Metadata", 9, {"topics": [{"name": "unasked"}], "allow_auto_topic_creation": True})
        until_last(odd, ("Metadata", "topic", "unasked", "NOT_CONTROLLER"))
        body = {"resources": [{"resource_type": 2, "resource_name": "astray", "configs": []}]}
        wire.ask("IncrementalAlterConfigs", 1, body)
        until_last(odd, ("IncrementalAlterConfigs", "topic", "astray", "NOT_CONTROLLER"))


def test_who_is_not_allowed_is_told(odd: MiniCluster) -> None:
    """The page shows refused requests of clients that claimed to be nodes or to forward
    for others.
    """
    with controller_of(odd) as wire:
        header = RequestHeader(int(ApiKey.STOP_REPLICA), 3, 1, "stranger")
        wire.exchange(KAFKA.encode_request(header, StopReplicaRequest()))
        until_last(odd, ("StopReplica", "request", "", "CLUSTER_AUTHORIZATION_FAILED"))
        assert last(odd)["client"] == "stranger"
        creates = CreateTopicsRequest(topics=[wanted("for-another", 1, 1)])
        header = RequestHeader(int(ApiKey.CREATE_TOPICS), 7, 1, "stranger", origin=RequestOrigin("User:admin"))
        wire.exchange(KAFKA.encode_request(header, creates))
    until_last(odd, ("CreateTopics", "topic", "for-another", "CLUSTER_AUTHORIZATION_FAILED"))
    assert "principal" not in last(odd)


def test_what_a_node_judges_itself_is_told(odd: MiniCluster) -> None:
    """Levels of its loggers, and configs of a node that it is not, never come to the controller."""
    with controller_of(odd) as wire:
        number = wire.ask("Metadata", 1, {"topics": []})["controller_id"]
        level = [{"name": "minicontroller.peer", "config_operation": 0, "value": "INFO"}]
        loggers = {"resource_type": BROKER_LOGGER, "resource_name": str(number), "configs": level}
        wire.ask("IncrementalAlterConfigs", 1, {"resources": [loggers]})
        until_last(odd, ("IncrementalAlterConfigs", "logger", str(number), "NONE"))
        other = {"resource_type": BROKER, "resource_name": "77", "configs": []}
        wire.ask("AlterConfigs", 1, {"resources": [other]})
    until_last(odd, ("AlterConfigs", "broker", "77", "INVALID_REQUEST"))
    assert "Unexpected broker id" in last(odd)["reason"]


def test_what_came_too_late_is_told(odd: MiniCluster, gate: Path) -> None:
    """A request whose time is over while its first topic is judged: nothing comes of that."""
    topic = {"name": "slow-one", "num_partitions": 1, "replication_factor": 1}
    with controller_of(odd) as wire:
        wire.ask("CreateTopics", 5, {"topics": [topic], "timeout_ms": 100})
    gate.touch()
    until_last(odd, ("CreateTopics", "topic", "slow-one", "REQUEST_TIMED_OUT"))
    assert last(odd)["reason"] == "The change was not begun in time and will not be made."


def test_a_broken_policy_says_how(odd: MiniCluster) -> None:
    """A failing policy's error is on the page and not in the client's answer; findings on allowed
    requests are there, too.
    """
    with controller_of(odd) as wire:
        for name, partitions in (("broken", 1), ("wide", 3)):
            topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
            (row,) = wire.ask("CreateTopics", 5, {"topics": [topic], "timeout_ms": 30_000})["topics"]
            if name == "broken":
                assert row["error_message"] is None
                assert last(odd)["reason"] == "The policy failed: ValueError: no such team"
                assert last(odd)["policy"].startswith("Odd and ")
    wide = last(odd)
    assert (wide["outcome"], wide["would_be_refused"], wide["rule"]) == ("NONE", True, "many")
    assert (wide["reason"], "noted" in wide) == ("These are many partitions.", False)
    many, never = ask(odd, "/api/state").json["rules"]
    assert (many["name"], many["action"], many["failed"]) == ("many", "warn", 0) and many["found"] >= 1
    assert never == {"name": "never", "action": "deny", "found": 0, "failed": 0}


async def test_what_was_carried_out_too_late_says_both(autojump_clock: trio.testing.MockClock) -> None:
    """For a change completed after its timeout, the page has both the change and what the client
    was answered.
    """
    async with ruling({"metadata.completion": "cluster"}) as world:
        world.deaf.add(2)
        answer = await world.ask(creating(wanted("t", 1, 1), timeout_ms=500), 7)
        assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        (decision,) = world.node.recent_decisions
        assert (decision.outcome, decision.is_late) == ("NONE", True)


class Talkative(TopicManagementPolicy):
    """Refuses at length."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        raise PolicyViolation(f"{request.topic} of {cluster.cluster_size}".ljust(9_999, "!"))


async def test_each_is_kept_within_bounds() -> None:
    """However many are asked for in one request, and however much a policy says: all are counted,
    the last ones kept, texts cut.
    """
    async with ruling(policy=Talkative()) as world:
        await world.ask(creating(*(wanted(f"t{number}", 1, 1) for number in range(KEPT + 50))), 7)
        kept = list(world.node.recent_decisions)
        assert (len(kept), kept[-1].number, kept[-1].name) == (KEPT, KEPT + 50, f"t{KEPT + 49}")
        assert len(kept[-1].reason) == MAX_CHARACTERS
        assert sum(world.node.metrics.decisions.values()) == KEPT + 50


async def test_a_defect_of_ours_is_told() -> None:
    """For an exception in a handler, the page refers to the log."""

    def fail(*_arguments: object) -> Any:
        raise ZeroDivisionError

    async with ruling() as world:
        await Client(world.node, handlers={ApiKey.CREATE_TOPICS: fail}).ask(creating(wanted("t")), 7)
        assert [(each.name, each.outcome, each.reason) for each in world.node.recent_decisions] == [
            ("t", "UNKNOWN_SERVER_ERROR", "An unexpected error: the node's log says more.")
        ]


def test_forwarded_requests_are_told_once(cluster: MiniCluster) -> None:
    """A request that went by way of another node, and one that its first controller would not take,
    are one decision.
    """
    before = ask(cluster, "/api/decisions").json[-1:]
    for number in cluster.addresses:
        with Wire(cluster.addresses[number]) as wire:
            topic = {"name": f"astray-{number}", "num_partitions": 1, "replication_factor": 1}
            wire.ask("CreateTopics", 5, {"topics": [topic], "timeout_ms": 30_000})
    count = before[0]["number"] if before else 0
    news = [each for each in ask(cluster, "/api/decisions").json if each["number"] > count]
    assert sorted(each["name"] for each in news) == ["astray-1", "astray-2", "astray-3"]


async def test_a_request_that_goes_on_to_another_is_none() -> None:
    """NOT_CONTROLLER of a request that a node forwarded is answered by that node, which asks the
    next controller.
    """
    node = node_with(image([broker(1)], controller_id=2))
    await Client(node, handlers=APIS, peer=True).ask(creating(wanted("t")), 7, origin=RequestOrigin("User:alice"))
    assert list(node.recent_decisions) == []
    await Client(node, handlers=APIS).ask(creating(wanted("t")), 7)
    assert [each.outcome for each in node.recent_decisions] == ["NOT_CONTROLLER"]
