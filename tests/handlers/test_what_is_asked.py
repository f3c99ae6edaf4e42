"""Policies and the audit log see the effect of each change of configs: every key, and how it is
changed.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from minicontroller.audit.event import REDACTED, Decision, Effect, decode, encode
from minicontroller.audit.replay import policy_request
from minicontroller.policies import (
    AlterBrokerConfigsRequest,
    AlterTopicRequest,
    ClusterState,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.policies.legacy import AlterConfigMetadata, LegacyPolicies
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages import alter_configs, incremental_alter_configs
from tests.audit.logs import decisions_in
from tests.handlers.altering import BROKER, TOPIC, codes
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.rules.reading import rules

SET, DELETE, APPEND, SUBTRACT = range(4)
KEY, LIST, OTHER = "min.insync.replicas", "cleanup.policy", "retention.ms"
CONFIGS = {KEY: "2", LIST: "compact"}
SECRET = "correct-horse-battery"

KEPT = f"""
[[rule]]
name = "kept"
operations = "alter"
condition = '!("{KEY}" in request.config_operations) || request.config_operation_kinds["{KEY}"] != "delete"'

[[rule]]
name = "whole"
operations = "alter"
condition = '!("{LIST}" in request.config_operation_kinds) || !(request.config_operation_kinds["{LIST}"] in ["append", "subtract"])'
"""


class Kept(TopicManagementPolicy):
    """Decides as `KEPT` does."""

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        kinds = request.config_operation_kinds or {}
        if kinds.get(KEY) == "delete":
            raise PolicyViolation("kept")
        if kinds.get(LIST) in {"append", "subtract"}:
            raise PolicyViolation("whole")


def replacing(
    kind: int, name: str, configs: Mapping[str, str], *, validate_only: bool = False
) -> alter_configs.AlterConfigsRequest:
    named = [alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=named)
    return alter_configs.AlterConfigsRequest(resources=[resource], validate_only=validate_only)


def stepping(
    kind: int, name: str, *steps: tuple[str, int, str | None]
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    named = [
        incremental_alter_configs.IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in steps
    ]
    resource = incremental_alter_configs.IncrementalAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=named
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


def in_force(cluster: Ruling, text: str) -> None:
    assert cluster.node.policy is not None
    if text:
        cluster.node.policy.use(rules(text))


@pytest.mark.parametrize(("policy", "text"), [(TopicManagementPolicy(), KEPT), (Kept(), "")], ids=["rules", "class"])
async def test_every_way_to_change_a_topic(policy: TopicManagementPolicy, text: str, tmp_path: Path) -> None:
    """A config that AlterConfigs leaves out is judged and recorded as a deletion, and APPEND and
    SUBTRACT as such; a back-test sees the same.
    """
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        await cluster.make(wanted("t", 1, 1, configs=CONFIGS))
        in_force(cluster, text)
        answers = [
            await cluster.ask(replacing(TOPIC, "t", {OTHER: "5"}), 2),
            await cluster.ask(replacing(TOPIC, "t", {OTHER: "5"}, validate_only=True), 2),
            await cluster.ask(stepping(TOPIC, "t", (KEY, DELETE, None)), 1),
            await cluster.ask(stepping(TOPIC, "t", (LIST, APPEND, "delete")), 1),
            await cluster.ask(stepping(TOPIC, "t", (LIST, SUBTRACT, "compact")), 1),
            await cluster.ask(stepping(TOPIC, "t", (LIST, SET, "delete")), 1),
            await cluster.ask(replacing(TOPIC, "t", CONFIGS | {LIST: "delete"}), 2),
        ]
    no = ErrorCode.POLICY_VIOLATION
    assert [code for answer in answers for code in codes(answer)] == [no, no, no, no, no, 0, 0]
    decisions = decisions_in(tmp_path)[1:]
    assert [each.config_operation_kinds for each in decisions] == [
        {OTHER: "set", KEY: "delete", LIST: "delete"},
        {OTHER: "set", KEY: "delete", LIST: "delete"},
        {KEY: "delete"},
        {LIST: "append"},
        {LIST: "subtract"},
        {LIST: "set"},
        {KEY: "set", LIST: "set"},
    ]
    assert [each.config_operations for each in decisions[:4]] == [
        {OTHER: "5"},
        {OTHER: "5"},
        {KEY: None},
        {LIST: "delete"},
    ]
    again = policy_request(decisions[0])
    assert isinstance(again, AlterTopicRequest)
    assert again.config_operations == {OTHER: "5", KEY: None, LIST: None}
    assert again.config_operation_kinds == decisions[0].config_operation_kinds


class Older:
    """A policy of Kafka's older interface that keeps what it is given."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, str | None]] = []

    def validate(self, request_metadata: AlterConfigMetadata) -> None:
        self.asked.append(dict(request_metadata.configs))


async def test_an_older_policy_sees_what_it_sees_in_kafka() -> None:
    """An older policy sees the keys that the request names, and no others."""
    older = Older()
    async with ruling(policy=LegacyPolicies(alter=older)) as cluster:
        await cluster.make(wanted("t", 1, 1, configs=CONFIGS))
        await cluster.ask(replacing(TOPIC, "t", {OTHER: "5"}), 2)
        await cluster.ask(stepping(TOPIC, "t", (OTHER, DELETE, None)), 1)
        await cluster.ask(stepping(BROKER, "1", ("log.cleaner.threads", SET, "2")), 1)
        await cluster.ask(replacing(BROKER, "1", {"log.cleaner.backoff.ms": "7"}), 2)
    assert older.asked == [{OTHER: "5"}, {OTHER: None}, {"log.cleaner.threads": "2"}, {"log.cleaner.backoff.ms": "7"}]


@pytest.mark.parametrize("name", ["1", ""])
async def test_a_broker_before_and_after(name: str, tmp_path: Path) -> None:
    """An audit event of a broker or of the default has all its configs before and after, also if it
    is only validated.
    """
    threads, pause = "log.cleaner.threads", "log.cleaner.backoff.ms"
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await cluster.ask(stepping(BROKER, name, (threads, SET, "2"), (pause, SET, "9")), 1)
        await cluster.ask(replacing(BROKER, name, {pause: "7"}, validate_only=True), 2)
        await cluster.ask(replacing(BROKER, name, {pause: "7"}), 2)
    first, asked, second = decisions_in(tmp_path)
    assert first.entity is not None and asked.entity is not None and second.entity is not None
    assert (first.entity.before, first.entity.after) == ({}, {threads: "2", pause: "9"})
    assert (asked.effect, second.effect) == (Effect.NONE, Effect.APPLIED)
    for each, after in ((asked, {threads: "2", pause: "9"}), (second, {pause: "7"})):
        assert each.entity is not None
        assert (each.entity.before, each.entity.requested) == ({threads: "2", pause: "9"}, {pause: "7"})
        assert each.entity.after == after
        assert each.config_operation_kinds == {threads: "delete", pause: "set"}


NO_FEWER = """
[[rule]]
name = "no fewer"
operations = "alter_broker"
match_conditions = ['"log.cleaner.threads" in before.configs']
condition = '"log.cleaner.threads" in after.configs && int(after.configs["log.cleaner.threads"]) >= int(before.configs["log.cleaner.threads"])'

[[rule]]
name = "of topics"
condition = "after == null || after.num_partitions < 100"

[[rule]]
name = "of some topics"
operations = "alter"
topics = "t*"
condition = "false"
"""


class NoFewer(TopicManagementPolicy):
    """Decides as `NO_FEWER` does."""

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        key = "log.cleaner.threads"
        if key in request.before and int(request.after.get(key, "0")) < int(request.before[key]):
            raise PolicyViolation("no fewer")


@pytest.mark.parametrize(
    ("policy", "text"), [(TopicManagementPolicy(), NO_FEWER), (NoFewer(), "")], ids=["rules", "class"]
)
@pytest.mark.parametrize("name", ["1", ""])
async def test_a_policy_sees_a_broker_before_and_after(policy: TopicManagementPolicy, text: str, name: str) -> None:
    """A policy also sees the default of all brokers, and what AlterConfigs wipes; rules that are
    about topics are not asked.
    """
    async with ruling(policy=policy) as cluster:
        in_force(cluster, text)
        answers = [
            await cluster.ask(stepping(BROKER, name, ("log.cleaner.threads", SET, "2")), 1),
            await cluster.ask(stepping(BROKER, name, ("log.cleaner.threads", SET, "1")), 1),
            await cluster.ask(stepping(BROKER, name, ("log.cleaner.threads", DELETE, None)), 1),
            await cluster.ask(replacing(BROKER, name, {"log.cleaner.backoff.ms": "7"}), 2),
            await cluster.ask(stepping(BROKER, name, ("log.cleaner.threads", SET, "2")), 1),
        ]
    no = ErrorCode.POLICY_VIOLATION
    assert [code for answer in answers for code in codes(answer)] == [0, no, no, no, 0]


async def test_secrets_of_brokers(tmp_path: Path) -> None:
    """Values that may be secret are hidden in all three states."""
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await cluster.ask(stepping(BROKER, "1", ("my.plugin.token", SET, SECRET)), 1)
        await cluster.ask(stepping(BROKER, "1", ("my.plugin.token", DELETE, None)), 1)
    first, second = decisions_in(tmp_path)
    assert first.entity is not None and second.entity is not None
    assert first.entity.after == second.entity.before == {"my.plugin.token": REDACTED}
    assert SECRET not in str(decisions_in(tmp_path))


async def test_a_log_from_before(tmp_path: Path) -> None:
    """A line without the newer fields is read, and its question is what the policy
    was asked then.
    """
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await cluster.make(wanted("t", 1, 1, configs=CONFIGS))
        await cluster.ask(replacing(TOPIC, "t", {OTHER: "5"}), 2)
    line = encode(decisions_in(tmp_path)[1])
    head, _, tail = line.partition(b',"config_operation_kinds"')
    assert tail
    event = decode(head + b"}")
    assert isinstance(event, Decision)
    assert event.config_operation_kinds is None
    again = policy_request(event)
    assert isinstance(again, AlterTopicRequest)
    assert again.config_operations == {OTHER: "5"}
    assert again.config_operation_kinds == {OTHER: "set"}
