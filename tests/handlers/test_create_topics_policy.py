"""CreateTopics under a policy: what the policy sees, what it sees of the batch, and refusals."""

from collections.abc import Callable

import pytest

from minicontroller.policies import ClusterState, CreateTopicRequest, PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.error_codes import ErrorCode
from tests.handlers.ruling import codes, creating, is_blank, ruling, wanted

VERSIONS = range(8)
LAST = 7


class Team(TopicManagementPolicy):
    """Keeps what it was asked, and refuses what a test says."""

    def __init__(self, refuse: Callable[[CreateTopicRequest, ClusterState], str | None]) -> None:
        self.asked: list[CreateTopicRequest] = []
        self._refuse = refuse

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self.asked.append(request)
        reason = self._refuse(request, cluster)
        if reason is not None:
            raise PolicyViolation(reason)


async def test_the_policy_is_asked() -> None:
    """K201-1b, K201-4, K201-5: about each topic that passed every other check, with the state that
    it would get and who asked.
    """
    policy = Team(lambda _request, _cluster: None)
    async with ruling({"num.partitions": "2"}, policy=policy) as cluster:
        wishes = [wanted("bad!", 1, 1), wanted("a", -1, 3, configs={"retention.ms": "1"}), wanted("b", placed={0: [3]})]
        await cluster.ask(creating(*wishes), LAST, principal="User:alice")
        await cluster.ask(creating(wanted("c", 1, 1), validate_only=True), LAST)
    counted, placed, dry = policy.asked
    assert (counted.topic, counted.principal, counted.client_id, counted.client_host) == (
        "a", "User:alice", "tests", "10.0.0.9",
    )  # fmt: skip
    state = counted.requested_state
    assert (state.num_partitions, state.replication_factor, dict(state.configs)) == (2, 3, {"retention.ms": "1"})
    assert state.generated_replica_assignments
    assert not placed.requested_state.generated_replica_assignments
    assert dict(placed.requested_state.replica_assignments) == {0: (3,)}
    assert (counted.api, counted.validate_only) == ("CreateTopics", False)
    assert (dry.topic, dry.validate_only, dry.principal) == ("c", True, None)


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_policy_refuses(version: int) -> None:
    """K201-6: POLICY_VIOLATION with the policy's own words, for that topic alone; also where it is
    only validated.
    """
    policy = Team(lambda request, _cluster: "Names start with a team." if request.topic == "orders" else None)
    async with ruling(policy=policy) as cluster:
        for validate_only in (True, False) if version >= 1 else (False,):
            wishes = [wanted("orders", 1, 1), wanted("team.orders", 1, 1)]
            answer = await cluster.ask(creating(*wishes, validate_only=validate_only), version)
            assert codes(answer) == [ErrorCode.POLICY_VIOLATION, 0]
            assert answer.topics[0].error_message == ("Names start with a team." if version >= 1 else "")
            assert is_blank(answer.topics[0])
        assert set(cluster.image.topics) == {"team.orders"}


@pytest.mark.parametrize("validate_only", [False, True])
async def test_a_batch_cannot_pass_a_limit(validate_only: bool) -> None:
    """K201-3: each element sees what those before it made, a refused one not among them; so no
    limit is passed by batching.
    """
    policy = Team(lambda _request, cluster: "Two topics are enough." if len(cluster.topics()) >= 2 else None)
    async with ruling(policy=policy) as cluster:
        wishes = [wanted(name, 1, 1) for name in ("a", "bad!", "b", "c", "d")]
        answer = await cluster.ask(creating(*wishes, validate_only=validate_only), LAST)
    violation = ErrorCode.POLICY_VIOLATION
    assert codes(answer) == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0, violation, violation]


async def test_a_broken_policy_refuses() -> None:
    """K201-11: if the policy raises, its topic is refused with -1 and no text, and the other topics
    are created.
    """
    policy = Team(lambda request, _cluster: str(1 / 0) if request.topic == "a" else None)
    async with ruling(policy=policy) as cluster:
        answer = await cluster.ask(creating(wanted("a", 1, 1), wanted("b", 1, 1)), LAST)
        assert set(cluster.image.topics) == {"b"}
    assert [(row.error_code, row.error_message) for row in answer.topics] == [
        (ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (0, None),
    ]
