"""AlterConfigs: the whole set of a topic, a node and all nodes; what is judged before any resource
is looked at; policies.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.handlers.altering import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    NODE_1,
    NOT_NUMBERS,
    TOPIC,
    Bounded,
    codes,
    expect_refused,
)
from tests.handlers.asking import Client, broker, image, led, node_with, topic
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(3)
LAST = 2
REQUEST, CONFIG, UNKNOWN = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(wanted("a", 1, 1, configs={"retention.ms": "1", "segment.ms": "2"}), wanted("b", 1, 1))
        yield cluster


def whole(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )


def altering(*resources: AlterConfigsResource, validate_only: bool = False) -> AlterConfigsRequest:
    return AlterConfigsRequest(resources=list(resources), validate_only=validate_only)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_topic(cluster: Ruling, version: int) -> None:
    """The given set replaces the old one, so configs that it does not name are deleted; a
    notification informs every node.
    """
    answer = await cluster.ask(
        altering(whole(TOPIC, "a", ("retention.ms", "7"), ("cleanup.policy", "compact"))), version
    )
    (row,) = answer.responses
    assert (row.resource_type, row.resource_name, row.error_code, row.error_message) == (TOPIC, "a", 0, None)
    assert await cluster.configs("topics/a") == {"retention.ms": "7", "cleanup.policy": "compact"}
    assert dict(cluster.topic("a").configs) == {"retention.ms": "7", "cleanup.policy": "compact"}
    assert await cluster.notifications() == [("topics", "a")]


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_left(cluster: Ruling, version: int) -> None:
    """An empty set takes every override away; no resources, no rows."""
    assert codes(await cluster.ask(altering(whole(TOPIC, "a")), version)) == [0]
    assert await cluster.configs("topics/a") == {}
    assert codes(await cluster.ask(altering(), version)) == []


@pytest.mark.parametrize(("name", "path"), [("1", "1"), ("01", "1"), ("+1", "1"), ("", "<default>")])
async def test_nodes(cluster: Ruling, name: str, path: str) -> None:
    """The configs of a node, or of all nodes, are replaced as a whole in one znode, unknown keys
    included.
    """
    first = altering(whole(BROKER, name, ("log.retention.ms", "5"), ("my.own.key", "x")))
    assert codes(await cluster.ask(first, LAST)) == [0]
    assert await cluster.configs(f"brokers/{path}") == {"log.retention.ms": "5", "my.own.key": "x"}
    assert codes(await cluster.ask(altering(whole(BROKER, name, ("log.segment.bytes", "4096"))), LAST)) == [0]
    assert await cluster.configs(f"brokers/{path}") == {"log.segment.bytes": "4096"}
    assert await cluster.notifications() == [("brokers", path)] * 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_validate_only(cluster: Ruling, version: int) -> None:
    """Everything is checked, nothing is written."""
    resources = [
        whole(TOPIC, "a", ("retention.ms", "7")),
        whole(BROKER, "1", ("log.retention.ms", "5")),
        whole(TOPIC, "b", ("x", "1")),
    ]
    assert codes(await cluster.ask(altering(*resources, validate_only=True), version)) == [0, 0, CONFIG]
    assert await cluster.configs("topics/a") == {"retention.ms": "1", "segment.ms": "2"}
    assert await cluster.configs("brokers/1") is None
    assert await cluster.notifications() == []


RETENTION = ("retention.ms", "1")

REFUSALS: list[tuple[str, AlterConfigsResource, ErrorCode, Sequence[str]]] = [
    ("unknown topic", whole(TOPIC, "nobody", RETENTION), UNKNOWN, ["'nobody'"]),
    ("illegal topic", whole(TOPIC, "bad name!", RETENTION), UNKNOWN, ["'bad name!'"]),
    ("no topic", whole(TOPIC, "", RETENTION), REQUEST, ["Default topic"]),
    ("unknown config", whole(TOPIC, "a", ("no.such", "1")), CONFIG, ["no.such"]),
    ("bad value", whole(TOPIC, "a", ("retention.ms", "x")), CONFIG, ["retention.ms", "x", "'a'"]),
    ("out of range", whole(TOPIC, "a", ("segment.bytes", "13")), CONFIG, ["segment.bytes", "13"]),
    ("contradiction", whole(TOPIC, "a", ("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")), CONFIG, ["2", "1"]),
    ("null values", whole(TOPIC, "a", ("x", None), ("y", None)), REQUEST, ["x, y"]),
    ("key twice", whole(TOPIC, "a", RETENTION, RETENTION), REQUEST, ["duplicate"]),
    ("type 0", whole(0, "a", RETENTION), REQUEST, ["resource type 0"]),
    ("type 99", whole(99, "a", RETENTION), REQUEST, ["resource type 99"]),
    ("type -1", whole(-1, "a", RETENTION), REQUEST, ["resource type -1"]),
    ("group", whole(GROUP, "a", RETENTION), REQUEST, ["resource type 32"]),
    ("client metrics", whole(CLIENT_METRICS, "a", RETENTION), REQUEST, ["CLIENT_METRICS"]),
    ("logger", whole(BROKER_LOGGER, "1", ("root", "INFO")), REQUEST, ["resource type 8"]),
    ("other node", whole(BROKER, "2", ("log.retention.ms", "1")), REQUEST, ["expected 1", "received 2"]),
    ("node -1", whole(BROKER, "-1", ("log.retention.ms", "1")), REQUEST, ["received -1"]),
    ("static", whole(BROKER, "1", ("broker.id", "2")), REQUEST, ["broker.id"]),
    ("static for all", whole(BROKER, "", ("broker.id", "2")), REQUEST, ["broker.id"]),
    ("one node's for all", whole(BROKER, "", ("listener.name.x.ssl.keystore.location", "/a")), REQUEST, ["broker id"]),
    ("without prefix", whole(BROKER, "1", ("ssl.keystore.location", "/a")), REQUEST, ["listener prefix"]),
    ("node's bad value", whole(BROKER, "1", ("log.retention.ms", "x")), REQUEST, ["log.retention.ms", "x"]),
    # Two faults: the one that Kafka finds first.
    ("key twice, null", whole(TOPIC, "nobody", ("x", "1"), ("x", None)), REQUEST, ["duplicate"]),
    ("null, unknown topic", whole(TOPIC, "nobody", ("x", None)), REQUEST, ["Null value"]),
    ("null, type", whole(0, "a", ("x", None)), REQUEST, ["Null value"]),
    ("null, other node", whole(BROKER, "2", ("x", None)), REQUEST, ["Null value"]),
    ("unknown topic, config", whole(TOPIC, "nobody", ("no.such", "1")), UNKNOWN, ["'nobody'"]),
    ("unknown config, value", whole(TOPIC, "a", ("retention.ms", "x"), ("no.such", "1")), CONFIG, ["no.such"]),
    ("other node, static", whole(BROKER, "2", ("broker.id", "2")), REQUEST, ["received 2"]),
    ("static, value", whole(BROKER, "1", ("log.retention.ms", "x"), ("broker.id", "2")), REQUEST, ["Cannot update"]),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "code", "said"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
async def test_refused(cluster: Ruling, wish: AlterConfigsResource, code: ErrorCode, said: Sequence[str]) -> None:
    """K4-3: a refused change has its code and a text that says what to mend, in every version, also
    if it is only validated; nothing is written.
    """
    for version in VERSIONS:
        for validate_only in (False, True):
            expect_refused(await cluster.ask(altering(wish, validate_only=validate_only), version), wish, code, said)
    assert await cluster.notifications() == []


@pytest.mark.parametrize("name", [name for name in NOT_NUMBERS if name])
async def test_ids_of_nodes(cluster: Ruling, name: str) -> None:
    """A broker name that Java does not parse as a number is answered INVALID_REQUEST
    with the name.
    """
    (row,) = (await cluster.ask(altering(whole(BROKER, name)), LAST)).responses
    assert row.error_code == REQUEST
    assert name in (row.error_message or "")


@pytest.mark.parametrize("name", NODE_1)
async def test_other_spellings_of_an_id(cluster: Ruling, name: str) -> None:
    """Every spelling that Java parses as 1 names node 1."""
    assert codes(await cluster.ask(altering(whole(BROKER, name)), LAST)) == [0]
    assert await cluster.configs("brokers/1") == {}


@pytest.mark.parametrize("version", VERSIONS)
async def test_named_twice(cluster: Ruling, version: int) -> None:
    """Every row of a resource that stands twice is refused before any other fault (Kafka never
    answers); the same name of another type is another resource.
    """
    twice = whole(TOPIC, "a", ("x", None))
    answer = await cluster.ask(
        altering(twice, whole(TOPIC, "1"), whole(BROKER, "1"), twice, whole(TOPIC, "b", RETENTION)), version
    )
    assert codes(answer) == [REQUEST, UNKNOWN, 0, REQUEST, 0]
    assert "at most once" in (answer.responses[0].error_message or "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_one_result_does_not_affect_another(cluster: Ruling, version: int) -> None:
    """K4-2: each resource has its own result, in the order of the request, wherever it
    was judged.
    """
    resources = [
        whole(TOPIC, "nobody"),
        whole(0, "x"),
        whole(TOPIC, "b", RETENTION),
        whole(BROKER, "2"),
        whole(BROKER, ""),
    ]
    answer = await cluster.ask(altering(*resources), version)
    assert [(row.resource_type, row.resource_name, row.error_code) for row in answer.responses] == [
        (TOPIC, "nobody", UNKNOWN), (0, "x", REQUEST), (TOPIC, "b", 0), (BROKER, "2", REQUEST), (BROKER, "", 0),
    ]  # fmt: skip
    assert await cluster.configs("topics/b") == {"retention.ms": "1"}


async def test_being_deleted(cluster: Ruling) -> None:
    """A topic that is marked for deletion is answered as unknown."""
    cluster.deaf.update({2, 3})
    await cluster.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=PATIENT_MS), 5)
    assert codes(await cluster.ask(altering(whole(TOPIC, "a", RETENTION)), LAST)) == [UNKNOWN]


async def test_internal_topics(cluster: Ruling) -> None:
    """The coordinators' topics have configs like others."""
    await cluster.make(wanted("__consumer_offsets", 1, 1))
    assert codes(await cluster.ask(altering(whole(TOPIC, "__consumer_offsets", RETENTION)), LAST)) == [0]


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(version: int) -> None:
    """K590-1: what this node judges itself it answers; the rest is the controller's, and
    NOT_CONTROLLER where nothing is forwarded.
    """
    node = node_with(image([broker(1), broker(2)], [topic("a", led(1))], controller_id=2))
    request = altering(whole(TOPIC, "a", RETENTION), whole(TOPIC, "b", ("x", None)), whole(BROKER, "2"))
    answer = await Client(node, handlers=APIS).ask(request, version)
    assert codes(answer) == [ErrorCode.NOT_CONTROLLER, REQUEST, REQUEST]


async def test_the_policy_is_asked() -> None:
    """K201-1c, K201-4, K201-5: with the whole state after the change, the keys that the request
    names or leaves out, and the state before.
    """
    policy = Bounded()
    async with ruling(policy=policy) as cluster:
        await cluster.make(wanted("a", 1, 1, configs={"segment.ms": "2"}))
        await cluster.ask(
            altering(whole(TOPIC, "a", ("retention.ms", "9")), whole(TOPIC, "nobody")), LAST, principal="User:al"
        )
        await cluster.ask(altering(whole(TOPIC, "a"), validate_only=True), LAST)
    first, second = policy.asked
    assert (first.topic, first.principal, first.api, first.validate_only) == ("a", "User:al", "AlterConfigs", False)
    assert dict(first.requested_state.configs) == {"retention.ms": "9"}
    assert first.config_operations == {"retention.ms": "9", "segment.ms": None}
    assert first.config_operation_kinds == {"retention.ms": "set", "segment.ms": "delete"}
    assert (dict(second.requested_state.configs), second.validate_only) == ({}, True)
    assert policy.before == [{"segment.ms": "2"}, {"retention.ms": "9"}]


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_policy_refuses(version: int) -> None:
    """K201-6: POLICY_VIOLATION with the policy's words, for that topic alone, after every other
    check, also where it is only validated.
    """
    async with ruling(policy=Bounded()) as cluster:
        await cluster.make(wanted("a", 1, 1), wanted("b", 1, 1))
        for validate_only in (True, False):
            resources = [whole(TOPIC, "a", ("retention.ms", "11")), whole(TOPIC, "b", ("retention.ms", "9"))]
            answer = await cluster.ask(altering(*resources, validate_only=validate_only), version)
            assert codes(answer) == [ErrorCode.POLICY_VIOLATION, 0]
            assert answer.responses[0].error_message == "Ten is enough."
        wrong = altering(whole(TOPIC, "a", ("retention.ms", "11"), ("no.such", "1")))
        assert codes(await cluster.ask(wrong, version)) == [CONFIG]
        assert await cluster.configs("topics/a") == {}


async def test_more_than_a_znode_holds(cluster: Ruling) -> None:
    """Configs that the store could not take are refused before they are sent, and nothing else is
    harmed.
    """
    huge = whole(BROKER, "1", *((f"my.key.{number}", "x" * 30_000) for number in range(31)))
    answer = await cluster.ask(altering(huge, whole(TOPIC, "b", RETENTION)), LAST)
    assert codes(answer) == [REQUEST, 0]
    assert "bytes" in (answer.responses[0].error_message or "")
