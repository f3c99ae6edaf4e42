"""The levels of loggers are judged and recorded like everything else that a request changes, and
nothing that is judged can be silenced.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from minicontroller.audit.event import REDACTED, Decision, Effect, EntityChange
from minicontroller.controller.active.jobs import Draft, StagedElement
from minicontroller.policies import AlterLoggersRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.process.settings.log_levels import KAFKA_LOGGERS, described_levels, levels, levels_after
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.audit.logs import decisions_in, found
from tests.handlers.altering import BROKER_LOGGER, codes
from tests.handlers.ruling import Ruling, creating, ruling, wanted
from tests.rules.reading import rules

SET, DELETE = 0, 1
JUDGE = "minicontroller.policy"
TEST = "minicontroller.tests.loggers"

AUDIBLE = """
[[rule]]
name = "audible"
operations = "alter_loggers"
condition = '''request.broker == "1" && principal == "User:platform"
    || !after.configs.exists(logger, logger.startsWith("minicontroller.policy") && after.configs[logger] != before.configs[logger])'''
"""


class Audible(TopicManagementPolicy):
    """Decides as `AUDIBLE` does."""

    def validate_alter_loggers(self, request: AlterLoggersRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        silenced = [name for name, level in request.after.items() if level != request.before[name]]
        if any(name.startswith(JUDGE) for name in silenced) and (request.broker, request.principal) != (
            "1",
            "User:platform",
        ):
            raise PolicyViolation("audible")


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Restore the levels of the process's loggers after a test."""
    names = [JUDGE, TEST]
    before = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def setting(
    *levels: tuple[str, int, str | None], broker: str = "1", validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    configs = [
        IncrementalAlterableConfig(name=name, config_operation=operation, value=level)
        for name, operation, level in levels
    ]
    resource = IncrementalAlterConfigsResource(resource_type=BROKER_LOGGER, resource_name=broker, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def in_force(cluster: Ruling, text: str) -> None:
    assert cluster.node.policy is not None
    if text:
        cluster.node.policy.use(rules(text))


def told(decision: Decision) -> tuple[object, ...]:
    return decision.resource, decision.name, decision.error, decision.effect, decision.config_operations


@pytest.mark.parametrize(
    ("policy", "text"), [(TopicManagementPolicy(), AUDIBLE), (Audible(), "")], ids=["rules", "class"]
)
@pytest.mark.parametrize("is_audited", [True, False])
async def test_nobody_silences_the_policy(
    policy: TopicManagementPolicy, text: str, is_audited: bool, tmp_path: Path
) -> None:
    """A logger's new level is judged by who asks, at which broker, and by the levels before and
    after; with and without an audit log.
    """
    logger = logging.getLogger(JUDGE)
    logger.setLevel(logging.INFO)
    async with ruling({"audit.dir": str(tmp_path)} if is_audited else None, policy=policy) as cluster:
        in_force(cluster, text)
        refused = await cluster.ask(setting((JUDGE, SET, "FATAL"), broker="01"), 1, principal="User:al")
        assert logger.level == logging.INFO
        tried = await cluster.ask(setting((JUDGE, SET, "FATAL"), validate_only=True), 1, principal="User:platform")
        assert logger.level == logging.INFO
        other = await cluster.ask(setting((TEST, SET, "DEBUG")), 1, principal="User:al")
        allowed = await cluster.ask(setting((JUDGE, SET, "ERROR")), 1, principal="User:platform")
        assert logger.level == logging.ERROR
    assert [codes(answer) for answer in (refused, tried, other, allowed)] == [
        [ErrorCode.POLICY_VIOLATION],
        [0],
        [0],
        [0],
    ]
    assert logging.getLogger(TEST).level == logging.DEBUG
    if is_audited:
        decisions = decisions_in(tmp_path)
        assert [told(each) for each in decisions] == [
            ("logger", "1", "POLICY_VIOLATION", Effect.NONE, {JUDGE: "FATAL"}),
            ("logger", "1", "NONE", Effect.NONE, {JUDGE: "FATAL"}),
            ("logger", "1", "NONE", Effect.APPLIED, {TEST: "DEBUG"}),
            ("logger", "1", "NONE", Effect.APPLIED, {JUDGE: "ERROR"}),
        ]
        info, fatal = {JUDGE: "INFO"}, {JUDGE: "FATAL"}
        assert decisions[0].entity == EntityChange(before=info, requested=fatal, after=info)
        assert decisions[3].entity == EntityChange(before=info, requested={JUDGE: "ERROR"}, after={JUDGE: "ERROR"})
        assert found(tmp_path) == []


async def test_whatever_the_level_is(tmp_path: Path) -> None:
    """Findings and refusals of rules are counted and recorded also if the log level hides them."""
    warning = "[[partitions]]\nname = 'few'\nmax = 2\naction = 'warn'\n[[replication]]\nname = 'one'\nmax = 1\n"
    logging.getLogger(JUDGE).setLevel(logging.CRITICAL + 1)
    async with ruling({"audit.dir": str(tmp_path)}, policy=TopicManagementPolicy()) as cluster:
        in_force(cluster, warning)
        await cluster.ask(creating(wanted("a", 3, 1), wanted("b", 1, 2)), 7)
        assert cluster.node.policy is not None
        counted = cluster.node.policy.metrics
        assert sum(counted.findings.values()) == 2
        assert sorted(key[2] for key, count in counted.verdicts.items() if count) == ["allowed", "violated"]
    said = [
        (each.name, [finding.rule for finding in each.policy.findings])
        for each in decisions_in(tmp_path)
        if each.policy
    ]
    assert said == [("a", ["few"]), ("b", ["one"])]


AUTHORIZER = "minicontroller.authorizer"

PROTECTED = """
[[rule]]
name = "protected"
operations = "alter_loggers"
condition = '!after.configs.exists(logger, logger == "minicontroller.authorizer" && after.configs[logger] == "FATAL")'
"""


async def test_names_of_kafka(tmp_path: Path) -> None:
    """A logger by the name that Kafka has for it is ours: a rule that protects ours protects it,
    and the audit log has our name.
    """
    async with ruling({"audit.dir": str(tmp_path)}, policy=TopicManagementPolicy()) as cluster:
        in_force(cluster, PROTECTED)
        before = described_levels()["kafka.authorizer.logger"]
        refused = await cluster.ask(setting(("kafka.authorizer.logger", SET, "FATAL")), 1)
        allowed = await cluster.ask(setting(("kafka.authorizer.logger", SET, "ERROR"), ("kafka.x", SET, "ERROR")), 1)
        assert [codes(refused), codes(allowed)] == [[ErrorCode.POLICY_VIOLATION], [ErrorCode.INVALID_CONFIG]]
        assert described_levels()["kafka.authorizer.logger"] == before
        assert codes(await cluster.ask(setting(("kafka.authorizer.logger", SET, "ERROR")), 1)) == [0]
        assert logging.getLogger(AUTHORIZER).level == logging.ERROR
        assert described_levels()["kafka.authorizer.logger"] == levels()[AUTHORIZER] == "ERROR"
        assert codes(await cluster.ask(setting(("kafka.authorizer.logger", DELETE, None)), 1)) == [0]
        assert logging.getLogger(AUTHORIZER).level == logging.NOTSET
    done = decisions_in(tmp_path)[2]
    assert (done.config_operations, done.entity and done.entity.requested) == (
        {AUTHORIZER: "ERROR"},
        {AUTHORIZER: "ERROR"},
    )


def test_no_name_of_kafka_hides_policies() -> None:
    """Loggers of policies and of the audit log have their own names only."""
    assert not {JUDGE, "minicontroller.audit", "minicontroller.decision"} & set(KAFKA_LOGGERS.values())
    assert all(name.startswith(("minicontroller", "kazoo")) for name in KAFKA_LOGGERS.values())


@pytest.mark.parametrize("is_audited", [True, False])
async def test_a_client_who_leaves(is_audited: bool, tmp_path: Path) -> None:
    """If the client disconnects while the controller is busy, the change of level is both made and
    recorded, or neither.
    """
    logging.getLogger(TEST).setLevel(logging.INFO)
    held = trio.Event()

    async def slow(_draft: Draft) -> list[StagedElement]:
        await held.wait()
        return []

    async with (
        ruling({"audit.dir": str(tmp_path)} if is_audited else None, policy=Audible()) as cluster,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(cluster.controller.writer.write, slow)
        await trio.testing.wait_all_tasks_blocked(0.01)

        async def ask_and_leave(task_status: trio.TaskStatus[trio.CancelScope]) -> None:
            with trio.CancelScope() as scope:
                task_status.started(scope)
                await cluster.ask(setting((TEST, SET, "DEBUG")), 1)

        scope = await nursery.start(ask_and_leave)
        await trio.testing.wait_all_tasks_blocked(0.01)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked(0.01)
        held.set()
    is_done = logging.getLogger(TEST).level == logging.DEBUG
    assert is_done
    if is_audited:
        assert [each.effect for each in decisions_in(tmp_path)] == [Effect.APPLIED]


async def test_what_is_no_level_may_be_a_secret(tmp_path: Path) -> None:
    """Valid levels are recorded; any other value is hidden."""
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await cluster.ask(setting((TEST, SET, "correct-horse-battery")), 1)
        await cluster.ask(setting((TEST, SET, "WARN")), 1)
    assert [each.config_operations for each in decisions_in(tmp_path)] == [{TEST: REDACTED}, {TEST: "WARN"}]


def test_levels_after() -> None:
    """A logger that loses its level has what its ancestors have, as they will be by then."""
    child, parent = logging.getLogger(f"{TEST}.child"), logging.getLogger(TEST)
    child.setLevel(logging.ERROR)
    parent.setLevel(logging.WARNING)
    try:
        assert levels_after({child.name: None}) == {child.name: "WARN"}
        assert levels_after({child.name: None, TEST: "TRACE"}) == {child.name: "TRACE", TEST: "TRACE"}
        assert levels_after({child.name: None, TEST: None, "root": "FATAL"})["root"] == "FATAL"
    finally:
        child.setLevel(logging.NOTSET)
