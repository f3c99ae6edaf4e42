"""Asking the policy: consent is the only way through (K201-6, K201-11)."""

import logging
import sys

import pytest
import trio

from minicontroller.admin.policy.runner import PolicyRefusal, PolicyRunner
from minicontroller.cluster.errors import MAX_TEXT, Refusal
from minicontroller.policies import (
    AlterBrokerConfigsRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.judging import NO_TEXT, PolicyReply
from minicontroller.policies.legacy import AlterConfigMetadata, LegacyPolicies
from minicontroller.policies.states import VersionedCluster
from minicontroller.policies.verdict import PolicyOutcome, Verdict
from minicontroller.protocol.error_codes import ErrorCode
from tests.policies.asking import alter, cluster, create, delete, delete_records
from tests.policies.in_place import InPlace
from tests.policies.misbehaving import (
    Doing,
    raising,
    refusal,
    running,
)

BROKER = AlterBrokerConfigsRequest(broker="1", principal=None, config_operations={"a": "b"})


# ------------------ judgement


async def test_consent() -> None:
    """A method that returns allows, and the verdict says who judged and how long it took."""
    runner = running(Doing(lambda _: None))
    verdict = await runner.judge(create(), cluster())
    assert verdict == Verdict(PolicyOutcome.ALLOWED, "Doing", None, verdict.seconds, (), runner.policy_hash)
    assert verdict.seconds >= 0
    await runner.close()


class Recording(TopicManagementPolicy):
    def __init__(self) -> None:
        self.seen: list[tuple[str, JudgedRequest, ClusterState]] = []

    def _record(self, method: str, request: JudgedRequest, cluster: ClusterState) -> None:
        self.seen.append((method, request, cluster))

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self._record("create", request, cluster)

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        self._record("alter", request, cluster)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self._record("delete", request, cluster)

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:
        self._record("records", request, cluster)


async def test_each_request_has_its_method() -> None:
    """Every kind of request reaches its own method with the cluster it was asked about."""
    policy, asked_about = Recording(), cluster()
    runner = running(policy)
    requests = {"create": create(), "alter": alter(), "delete": delete(), "records": delete_records()}
    for request in requests.values():
        assert (await runner.judge(request, asked_about)).decision is PolicyOutcome.ALLOWED
    assert [(method, request) for method, request, _ in policy.seen] == list(requests.items())
    assert all(seen is asked_about for _, _, seen in policy.seen)
    await runner.close()


async def test_what_is_not_overridden_is_allowed() -> None:
    """A policy that judges nothing is not asked."""

    class Unasked(InPlace):
        async def ask(self, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
            raise AssertionError(request, cluster)

    runner = PolicyRunner(Unasked(TopicManagementPolicy()))
    for request in (create(), alter(), delete(), delete_records(), BROKER):
        assert (await runner.judge(request, cluster())).decision is PolicyOutcome.ALLOWED


async def test_a_method_may_be_an_attribute() -> None:
    """A method that an instance got when it was made is asked as any other."""
    policy = TopicManagementPolicy()
    policy.validate_delete_topic = raising(PolicyViolation("no")).action  # type: ignore[method-assign, assignment]
    runner = running(policy)
    with pytest.raises(PolicyRefusal):
        await runner.judge(delete(), cluster())
    await runner.close()


# ------------------ refusal


async def test_violation(caplog: pytest.LogCaptureFixture) -> None:
    """A violation is POLICY_VIOLATION with the policy's text, and one line in the log that says who
    wanted what (K201-6).
    """
    runner = running(raising(PolicyViolation("too few replicas")))
    with caplog.at_level(logging.INFO, "minicontroller.policy"):
        refused = await refusal(runner, create("orders"))
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.message) == (ErrorCode.POLICY_VIOLATION, "too few replicas")
    assert (refused.verdict.decision, refused.verdict.message) == (PolicyOutcome.VIOLATED, "too few replicas")
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        "The policy Doing refused CreateTopics of topic orders by User:alice: too few replicas"
    )
    await runner.close()


@pytest.mark.parametrize("text", ["", "  \n", None])
async def test_violation_without_a_text(text: str | None) -> None:
    """A refusal always says something to the caller."""
    runner = running(raising(PolicyViolation() if text is None else PolicyViolation(text)))
    assert (await refusal(runner, create())).message == NO_TEXT
    await runner.close()


@pytest.mark.parametrize("text", ["\N{GRINNING FACE}" * 100_000, "\ud800 lone", "x" * 40_000])
async def test_the_text_fits_the_protocol(text: str) -> None:
    """Any text of a policy is sent as valid UTF-8 that fits a string of the oldest versions."""
    runner = running(raising(PolicyViolation(text)))
    message = (await refusal(runner, create())).message
    assert message is not None
    assert len(message) <= MAX_TEXT
    assert len(message.encode()) <= 32_767
    await runner.close()


class MuteError(Exception):
    def __str__(self) -> str:
        raise OSError("cannot say")


class MuteViolation(PolicyViolation):
    def __str__(self) -> str:
        raise OSError("cannot say")


class OwnBaseException(BaseException):
    pass


def recurse(request: object) -> object:
    return recurse(request)


def mutate(request: CreateTopicRequest) -> None:
    request.requested_state.configs["retention.ms"] = "1"  # type: ignore[index]


async def coroutine() -> None:
    """Nobody awaits this."""


@pytest.mark.parametrize(
    ("policy", "logged"),
    [
        (raising(ValueError("a bug")), "ValueError: a bug"),
        (raising(MuteError()), "MuteError"),
        (raising(MuteViolation()), "cannot say"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(StopIteration()), "StopIteration"),
        (raising(StopAsyncIteration()), "StopAsyncIteration"),
        (raising(MemoryError()), "MemoryError"),
        (raising(OwnBaseException("odd")), "OwnBaseException: odd"),
        (raising(ExceptionGroup("many", [PolicyViolation("one of them")])), "one of them"),
        (raising(trio.TooSlowError()), "TooSlowError"),
        (Doing(recurse), "RecursionError"),
        (Doing(mutate), "TypeError: 'mappingproxy' object does not support item assignment"),
        (Doing(lambda _: True), "it returned True"),
        (Doing(lambda _: False), "it returned False"),
        (Doing(lambda _: coroutine()), "it returned <coroutine"),
    ],
)
async def test_a_broken_policy_refuses(caplog: pytest.LogCaptureFixture, policy: Doing, logged: str) -> None:
    """Any other behaviour of a policy is a server error without a text for the client, logged with
    the request (K201-11).
    """
    runner = running(policy)
    request = create("orders", configs={"retention.ms": "7"})
    refused = await refusal(runner, request)
    assert (refused.code, refused.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert refused.verdict.decision is PolicyOutcome.BROKEN
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.name == "minicontroller.policy"
    assert logged in record.getMessage()
    assert repr(request) in record.getMessage()
    assert dict(request.requested_state.configs) == {"retention.ms": "7"}
    await runner.close()


async def test_a_broken_call_does_not_spoil_the_next() -> None:
    """Each request is judged by itself."""
    runner = running(Doing(lambda request: sys.exit(1) if request.topic == "bad" else None))
    assert (await refusal(runner, create("bad"))).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await runner.judge(create("good"), cluster())).decision is PolicyOutcome.ALLOWED
    await runner.close()


class OlderPolicy:
    def validate(self, request_metadata: AlterConfigMetadata) -> None:
        raise PolicyViolation(f"{request_metadata.resource.type.name} {request_metadata.resource.name}")


async def test_configs_of_brokers_are_judged_by_older_policies(caplog: pytest.LogCaptureFixture) -> None:
    """The older policy for altered configs goes on judging those of brokers (K201-9)."""
    runner = running(LegacyPolicies(alter=OlderPolicy()))
    with caplog.at_level(logging.INFO, "minicontroller.policy"):
        assert (await refusal(runner, BROKER)).message == "BROKER 1"
    assert "The policy OlderPolicy refused" in caplog.text
    assert "of broker 1 by (not authenticated)" in caplog.text
    await runner.close()
