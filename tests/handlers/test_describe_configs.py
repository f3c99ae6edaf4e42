"""DescribeConfigs: topics with what the store overrides, nodes, the cluster's default, loggers; and
what is refused.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import trio.testing
from immutables import Map

from minicontroller.admin import bounds
from minicontroller.admin.bounds import MAX_REPEATED_BYTES
from minicontroller.cluster.entities import EntityConfigs
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.controller.node.node import Node
from minicontroller.protocol.compiler import encoder
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from minicontroller.store.base import Create, SetData
from minicontroller.store.memory import MemoryStore
from tests.handlers.asking import Client, broker, image, led, node_with, topic

VERSIONS = range(5)
LAST = 4
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS = 2, 4, 8, 16
FROM_TOPIC, FROM_NODE, FROM_CLUSTER, FROM_FILE, BY_DEFAULT, FROM_LOGGER = range(1, 7)
CLUSTER = image([broker(1)], [topic("orders", led(1)), topic("payments", led(1))])


def wanting(*resources: tuple[int, str] | tuple[int, str, Sequence[str] | None], **how: Any) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if not keys or keys[0] is None else list(keys[0]),
            )
            for kind, name, *keys in resources
        ],
        **how,
    )


async def node_where(overrides: Mapping[str, Mapping[str, str]], settings: Mapping[str, str] | None = None) -> Node:
    """A node whose store has these configs, by their path below /config."""
    node = node_with(CLUSTER, settings)
    for path, configs in overrides.items():
        await node.store.ensure(f"/config/{path.partition('/')[0]}")
        await node.store.commit([Create(f"/config/{path}", encode_config(configs))])
    assert await node.reader.catch_up(node.store, [])
    return node


def rows(result: Any) -> dict[str, tuple[str | None, int]]:
    """Value and source by name."""
    return {each.name: (each.value, each.config_source) for each in result.configs}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_topic(version: int) -> None:
    """All configs of a topic: its overrides from the store, the rest as the node's configuration
    has it.
    """
    node = await node_where(
        {"topics/orders": {"retention.ms": "1000", "cleanup.policy": "compact,delete"}}, {"log.segment.bytes": "4096"}
    )
    (result,) = (await Client(node).ask(wanting((TOPIC, "orders")), version)).results
    assert (result.error_code, result.error_message) == (0, "")
    assert (result.resource_type, result.resource_name) == (TOPIC, "orders")
    found = {each.name: each for each in result.configs}
    assert len(found) == len(result.configs) == 36
    values = [found[name].value for name in ("retention.ms", "cleanup.policy", "segment.bytes", "flush.ms")]
    assert values == ["1000", "compact,delete", "4096", "9223372036854775807"]
    assert not any(each.read_only or each.is_sensitive or each.is_default for each in result.configs)
    if version >= 1:
        sources = [found[name].config_source for name in ("retention.ms", "segment.bytes", "flush.ms")]
        assert sources == [FROM_TOPIC, FROM_FILE, BY_DEFAULT]
    if version >= 3:
        assert (found["retention.ms"].config_type, found["cleanup.policy"].config_type) == (5, 7)
        assert all(each.documentation is None for each in result.configs)


@pytest.mark.parametrize("version", VERSIONS[1:])
async def test_synonyms(version: int) -> None:
    """If asked for, synonyms list each source of a value, highest precedence first."""
    node = await node_where(
        {"topics/orders": {"preallocate": "true"}, "brokers/<default>": {"log.preallocate": "true"}}
    )
    client = Client(node)
    keys = ["preallocate"]
    (asked,) = (await client.ask(wanting((TOPIC, "orders", keys), include_synonyms=True), version)).results
    assert [(each.name, each.value, each.source) for each in asked.configs[0].synonyms] == [
        ("preallocate", "true", FROM_TOPIC),
        ("log.preallocate", "true", FROM_CLUSTER),
        ("log.preallocate", "false", BY_DEFAULT),
    ]
    (unasked,) = (await client.ask(wanting((TOPIC, "orders", keys)), version)).results
    assert unasked.configs[0].synonyms == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_shared_is_never_old(version: int) -> None:
    """Rows that topics have in common are those of the configuration that holds now, and of the
    question that is asked.
    """
    node = await node_where({"topics/orders": {"flush.ms": "7"}})
    client, request = Client(node), wanting((TOPIC, "orders"), (TOPIC, "payments"), (BROKER, "1"))
    for size in ("4096", "8192"):
        node.cache.read({"/config/brokers/<default>": EntityConfigs(Map({"log.segment.bytes": size}), 0)})
        orders, payments, node_1 = (await client.ask(request, version)).results
        assert [rows(orders)["flush.ms"][0], rows(payments)["flush.ms"][0]] == ["7", "9223372036854775807"]
        values = [rows(orders)["segment.bytes"], rows(payments)["segment.bytes"], rows(node_1)["log.segment.bytes"]]
        assert values == [(size, FROM_CLUSTER if version else -1)] * 3
    if version:
        request.include_synonyms = True
        orders, payments, _ = (await client.ask(request, version)).results
        assert all(each.synonyms for each in payments.configs if each.config_source != BY_DEFAULT)


@pytest.mark.parametrize("version", [3, 4])
async def test_documentation(version: int) -> None:
    """Asked for, every config explains itself."""
    request = wanting((TOPIC, "orders"), (BROKER, "1"), include_documentation=True)
    answer = await Client(await node_where({})).ask(request, version)
    for result in answer.results:
        assert [each.name for each in result.configs if not each.documentation] == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_keys_asked_for(version: int) -> None:
    """Only the requested keys are answered, each once, without unknown ones; an empty list means
    all keys (in Kafka only null does).
    """
    client = Client(await node_where({}))
    keys = ["retention.ms", "no.such", "retention.ms"]
    some, none, all_of_them = (
        (await client.ask(wanting((TOPIC, "orders", keys)), version)).results[0],
        (await client.ask(wanting((TOPIC, "orders", ["no.such"])), version)).results[0],
        (await client.ask(wanting((TOPIC, "orders", [])), version)).results[0],
    )
    assert [each.name for each in some.configs] == ["retention.ms"]
    assert none.configs == []
    assert len(all_of_them.configs) == 36


@pytest.mark.parametrize("version", VERSIONS)
async def test_resources_stand_by_themselves(version: int) -> None:
    """Rows in the order of the request; a refused one stops none, and one that is named twice is
    answered twice.
    """
    node = await node_where({"topics/payments": {"retention.ms": "7"}})
    key = ["retention.ms"]
    request = wanting(
        (TOPIC, "nobody"),
        (TOPIC, "payments", key),
        (TOPIC, "bad name!"),
        (BROKER, "2"),
        (TOPIC, "payments", ["segment.ms"]),
        (TOPIC, "orders", key),
    )
    answer = await Client(node).ask(request, version)
    assert [(each.resource_name, each.error_code) for each in answer.results] == [
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("payments", 0),
        ("bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("2", ErrorCode.INVALID_REQUEST),
        ("payments", 0),
        ("orders", 0),
    ]
    assert [each.value for result in answer.results for each in result.configs] == ["7", "604800000", "604800000"]
    assert answer.results[0].error_message == ""
    assert "bad name!" in answer.results[2].error_message


@pytest.mark.parametrize("version", VERSIONS)
async def test_this_node(version: int) -> None:
    """A node describes its own configs: the source of each, which are read-only, and no secret."""
    node = await node_where(
        {
            "brokers/1": {"log.cleaner.threads": "2"},
            "brokers/<default>": {"log.cleaner.threads": "3", "log.retention.ms": "5"},
        },
        {"num.partitions": "6", "ssl.key.password": "hush"},
    )
    (result,) = (await Client(node).ask(wanting((BROKER, "1")), version)).results
    found = {each.name: each for each in result.configs}
    assert {name: found[name].value for name in ("log.cleaner.threads", "log.retention.ms", "num.partitions")} == {
        "log.cleaner.threads": "2",
        "log.retention.ms": "5",
        "num.partitions": "6",
    }
    assert (found["num.partitions"].read_only, found["log.cleaner.threads"].read_only) == (True, False)
    assert (found["ssl.key.password"].value, found["ssl.key.password"].is_sensitive) == (None, True)
    if version >= 1:
        names = ("log.cleaner.threads", "log.retention.ms", "num.partitions", "message.max.bytes")
        assert [found[name].config_source for name in names] == [FROM_NODE, FROM_CLUSTER, FROM_FILE, BY_DEFAULT]


async def test_no_secret_is_told_in_any_way() -> None:
    """Neither the value nor a synonym of a password is ever in an answer."""
    node = await node_where({}, {"ssl.key.password": "hush-hush"})
    client = Client(node)
    for version in VERSIONS[1:]:
        assert b"hush" not in client.answer(wanting((BROKER, "1"), include_synonyms=True), version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_cluster_s_default(version: int) -> None:
    """A broker without a name is what was set for all nodes, and nothing else."""
    node = await node_where({"brokers/<default>": {"log.cleaner.threads": "3"}, "brokers/1": {"log.retention.ms": "9"}})
    (result,) = (await Client(node).ask(wanting((BROKER, "")), version)).results
    assert rows(result) == {"log.cleaner.threads": ("3", FROM_CLUSTER if version >= 1 else -1)}


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("2", ["1", "2"]),
        ("-1", ["1", "-1"]),
        ("abc", ["integer", "abc"]),
        (" 1", ["integer"]),
        ("1" * 5000, ["integer"]),
    ],
)
@pytest.mark.parametrize("kind", [BROKER, BROKER_LOGGER])
async def test_other_nodes(kind: int, name: str, names: list[str]) -> None:
    """A node speaks for itself only: 42, with what was expected and what came."""
    (result,) = Client(node_with(CLUSTER)).ask_at_once(wanting((kind, name)), LAST).results
    assert (result.error_code, result.configs) == (ErrorCode.INVALID_REQUEST, [])
    assert [each for each in names if each not in result.error_message] == []


@pytest.mark.parametrize("name", ["01", "+1", "0" * 5000 + "1"])
async def test_a_node_s_number(name: str) -> None:
    """A node's id is a number, however it is written."""
    (result,) = Client(node_with(CLUSTER)).ask_at_once(wanting((BROKER, name, ["broker.id"])), LAST).results
    assert (result.resource_name, rows(result)) == (name, {"broker.id": ("1", FROM_FILE)})


@pytest.fixture(name="named_logger")
def quiet_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("minicontroller.tests.describe_configs")
    logger.setLevel(logging.WARNING)
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("version", VERSIONS)
async def test_loggers(version: int, named_logger: logging.Logger) -> None:
    """The loggers of a process, with their levels in Kafka's words; the root logger is
    called root.
    """
    (result,) = Client(node_with(CLUSTER)).ask_at_once(wanting((BROKER_LOGGER, "1")), version).results
    found = {each.name: each for each in result.configs}
    assert found[named_logger.name].value == "WARN"
    assert found["root"].value in {"FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}
    assert not any(each.read_only or each.is_sensitive for each in result.configs)
    if version >= 1:
        assert {each.config_source for each in result.configs} == {FROM_LOGGER}


async def test_loggers_of_nobody() -> None:
    """Loggers belong to one node: an empty name is refused."""
    (result,) = Client(node_with(CLUSTER)).ask_at_once(wanting((BROKER_LOGGER, "")), LAST).results
    assert (result.error_code, bool(result.error_message)) == (ErrorCode.INVALID_REQUEST, True)


async def test_client_metrics() -> None:
    """Client metrics resources exist in KRaft mode only and are refused; other resources are
    answered.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(wanting((CLIENT_METRICS, "m"), (BROKER, "")), LAST)
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST, 0]
    assert "KRaft" in answer.results[0].error_message


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [0, 1, 32, 99, -1])
async def test_types_without_configs(version: int, kind: int) -> None:
    """A type of which nothing can be described refuses the whole request, each resource with a
    text.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(wanting((TOPIC, "orders"), (kind, "x")), version)
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST] * 2
    assert all(each.error_message for each in answer.results)


async def test_nothing_asked() -> None:
    """A request without resources is answered without rows, and without reading the store."""
    assert Client(node_with(CLUSTER)).ask_at_once(wanting(), LAST).results == []


async def test_one_thing_named_again_and_again() -> None:
    """A resource that is named twice is answered twice; one that is named a thousand times, in
    whatever spelling, only within bounds.
    """
    node = await node_where({})
    twice = (await Client(node).ask(wanting((BROKER, "1"), (BROKER, "1")), LAST)).results
    assert rows(twice[0]) == rows(twice[1]) != {}
    one = len(encoder(DescribeConfigsResult, LAST)(twice[0]))
    for names in (["1"] * 1_000, ["0" * zeros + "1" for zeros in range(1_000)]):
        results = (await Client(node).ask(wanting(*((BROKER, name) for name in names)), LAST)).results
        codes = [result.error_code for result in results]
        answered = codes.count(ErrorCode.NONE)
        assert MAX_REPEATED_BYTES // (one + 1_000) < answered <= MAX_REPEATED_BYTES // one + 1
        assert codes == [ErrorCode.NONE] * answered + [ErrorCode.INVALID_REQUEST] * (len(names) - answered)
        assert [result.resource_name for result in results] == names


async def test_more_than_an_answer_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose answer would be too large is refused before the answer is made."""
    monkeypatch.setattr(bounds, "MAX_ANSWER_BYTES", 10_000)
    node = await node_where({})
    results = (await Client(node).ask(wanting((TOPIC, "orders"), (TOPIC, "payments"), (BROKER, "1")), LAST)).results
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", VERSIONS)
async def test_without_the_store(version: int, autojump_clock: object) -> None:
    """Without the store, a node describes what it knows itself, and answers that a topic's configs
    cannot be read now, never UNKNOWN_SERVER_ERROR.
    """
    node = await node_where({"topics/orders": {"retention.ms": "5"}})
    assert isinstance(node.store, MemoryStore)
    node.store.tree.suspend(node.store)
    await trio.testing.wait_all_tasks_blocked()
    answer = await Client(node).ask(
        wanting((TOPIC, "orders"), (TOPIC, "missing"), (BROKER, "1"), (BROKER, "")), version
    )
    assert [result.error_code for result in answer.results] == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert "ZooKeeper" in answer.results[0].error_message
    assert not answer.results[0].configs
    assert answer.results[2].configs


async def test_configs_that_make_no_sense() -> None:
    """Malformed topic configs that another program wrote override nothing."""
    node = await node_where({"topics/orders": {}})
    await node.store.commit([SetData("/config/topics/orders", b'{"version":1,"config":[')])
    answer = await Client(node).ask(wanting((TOPIC, "orders")), LAST)
    assert answer.results[0].error_code == ErrorCode.NONE
    assert FROM_TOPIC not in {source for _, source in rows(answer.results[0]).values()}
