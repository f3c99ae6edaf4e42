"""Ways past a policy, each of them closed: for rules and for a class in Python alike."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from minicontroller.audit.event import Decision
from minicontroller.pipeline.backtest.counterfactual import Counterfactual
from minicontroller.pipeline.backtest.recorded import RecordedTimeline
from minicontroller.pipeline.backtest.timelines import CandidateQuestion as Replayed
from minicontroller.pipeline.backtest.timelines import Timeline
from minicontroller.policies import (
    AlterBrokerConfigsRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteTopicRequest,
    PolicyRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_configs import AlterableConfig as Replaced
from minicontroller.protocol.messages.alter_configs import AlterConfigsRequest
from minicontroller.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.audit.logs import events_in
from tests.handlers.altering import BROKER, TOPIC
from tests.handlers.ruling import Ruling, creating, ruling, wanted

VIOLATION = ErrorCode.POLICY_VIOLATION
OFFSETS = "__consumer_offsets"


class Asked(TopicManagementPolicy):
    """Says of each request what a function says."""

    def __init__(self, fault: Callable[[Any], str | None]) -> None:
        self._fault = fault

    def _judge(self, request: PolicyRequest | AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if (text := self._fault(request)) is not None:
            raise PolicyViolation(text)

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self._judge(request, cluster)

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        self._judge(request, cluster)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self._judge(request, cluster)

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:
        self._judge(request, cluster)


@asynccontextmanager
async def judged(
    kind: str, rules: str, fault: Callable[[Any], str | None], folder: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Ruling]:
    """A cluster whose policy is the rules, or the function."""
    more = dict(settings or {})
    if kind == "rules":
        (folder / "rules.toml").write_text(rules)
        more["policy.rules.files"] = str(folder / "rules.toml")
    async with ruling(more, policy=Asked(fault) if kind == "class" else TopicManagementPolicy()) as cluster:
        yield cluster


async def create(cluster: Ruling, name: str, configs: Mapping[str, str | None], partitions: int = 1) -> int:
    answer = await cluster.ask(creating(wanted(name, partitions, 1, configs=configs)), 7)
    code: int = answer.topics[0].error_code
    return code


async def alter(cluster: Ruling, name: str, key: str, operation: int, value: str | None) -> int:
    config = IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[config])
    answer = await cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    code: int = answer.responses[0].error_code
    return code


async def replace(cluster: Ruling, name: str, key: str, value: str) -> int:
    resource = ReplacedResource(resource_type=TOPIC, resource_name=name, configs=[Replaced(name=key, value=value)])
    answer = await cluster.ask(AlterConfigsRequest(resources=[resource]), 2)
    code: int = answer.responses[0].error_code
    return code


async def alter_broker(cluster: Ruling, broker: str, key: str, operation: int, value: str | None) -> int:
    config = IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])
    answer = await cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    code: int = answer.responses[0].error_code
    return code


FORBIDDING = """
[[rule]]
name = "by value"
operations = ["create", "alter"]
condition = '''(!("{key}" in after.configs) || after.configs["{key}"] != "{value}") &&
    (request.config_operations == null || !request.config_operations.exists(k, k == "{key}" && request.config_operations[k] == "{value}"))'''
"""


@pytest.mark.parametrize("kind", ["rules", "class"])
@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("unclean.leader.election.enable", "true", "TRUE"),
        ("unclean.leader.election.enable", "true", " true"),
        ("unclean.leader.election.enable", "true", "true\t"),
        ("cleanup.policy", "compact", " compact"),
        ("cleanup.policy", "compact", "compact,compact"),
        ("retention.ms", "-1", " -01 "),
        ("segment.bytes", "14", "+014"),
        ("min.cleanable.dirty.ratio", "0.0", "-0e9"),
    ],
)
async def test_a_value_is_judged_however_it_is_written(
    kind: str, key: str, value: str, text: str, tmp_path: Path
) -> None:
    """Policies judge the value that takes effect, at creation and in both alter APIs; the store
    keeps the text as it was written.
    """

    def fault(request: CreateTopicRequest | AlterTopicRequest) -> str | None:
        named = getattr(request, "config_operations", None) or {}
        return "no" if value in (request.requested_state.configs.get(key), named.get(key)) else None

    rules = FORBIDDING.format(key=key, value=value)
    async with judged(kind, rules, fault, tmp_path) as cluster:
        assert await create(cluster, "t", {}) == ErrorCode.NONE
        assert await create(cluster, "u", {key: text}) == VIOLATION
        assert await alter(cluster, "t", key, 0, text) == VIOLATION
        assert await replace(cluster, "t", key, text) == VIOLATION
        assert await create(cluster, "w", {"preallocate": " TRUE"}) == ErrorCode.NONE
        assert await cluster.configs("topics/w") == {"preallocate": " TRUE"}


async def test_the_text_stands_beside_the_value(tmp_path: Path) -> None:
    """`raw_configs` is what the store keeps, for rules and for a class; who was only interested in
    values sees one form of each.
    """
    seen: list[tuple[str, str]] = []

    def fault(request: CreateTopicRequest) -> str | None:
        state = request.requested_state
        seen.append((state.configs["preallocate"], state.raw_configs["preallocate"]))
        return None

    rules = (
        "[[rule]]\nname = 'raw'\noperations = 'create'\ncondition = 'after.raw_configs[\"preallocate\"] == \" TRUE\"'\n"
    )
    (tmp_path / "rules.toml").write_text(rules)
    async with ruling({"policy.rules.files": str(tmp_path / "rules.toml")}, policy=Asked(fault)) as cluster:
        assert await create(cluster, "t", {"preallocate": " TRUE"}) == ErrorCode.NONE
        assert await create(cluster, "u", {"preallocate": "true"}) == VIOLATION
    assert seen == [("true", " TRUE"), ("true", "true")]


STRICT = """
[[partitions]]
max = 9
[[config_bounds]]
configs = { "cleanup.policy" = { allowed = "delete" } }
[[protected_topics]]
topics = "__*"
operations = "delete"
"""


def strict(request: Any) -> str | None:
    if isinstance(request, DeleteTopicRequest):
        return "protected" if request.topic.startswith("__") else None
    state = request.requested_state
    if state.internal and getattr(request, "automatic", False):
        return None
    return "no" if state.num_partitions > 9 or state.configs.get("cleanup.policy", "delete") != "delete" else None


@pytest.mark.parametrize("kind", ["rules", "class"])
async def test_kafkas_own_topics_are_no_way_past(kind: str, tmp_path: Path) -> None:
    """An internal topic created automatically for a consumer passes; a client that creates or
    alters it is judged.
    """
    settings = {"offsets.topic.num.partitions": "12", "offsets.topic.replication.factor": "1"}
    async with judged(kind, STRICT, strict, tmp_path, settings) as cluster:
        assert await create(cluster, OFFSETS, {}, partitions=300) == VIOLATION
        assert await create(cluster, OFFSETS, {"cleanup.policy": "compact"}) == VIOLATION
        answer = await cluster.ask(MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS)]), 12)
        assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert len(cluster.topic(OFFSETS).partitions) == 12
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=OFFSETS, count=13, assignments=None)], timeout_ms=9_000
        )
        assert (await cluster.ask(grown, 3)).results[0].error_code == VIOLATION
        assert await alter(cluster, OFFSETS, "cleanup.policy", 0, "delete,compact") == VIOLATION
        gone = DeleteTopicsRequest(topic_names=[OFFSETS], timeout_ms=9_000)
        assert (await cluster.ask(gone, 5)).responses[0].error_code == VIOLATION


@pytest.mark.parametrize("name", ["ops.a", "__transaction_state"])
async def test_a_protected_topic_is_not_created_by_others(name: str, tmp_path: Path) -> None:
    """Others create a protected topic neither by CreateTopics nor, where it is not one of Kafka's
    own, by use.
    """
    rules = "[[protected_topics]]\ntopics = ['ops.*', '__*']\nexcept_principals = 'User:ops'\n"
    async with judged("rules", rules, lambda _request: None, tmp_path) as cluster:
        assert await create(cluster, name, {}) == VIOLATION
        answer = await cluster.ask(MetadataRequest(topics=[MetadataRequestTopic(name="ops.b")]), 12)
        assert answer.topics[0].error_code == VIOLATION
        allowed = await cluster.ask(creating(wanted(name, 1, 1)), 7, principal="User:ops")
        assert allowed.topics[0].error_code == ErrorCode.NONE


TWO = '[[config_bounds]]\nconfigs = { "min.insync.replicas" = { min = 2 } }\n'


def two(request: Any) -> str | None:
    asked = request if isinstance(request, AlterBrokerConfigsRequest) else request.requested_state
    held = asked.effective_configs["min.insync.replicas"]
    return None if int(held) >= 2 else f"{held} are too few"


@pytest.mark.parametrize("kind", ["rules", "class"])
async def test_a_default_is_no_way_below_a_minimum(kind: str, tmp_path: Path) -> None:
    """Neither leaving a config out at creation nor deleting it, in either alter API, evades a
    minimum.
    """
    async with judged(kind, TWO, two, tmp_path) as cluster:
        assert await create(cluster, "silent", {}) == VIOLATION
        assert await create(cluster, "t", {"min.insync.replicas": "2"}) == ErrorCode.NONE
        assert await alter(cluster, "t", "min.insync.replicas", 1, None) == VIOLATION
        assert await replace(cluster, "t", "retention.ms", "5") == VIOLATION
        assert await alter(cluster, "t", "retention.ms", 0, "5") == ErrorCode.NONE
    async with judged(kind, TWO, two, tmp_path, {"min.insync.replicas": " 02"}) as cluster:
        assert await create(cluster, "silent", {}) == ErrorCode.NONE
        assert await create(cluster, "t", {"min.insync.replicas": "3"}) == ErrorCode.NONE
        assert await alter(cluster, "t", "min.insync.replicas", 1, None) == ErrorCode.NONE


@pytest.mark.parametrize("kind", ["rules", "class"])
async def test_one_brokers_configs_are_no_default_of_topics(kind: str, tmp_path: Path) -> None:
    """The configs of a single broker are not taken as defaults of topics, because other brokers
    lead topics, too.
    """
    async with judged(kind, TWO, two, tmp_path) as cluster:
        assert await create(cluster, "t", {"min.insync.replicas": "2"}) == ErrorCode.NONE
        assert await alter_broker(cluster, "1", "min.insync.replicas", 0, "2") == ErrorCode.NONE
        assert await create(cluster, "silent", {}) == VIOLATION
        assert await alter(cluster, "t", "min.insync.replicas", 1, None) == VIOLATION
        assert await alter_broker(cluster, "", "min.insync.replicas", 0, "2") == ErrorCode.NONE
        assert await create(cluster, "silent", {}) == ErrorCode.NONE
        assert await alter(cluster, "t", "min.insync.replicas", 1, None) == ErrorCode.NONE


BOUNDED = """
[[config_bounds]]
configs = { "retention.ms" = { max = 604800000 }, "unclean.leader.election.enable" = { allowed = "false" }, "min.insync.replicas" = { min = 1 } }
"""


def bounded(request: Any) -> str | None:
    held = request.effective_configs if isinstance(request, AlterBrokerConfigsRequest) else {}
    if not held:
        return None
    is_short = 0 <= int(held["retention.ms"]) <= 604800000
    return None if is_short and held["unclean.leader.election.enable"] == "false" else "no"


@pytest.mark.parametrize("kind", ["rules", "class"])
@pytest.mark.parametrize("broker", ["", "1", "+01"])
async def test_a_default_is_no_way_for_all_topics_at_once(kind: str, broker: str, tmp_path: Path) -> None:
    """A change of the cluster default of a topic config, by any of its keys and spellings, is held
    to the bounds of topics.
    """
    async with judged(kind, BOUNDED, bounded, tmp_path) as cluster:
        for key, value in (
            ("log.retention.ms", "604800001"),
            ("log.retention.ms", " -1"),
            ("log.retention.ms", "+0604800001"),
            ("unclean.leader.election.enable", " TRUE"),
        ):
            assert await alter_broker(cluster, broker, key, 0, value) == VIOLATION
        assert await alter_broker(cluster, broker, "log.retention.ms", 0, " 05") == ErrorCode.NONE
        assert await alter_broker(cluster, broker, "unclean.leader.election.enable", 0, "FALSE") == ErrorCode.NONE
        assert await alter_broker(cluster, broker, "log.segment.bytes", 0, "1000000") == ErrorCode.NONE
        assert (await cluster.configs(f"brokers/{'1' if broker else '<default>'}") or {})["log.retention.ms"] == " 05"


@pytest.mark.parametrize("kind", ["rules", "class"])
async def test_a_default_that_comes_back_is_judged(kind: str, tmp_path: Path) -> None:
    """Deleting what hid a longer default is a change of the default; and what is written before it
    counts at once for topics after it.
    """
    settings = {"log.retention.hours": "1000"}
    async with judged(kind, BOUNDED, bounded, tmp_path, settings) as cluster:
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "7") == ErrorCode.NONE
        if kind == "rules":
            assert await create(cluster, "t", {}) == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 1, None) == VIOLATION
    if kind == "rules":
        async with judged(kind, BOUNDED, bounded, tmp_path, settings) as cluster:
            assert await create(cluster, "t", {}) == VIOLATION


async def test_bounds_of_some_topics(tmp_path: Path) -> None:
    """Bounds of some topics are in the way of a default where one of these has no value of its own;
    those that are not meant for it never.
    """
    scoped = '[[config_bounds]]\ntopics = "short.*"\nconfigs = { "retention.ms" = { max = 604800000 } }\n'
    async with judged("rules", scoped, lambda _request: None, tmp_path) as cluster:
        assert await create(cluster, "short.own", {"retention.ms": "5"}) == ErrorCode.NONE
        assert await create(cluster, "long", {}) == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "604800001") == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "604800000") == ErrorCode.NONE
        assert await create(cluster, "short.silent", {}) == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "604800001") == VIOLATION
    for told in (
        'operations = ["create", "alter"]\nconfigs = { "retention.ms" = { max = 5 } }',
        'configs = { "retention.ms" = { max = 5, absent = "allow" } }',
    ):
        async with judged("rules", f"[[config_bounds]]\n{told}\n", lambda _request: None, tmp_path) as cluster:
            assert await alter_broker(cluster, "", "log.retention.ms", 0, "604800001") == ErrorCode.NONE
            assert await alter_broker(cluster, "", "unclean.leader.election.enable", 0, "true") == ErrorCode.NONE


async def test_an_expression_about_brokers_sees_values(tmp_path: Path) -> None:
    """Expressions judge broker configs by their value, with the principal and the states before and
    after.
    """
    text = """
[[rule]]
name = "clean"
operations = "alter_broker"
condition = '''principal == "User:root" || !("unclean.leader.election.enable" in after.configs) ||
    after.configs["unclean.leader.election.enable"] == "false" && after.raw_configs["unclean.leader.election.enable"] == " FALSE" &&
    before.configs == {} && after.effective_configs["unclean.leader.election.enable"] == "false" && request.broker == ""'''
"""
    async with judged("rules", text, lambda _request: None, tmp_path) as cluster:
        assert await alter_broker(cluster, "", "unclean.leader.election.enable", 0, " TRUE") == VIOLATION
        assert await alter_broker(cluster, "", "unclean.leader.election.enable", 0, " FALSE") == ErrorCode.NONE


class Keeping(TopicManagementPolicy):
    """Keeps what it was asked about brokers."""

    def __init__(self) -> None:
        self.asked: list[AlterBrokerConfigsRequest] = []

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        self.asked.append(request)


@pytest.mark.parametrize("world", [RecordedTimeline, Counterfactual])
async def test_what_was_asked_about_a_broker_can_be_asked_again(world: type[Timeline], tmp_path: Path) -> None:
    """The audit log has everything that the policy saw of a broker, so that a back-test asks the
    same question.
    """
    keeping = Keeping()
    settings = {"audit.dir": str(tmp_path / "audit"), "log.retention.hours": "1"}
    async with ruling(settings, policy=keeping) as cluster:
        assert await create(cluster, "t", {}) == ErrorCode.NONE
        for broker, key, value in (("", "log.retention.ms", " 05"), ("1", "unclean.leader.election.enable", "TRUE")):
            assert await alter_broker(cluster, broker, key, 0, value) == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 1, None) == ErrorCode.NONE
    past, again = world(), []
    for event in events_in(tmp_path / "audit"):
        if isinstance(event, Decision) and event.resource == "broker":
            asked = past.question(event)
            assert isinstance(asked, Replayed)
            again.append(asked.request)
        assert list(past.apply(event)) == []
    assert again == keeping.asked
    assert [dict(each.default_configs) for each in keeping.asked] == [
        {"retention.ms": "5"},
        {"retention.ms": "5", "unclean.leader.election.enable": "true"},
        {"retention.ms": "3600000"},
    ]


NEAR = """
[[config_bounds]]
configs = { "local.retention.ms" = { max = 3600000 } }
"""


async def test_what_takes_its_meaning_from_another_config_is_judged_with_it(tmp_path: Path) -> None:
    """Where `local.retention.ms` is -2, by the topic or by default, raising `retention.ms` raises
    it, and is held to its bound.
    """
    async with judged("rules", NEAR, lambda _request: None, tmp_path) as cluster:
        assert await create(cluster, "silent", {}) == VIOLATION
        for name, configs in (("t", {}), ("u", {"local.retention.ms": " -2"})):
            assert await create(cluster, name, {**configs, "retention.ms": "3600000"}) == ErrorCode.NONE
            assert await alter(cluster, name, "retention.ms", 0, "3600001") == VIOLATION
            assert await alter(cluster, name, "retention.ms", 0, "-1") == VIOLATION
            assert await alter(cluster, name, "retention.ms", 1, None) == VIOLATION
            assert await alter(cluster, name, "retention.ms", 0, "5") == ErrorCode.NONE
        assert await create(cluster, "w", {"local.retention.ms": "5"}) == ErrorCode.NONE
        assert await alter(cluster, "w", "retention.ms", 0, "-1") == ErrorCode.NONE
        for broker in ("", "1"):
            for value in ("3600001", "-1"):
                assert await alter_broker(cluster, broker, "log.retention.ms", 0, value) == VIOLATION
            assert await alter_broker(cluster, broker, "log.retention.ms", 0, "3600000") == ErrorCode.NONE


async def test_a_meaning_that_only_some_topics_take(tmp_path: Path) -> None:
    """A longer default is in the way of a bound of some topics where one of them takes it for the
    meaning of its own value.
    """
    scoped = '[[config_bounds]]\ntopics = "near.*"\nconfigs = { "local.retention.ms" = { max = 3600000 } }\n'
    async with judged("rules", scoped, lambda _request: None, tmp_path) as cluster:
        assert await create(cluster, "near.own", {"retention.ms": "5"}) == ErrorCode.NONE
        assert await create(cluster, "far", {"local.retention.ms": "-2"}) == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "3600001") == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "3600000") == ErrorCode.NONE
        assert await create(cluster, "near.taking", {"local.retention.ms": "-2"}) == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "3600001") == VIOLATION


async def test_a_broker_says_nothing_for_itself_that_topics_may_not_have(tmp_path: Path) -> None:
    """A single broker's config is held to the bounds of topics even if all topics have values of
    their own, because later topics may not.
    """
    scoped = '[[config_bounds]]\ntopics = "gold.*"\nconfigs = { "retention.ms" = { min = 1000 } }\n'
    async with judged("rules", scoped, lambda _request: None, tmp_path) as cluster:
        assert await create(cluster, "gold.a", {"retention.ms": "1000"}) == ErrorCode.NONE
        assert await alter_broker(cluster, "1", "log.retention.ms", 0, "7") == VIOLATION
        assert await alter_broker(cluster, "1", "log.retention.ms", 0, "1000") == ErrorCode.NONE
        assert await alter_broker(cluster, "", "log.retention.ms", 0, "7") == ErrorCode.NONE
        assert await alter(cluster, "gold.a", "retention.ms", 1, None) == VIOLATION
        assert await create(cluster, "gold.b", {}) == VIOLATION
