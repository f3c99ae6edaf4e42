"""IncrementalAlterConfigs: its four operations on topics, nodes and loggers, its checks in Kafka's
order, policies.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
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
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(2)
LAST = 1
SET, DELETE, APPEND, SUBTRACT = range(4)
REQUEST, CONFIG, UNKNOWN = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
BEFORE = {"retention.ms": "1", "cleanup.policy": "compact"}
LOGGER = "minicontroller.tests.altered"

Step = tuple[str, int, str | None]


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling({"log.cleanup.policy": "compact,delete"}) as cluster:
        await cluster.make(wanted("a", 1, 1, configs=BEFORE), wanted("b", 1, 1))
        yield cluster


@pytest.fixture(name="logger")
def logger_fixture() -> Iterator[logging.Logger]:
    logger = logging.getLogger(LOGGER)
    yield logger
    logger.setLevel(logging.NOTSET)


def steps(kind: int, name: str, *configs: Step) -> IncrementalAlterConfigsResource:
    return IncrementalAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ],
    )


def altering(
    *resources: IncrementalAlterConfigsResource, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)


OPERATIONS: list[tuple[str, Sequence[Step], Mapping[str, str]]] = [
    ("set", [("segment.ms", SET, "2")], {**BEFORE, "segment.ms": "2"}),
    ("set anew", [("retention.ms", SET, "2")], {**BEFORE, "retention.ms": "2"}),
    ("delete", [("retention.ms", DELETE, None)], {"cleanup.policy": "compact"}),
    ("delete with a value", [("retention.ms", DELETE, "9")], {"cleanup.policy": "compact"}),
    ("delete what is not set", [("segment.ms", DELETE, None)], BEFORE),
    ("delete what nobody knows", [("no.such", DELETE, None)], BEFORE),
    ("append", [("cleanup.policy", APPEND, "delete")], {**BEFORE, "cleanup.policy": "compact,delete"}),
    ("append what is there", [("cleanup.policy", APPEND, "compact")], BEFORE),
    (
        "append one twice",
        [("cleanup.policy", APPEND, "delete,delete")],
        {**BEFORE, "cleanup.policy": "compact,delete,delete"},
    ),
    ("subtract", [("cleanup.policy", SUBTRACT, "compact,other")], {**BEFORE, "cleanup.policy": ""}),
    ("subtract what is not there", [("cleanup.policy", SUBTRACT, "delete")], BEFORE),
    ("nothing", [], BEFORE),
]


@pytest.mark.parametrize(("wish", "after"), [case[1:] for case in OPERATIONS], ids=[case[0] for case in OPERATIONS])
async def test_operations(cluster: Ruling, wish: Sequence[Step], after: Mapping[str, str]) -> None:
    """Each operation applies to the present value in every version; other configs stay; a
    notification informs every node.
    """
    for version in VERSIONS:
        (row,) = (await cluster.ask(altering(steps(TOPIC, "a", *wish)), version)).responses
        assert (row.resource_type, row.resource_name, row.error_code, row.error_message) == (TOPIC, "a", 0, None)
        assert await cluster.configs("topics/a") == after
    assert dict(cluster.topic("a").configs) == after
    assert await cluster.notifications() == [("topics", "a")] * 2


async def test_lists_begin_with_kafka_s_default(cluster: Ruling) -> None:
    """APPEND to a list without a value begins with Kafka's default, whatever the node's
    file says.
    """
    assert codes(await cluster.ask(altering(steps(TOPIC, "b", ("cleanup.policy", APPEND, "compact"))), LAST)) == [0]
    assert await cluster.configs("topics/b") == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(("name", "path"), [(node, "1") for node in NODE_1] + [("", "<default>")])
async def test_nodes(cluster: Ruling, name: str, path: str) -> None:
    """Unknown keys are accepted for a node and for all nodes; every spelling that Java parses as 1
    names node 1.
    """
    first: list[Step] = [("log.retention.ms", SET, "5"), ("my.own.key", SET, "x")]
    second: list[Step] = [("log.retention.ms", DELETE, None), ("log.cleanup.policy", APPEND, "compact")]
    for wish, after in (
        (first, {"log.retention.ms": "5", "my.own.key": "x"}),
        (second, {"my.own.key": "x", "log.cleanup.policy": "delete,compact"}),
    ):
        assert codes(await cluster.ask(altering(steps(BROKER, name, *wish)), LAST)) == [0]
        assert await cluster.configs(f"brokers/{path}") == after
    assert await cluster.notifications() == [("brokers", path)] * 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_validate_only(cluster: Ruling, logger: logging.Logger, version: int) -> None:
    """Everything is checked, nothing is written, of a topic, of a node and of a logger."""
    wishes = [
        steps(TOPIC, "a", ("retention.ms", SET, "2")),
        steps(BROKER, "1", ("log.retention.ms", SET, "2")),
        steps(BROKER_LOGGER, "1", (LOGGER, SET, "TRACE")),
        steps(TOPIC, "b", ("retention.ms", SET, "x")),
    ]
    assert codes(await cluster.ask(altering(*wishes, validate_only=True), version)) == [0, 0, 0, CONFIG]
    assert await cluster.configs("topics/a") == BEFORE
    assert await cluster.configs("brokers/1") is None
    assert await cluster.notifications() == []
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize("version", VERSIONS)
async def test_loggers(cluster: Ruling, logger: logging.Logger, version: int) -> None:
    """A node's loggers are set and deleted at once, at the node that is asked, and nothing of it is
    written.
    """
    assert codes(await cluster.ask(altering(steps(BROKER_LOGGER, "1", (LOGGER, SET, "ERROR"))), version)) == [0]
    assert logger.level == logging.ERROR
    assert codes(await cluster.ask(altering(steps(BROKER_LOGGER, "01", (LOGGER, DELETE, None))), version)) == [0]
    assert logger.level == logging.NOTSET
    assert await cluster.notifications() == []


KEEP = ("retention.ms", SET, "1")

REFUSALS: list[tuple[str, IncrementalAlterConfigsResource, ErrorCode, Sequence[str]]] = [
    ("unknown topic", steps(TOPIC, "nobody", KEEP), UNKNOWN, ["'nobody'"]),
    ("illegal topic", steps(TOPIC, "bad name!", KEEP), UNKNOWN, ["'bad name!'"]),
    ("no topic", steps(TOPIC, "", KEEP), REQUEST, ["Default topic"]),
    ("unknown config", steps(TOPIC, "a", ("no.such", SET, "1")), CONFIG, ["no.such"]),
    ("append to unknown", steps(TOPIC, "a", ("no.such", APPEND, "1")), CONFIG, ["no.such"]),
    ("append to no list", steps(TOPIC, "a", ("retention.ms", APPEND, "1")), CONFIG, ["append", "retention.ms"]),
    ("subtract from no list", steps(TOPIC, "a", ("retention.ms", SUBTRACT, "1")), CONFIG, ["subtract", "retention.ms"]),
    ("append what is wrong", steps(TOPIC, "a", ("cleanup.policy", APPEND, "foo")), CONFIG, ["cleanup.policy", "foo"]),
    ("bad value", steps(TOPIC, "a", ("retention.ms", SET, "x")), CONFIG, ["retention.ms", "x", "'a'"]),
    ("null", steps(TOPIC, "a", ("x", SET, None), ("y", APPEND, None), ("z", DELETE, None)), REQUEST, ["x, y"]),
    ("key twice", steps(TOPIC, "a", KEEP, ("retention.ms", DELETE, None)), REQUEST, ["duplicate"]),
    ("operation 9", steps(TOPIC, "a", ("retention.ms", 9, "1")), REQUEST, ["9"]),
    ("operation -1", steps(TOPIC, "a", ("retention.ms", -1, "1")), REQUEST, ["-1"]),
    ("node's operation 9", steps(BROKER, "1", ("log.retention.ms", 9, "1")), REQUEST, ["9"]),
    ("type 0", steps(0, "a", KEEP), REQUEST, ["0"]),
    ("type 99", steps(99, "a", KEEP), REQUEST, ["99"]),
    ("group", steps(GROUP, "a", KEEP), REQUEST, ["32"]),
    ("client metrics", steps(CLIENT_METRICS, "a", KEEP), REQUEST, ["CLIENT_METRICS"]),
    ("other node", steps(BROKER, "2", ("log.retention.ms", SET, "1")), REQUEST, ["expected 1", "received 2"]),
    ("static", steps(BROKER, "1", ("broker.id", SET, "2")), REQUEST, ["broker.id"]),
    ("node's bad value", steps(BROKER, "1", ("log.retention.ms", SET, "x")), REQUEST, ["log.retention.ms"]),
    ("node's append to no list", steps(BROKER, "1", ("log.retention.ms", APPEND, "1")), CONFIG, ["append"]),
    ("logger of another node", steps(BROKER_LOGGER, "2", (LOGGER, SET, "INFO")), REQUEST, ["expected 1", "2"]),
    ("logger that is not", steps(BROKER_LOGGER, "1", ("no.such", SET, "INFO")), CONFIG, ["no.such"]),
    ("level that is not", steps(BROKER_LOGGER, "1", ("root", SET, "LOUD")), CONFIG, ["LOUD", "TRACE"]),
    ("level in lower case", steps(BROKER_LOGGER, "1", ("root", SET, "info")), CONFIG, ["info"]),
    ("no root", steps(BROKER_LOGGER, "1", ("root", DELETE, None)), REQUEST, ["root"]),
    ("append to a logger", steps(BROKER_LOGGER, "1", ("root", APPEND, "INFO")), REQUEST, ["APPEND"]),
    ("logger's operation 9", steps(BROKER_LOGGER, "1", ("root", 9, "INFO")), REQUEST, ["9"]),
    ("logger by two names", steps(BROKER_LOGGER, "1", ("kafka", SET, "INFO"), ("minicontroller", SET, "WARN")), REQUEST, ["minicontroller"]),
    # Two faults: the one that Kafka finds first.
    ("key twice, null", steps(TOPIC, "a", ("x", SET, "1"), ("x", SET, None)), REQUEST, ["duplicate"]),
    ("null, operation", steps(TOPIC, "a", ("x", 9, None)), REQUEST, ["Null value"]),
    ("null, other node", steps(BROKER, "2", ("x", SET, None)), REQUEST, ["Null value"]),
    ("other node, operation", steps(BROKER, "2", ("x", 9, "1")), REQUEST, ["received 2"]),
    ("operation, unknown topic", steps(TOPIC, "nobody", ("retention.ms", 9, "1")), REQUEST, ["operations type 9"]),
    ("no list, unknown config", steps(TOPIC, "a", ("no.such", SET, "1"), ("retention.ms", APPEND, "1")), CONFIG, ["append"]),
    ("no list, bad value", steps(TOPIC, "a", ("segment.ms", SET, "x"), ("retention.ms", APPEND, "1")), CONFIG, ["append"]),
    ("unknown config, bad value", steps(TOPIC, "a", ("retention.ms", SET, "x"), ("no.such", SET, "1")), CONFIG, ["no.such"]),
    ("static, bad value", steps(BROKER, "1", ("log.retention.ms", SET, "x"), ("broker.id", SET, "2")), REQUEST, ["Cannot update"]),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "code", "said"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
async def test_refused(
    cluster: Ruling, logger: logging.Logger, wish: IncrementalAlterConfigsResource, code: ErrorCode, said: Sequence[str]
) -> None:
    """K4-3: a refused change has its code and a text that says what to mend, in every version, also
    if it is only validated; nothing is written.
    """
    for version in VERSIONS:
        for validate_only in (False, True):
            expect_refused(await cluster.ask(altering(wish, validate_only=validate_only), version), wish, code, said)
    assert await cluster.notifications() == []
    assert await cluster.configs("topics/a") == BEFORE


@pytest.mark.parametrize("name", NOT_NUMBERS)
async def test_ids_of_nodes(cluster: Ruling, name: str) -> None:
    """A broker name that Java does not parse as a number is answered INVALID_REQUEST with the name.
    Loggers have no cluster default.
    """
    answer = await cluster.ask(altering(steps(BROKER, name), steps(BROKER_LOGGER, name)), LAST)
    assert codes(answer) == [REQUEST if name else 0, REQUEST]
    assert name in (answer.responses[1].error_message or "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_named_twice(cluster: Ruling, version: int) -> None:
    """Every row of a resource that stands twice is refused before any other fault; the same name of
    another type is another resource.
    """
    twice = steps(TOPIC, "a", ("x", 9, None))
    wishes = [twice, steps(TOPIC, "1"), steps(BROKER, "1"), twice, steps(BROKER_LOGGER, "1")]
    answer = await cluster.ask(altering(*wishes), version)
    assert codes(answer) == [REQUEST, UNKNOWN, 0, REQUEST, 0]
    assert "at most once" in (answer.responses[0].error_message or "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_one_result_does_not_affect_another(cluster: Ruling, version: int) -> None:
    """K4-2: each resource has its own result, in the order of the request, wherever it
    was judged.
    """
    wishes = [steps(TOPIC, "nobody"), steps(0, "x"), steps(TOPIC, "b", KEEP), steps(BROKER, "2"), steps(BROKER, "")]
    answer = await cluster.ask(altering(*wishes), version)
    assert [(row.resource_type, row.resource_name, row.error_code) for row in answer.responses] == [
        (TOPIC, "nobody", UNKNOWN), (0, "x", REQUEST), (TOPIC, "b", 0), (BROKER, "2", REQUEST), (BROKER, "", 0),
    ]  # fmt: skip
    assert await cluster.configs("topics/b") == {"retention.ms": "1"}
    assert (await cluster.ask(altering(), version)).responses == []


async def test_a_result_that_contradicts_what_is_set(cluster: Ruling) -> None:
    """The whole result is judged: a value may contradict one that was set before."""
    assert codes(await cluster.ask(altering(steps(TOPIC, "a", ("max.compaction.lag.ms", SET, "5"))), LAST)) == [0]
    answer = await cluster.ask(altering(steps(TOPIC, "a", ("min.compaction.lag.ms", SET, "6"))), LAST)
    assert codes(answer) == [CONFIG]


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(logger: logging.Logger, version: int) -> None:
    """K590-1: what this node judges itself, its loggers too, it answers; the rest is the
    controller's, and NOT_CONTROLLER where nothing is forwarded.
    """
    node = node_with(image([broker(1), broker(2)], [topic("a", led(1))], controller_id=2))
    wishes = [
        steps(TOPIC, "a", KEEP),
        steps(TOPIC, "b", ("x", SET, None)),
        steps(BROKER_LOGGER, "1", (LOGGER, SET, "WARN")),
    ]
    answer = await Client(node, handlers=APIS).ask(altering(*wishes), version)
    assert codes(answer) == [ErrorCode.NOT_CONTROLLER, REQUEST, 0]
    assert logger.level == logging.WARNING


async def test_the_policy_is_asked() -> None:
    """K201-1c, K201-4, K201-5: the policy sees the whole resulting state, the operands beside it,
    and the state before.
    """
    policy = Bounded()
    async with ruling(policy=policy) as cluster:
        await cluster.make(wanted("a", 1, 1, configs=BEFORE))
        wish = steps(
            TOPIC, "a", ("retention.ms", DELETE, "7"), ("cleanup.policy", APPEND, "delete"), ("segment.ms", SET, "9")
        )
        await cluster.ask(altering(wish), LAST, principal="User:al")
    (asked,) = policy.asked
    assert (asked.topic, asked.principal, asked.api) == ("a", "User:al", "IncrementalAlterConfigs")
    assert dict(asked.requested_state.configs) == {"cleanup.policy": "compact,delete", "segment.ms": "9"}
    assert asked.config_operations == {"retention.ms": None, "cleanup.policy": "delete", "segment.ms": "9"}
    assert asked.config_operation_kinds == {"retention.ms": "delete", "cleanup.policy": "append", "segment.ms": "set"}
    assert policy.before == [BEFORE]


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_policy_refuses(version: int) -> None:
    """K201-6: POLICY_VIOLATION with the policy's words, for that topic alone, after every other
    check, also where it is only validated.
    """
    async with ruling(policy=Bounded()) as cluster:
        await cluster.make(wanted("a", 1, 1), wanted("b", 1, 1))
        for validate_only in (True, False):
            wishes = [steps(TOPIC, "a", ("retention.ms", SET, "11")), steps(TOPIC, "b", ("retention.ms", SET, "9"))]
            answer = await cluster.ask(altering(*wishes, validate_only=validate_only), version)
            assert codes(answer) == [ErrorCode.POLICY_VIOLATION, 0]
            assert answer.responses[0].error_message == "Ten is enough."
        wrong = steps(TOPIC, "a", ("retention.ms", SET, "11"), ("no.such", SET, "1"))
        assert codes(await cluster.ask(altering(wrong), version)) == [CONFIG]
        assert await cluster.configs("topics/a") == {}
