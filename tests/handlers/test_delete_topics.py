"""DeleteTopics: by name and by id in every version, its checks in Kafka's order, timeouts,
duplicates and policies.
"""

from pathlib import Path
from typing import Any

import pytest
import trio.testing

from minicontroller.audit.replay import Replay
from minicontroller.cluster.znodes import layout
from minicontroller.policies import ClusterState, DeleteTopicRequest, PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.dry_runs import packed
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.audit.logs import decisions_in, events_in, found
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import PATIENT_MS, Ruling, creating, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(7)
LAST = 6
NO_ID, UNKNOWN_ID = bytes(16), b"\7" * 16


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(*(wanted(name, 2, 2) for name in ("a", "b", "c")))
        yield cluster


def named(version: int, *names: str, timeout_ms: int = PATIENT_MS) -> DeleteTopicsRequest:
    """Build the request in the form of each version."""
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)


def stated(*topics: tuple[str | None, bytes], timeout_ms: int = PATIENT_MS) -> DeleteTopicsRequest:
    """v6: pairs of name and id."""
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics], timeout_ms=timeout_ms
    )


def codes(answer: DeleteTopicsResponse) -> list[int]:
    return [row.error_code for row in answer.responses]


@pytest.mark.parametrize("version", VERSIONS)
async def test_by_name(cluster: Ruling, version: int) -> None:
    """K4-D5: the topic is gone from the node's metadata when the answer comes; the row has the name
    and no id.
    """
    (row,) = (await cluster.ask(named(version, "a"), version)).responses
    assert (row.name, row.error_code, row.error_message, row.topic_id) == ("a", 0, None, NO_ID)
    assert set(cluster.node.cache.image.topics) == {"b", "c"}


async def test_what_is_left(cluster: Ruling) -> None:
    """K4-D6a: no znode of a deleted topic stays, its name is free for another one, which has
    another id.
    """
    before = cluster.topic("a")
    await cluster.ask(named(LAST, "a"), LAST)
    await trio.testing.wait_all_tasks_blocked()
    for path in (layout.topic_path("a"), layout.topic_config_path("a"), layout.delete_topic_path("a")):
        assert await cluster.store.get(path) is None
    await cluster.make(wanted("a", 1, 1))
    assert cluster.topic("a").topic_id != before.topic_id


async def test_by_id(cluster: Ruling) -> None:
    """In v6 a topic can be deleted by its id, and the row has name and id; an unknown id is
    UNKNOWN_TOPIC_ID without a name.
    """
    topic = cluster.topic("a")
    known, unknown = (await cluster.ask(stated((None, topic.topic_id), (None, UNKNOWN_ID)), LAST)).responses
    assert (known.name, known.topic_id, known.error_code) == ("a", topic.topic_id, 0)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    assert set(cluster.image.topics) >= {"b", "c"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["nobody", "bad name!", "", ".", "n" * 250, "n" * 32_767])
async def test_unknown(cluster: Ruling, version: int, name: str) -> None:
    """K4-D2a: a topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION in every version, whatever
    its name is like.
    """
    (row,) = (await cluster.ask(named(version, name), version)).responses
    assert (row.name, row.error_code, row.error_message) == (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


@pytest.mark.parametrize("version", VERSIONS)
async def test_one_result_does_not_affect_another(cluster: Ruling, version: int) -> None:
    """K4-2: each topic has its own result, in the order of the request."""
    answer = await cluster.ask(named(version, "nobody", "b", "bad!", "a"), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(row.name, row.error_code) for row in answer.responses] == [
        ("nobody", unknown), ("b", 0), ("bad!", unknown), ("a", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
async def test_twice(cluster: Ruling, version: int) -> None:
    """K4-D1b: a topic named twice is one deletion, whose outcome stands in every row."""
    answer = await cluster.ask(named(version, "a", "nobody", "a", "nobody"), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == [0, unknown, 0, unknown]


@pytest.mark.parametrize("by_id_first", [True, False])
async def test_by_name_and_by_id(cluster: Ruling, by_id_first: bool) -> None:
    """A topic named in one row and given by id in another is deleted once, and both rows say so."""
    rows: list[tuple[str | None, bytes]] = [(None, cluster.topic("a").topic_id), ("a", NO_ID)]
    assert codes(await cluster.ask(stated(*(rows if by_id_first else rows[::-1])), LAST)) == [0, 0]
    assert "a" not in cluster.node.cache.image.topics


@pytest.mark.parametrize("name", ["a", "", "nobody"])
async def test_both_in_one_row(cluster: Ruling, name: str) -> None:
    """A name and an id in one row: INVALID_REQUEST for the whole request, and
    nothing is deleted.
    """
    answer = await cluster.ask(stated(("b", NO_ID), (name, UNKNOWN_ID)), LAST)
    assert [(row.name, row.topic_id, row.error_code) for row in answer.responses] == [
        ("b", NO_ID, ErrorCode.INVALID_REQUEST),
        (name, UNKNOWN_ID, ErrorCode.INVALID_REQUEST),
    ]
    assert set(cluster.image.topics) == {"a", "b", "c"}


async def test_neither_in_a_row(cluster: Ruling) -> None:
    """A row with neither name nor id is refused (29, as in Kafka), and the other topic
    is deleted.
    """
    answer = await cluster.ask(stated((None, NO_ID), ("a", NO_ID)), LAST)
    assert [(row.name, row.error_code) for row in answer.responses] == [
        (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("a", 0),
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing(cluster: Ruling, version: int) -> None:
    """A request without topics is answered without rows."""
    assert (await cluster.ask(named(version), version)).responses == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
async def test_no_time(cluster: Ruling, version: int, timeout_ms: int) -> None:
    """K4-D5, K4-C6: with a timeout of 0 unknown topics are answered at once; other deletions are
    started, answered REQUEST_TIMED_OUT, and completed.
    """
    answer = await cluster.ask(named(version, "a", "nobody", timeout_ms=timeout_ms), version)
    assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    await trio.testing.wait_all_tasks_blocked()
    assert "a" not in cluster.node.cache.image.topics


async def test_a_node_that_does_not_answer(cluster: Ruling) -> None:
    """K4-D5, K4-D6c: only the physical part waits for every replica: the answer comes, the topic is
    marked, and its name is not free.
    """
    cluster.deaf.update({2, 3})
    assert codes(await cluster.ask(named(LAST, "a"), LAST)) == [0]
    assert await cluster.store.get(layout.delete_topic_path("a")) is not None
    (row,) = (await cluster.ask(creating(wanted("a", 1, 1)), 7)).topics
    assert row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert "marked for deletion" in (row.error_message or "")
    assert codes(await cluster.ask(named(LAST, "a"), LAST)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_in_time_and_not(autojump_clock: object) -> None:
    """K4-D5, K4-6a: where every node has to know, one that does not answer means REQUEST_TIMED_OUT
    at the timeout; the topic goes.
    """
    async with ruling({"metadata.completion": "cluster"}) as cluster:
        await cluster.make(wanted("a", 1, 1))
        cluster.deaf.add(3)
        assert codes(await cluster.ask(named(LAST, "a", timeout_ms=100), LAST)) == [ErrorCode.REQUEST_TIMED_OUT]
        assert "a" not in cluster.node.cache.image.topics


async def test_already_marked(cluster: Ruling) -> None:
    """K4-D3: who asks for a deletion that another one has begun waits for the same end and gets no
    error.
    """
    await cluster.make(wanted("d", placed={0: [2]}))
    answers: list[list[int]] = []

    async def ask() -> None:
        answers.append(codes(await cluster.ask(named(LAST, "d"), LAST)))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
    assert answers == [[0]] * 3


async def test_internal_topics(cluster: Ruling) -> None:
    """The coordinators' topics can be deleted like others."""
    await cluster.make(wanted("__consumer_offsets", 1, 1))
    assert codes(await cluster.ask(named(LAST, "__consumer_offsets"), LAST)) == [0]


@pytest.mark.parametrize("version", VERSIONS)
async def test_switched_off(autojump_clock: object, version: int) -> None:
    """delete.topic.enable=false refuses every row, in v0 to v2 with the code that they know; before
    a name and an id in one row.
    """
    async with ruling({"delete.topic.enable": "false"}) as cluster:
        await cluster.make(wanted("a", 1, 1))
        answer = await cluster.ask(named(version, "a", "nobody"), version)
        refused = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        assert [(row.name, row.error_code) for row in answer.responses] == [("a", refused), ("nobody", refused)]
        if version == LAST:
            both = await cluster.ask(stated(("a", UNKNOWN_ID)), LAST)
            assert codes(both) == [ErrorCode.TOPIC_DELETION_DISABLED]
        assert "a" in cluster.image.topics


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(version: int) -> None:
    """K4-D1a: a node that is not the controller says so for every row, without a text, where
    nothing is forwarded.
    """
    node = node_with(image([broker(1), broker(2)], controller_id=2), {"delete.topic.enable": "false"})
    answer = await Client(node, handlers=APIS).ask(named(version, "a", "a"), version)
    assert [(row.name, row.error_code, row.error_message) for row in answer.responses] == [
        ("a", ErrorCode.NOT_CONTROLLER, None)
    ] * 2


class Keeper(TopicManagementPolicy):
    """Keeps topics whose names begin with `keep`, and at least one topic."""

    def __init__(self) -> None:
        self.asked: list[DeleteTopicRequest] = []

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self.asked.append(request)
        if request.topic.startswith("keep"):
            raise PolicyViolation(f"{request.topic} is kept.")
        if len(cluster.topics()) <= 1:
            raise PolicyViolation("The last topic stays.")


async def test_the_policy_is_asked() -> None:
    """K201-1d, K201-4, K201-5: about each topic that exists, also when it is named by its id, and
    once if it is named twice.
    """
    policy = Keeper()
    async with ruling(policy=policy) as cluster:
        await cluster.make(*(wanted(name, 1, 1) for name in ("a", "b", "c")))
        rows: list[tuple[str | None, bytes]] = [
            (None, cluster.topic("a").topic_id),
            ("nobody", NO_ID),
            ("b", NO_ID),
            ("b", NO_ID),
        ]
        await cluster.ask(stated(*rows), LAST, principal="User:bob")
    assert [(request.topic, request.principal, request.api) for request in policy.asked] == [
        ("a", "User:bob", "DeleteTopics"),
        ("b", "User:bob", "DeleteTopics"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_policy_refuses(version: int, caplog: pytest.LogCaptureFixture) -> None:
    """K201-5, K201-6, K201-7a: a refused topic alone is answered POLICY_VIOLATION, with the
    policy's words from v5 on. v0 and v1 are older than policies: they answer UNKNOWN_SERVER_ERROR,
    and the log says that it was a violation.
    """
    caplog.set_level("INFO", "minicontroller.policy")
    async with ruling(policy=Keeper()) as cluster:
        await cluster.make(*(wanted(name, 1, 1) for name in ("keep.me", "a", "b")))
        answer = await cluster.ask(named(version, "keep.me", "a"), version)
        expected = ErrorCode.POLICY_VIOLATION if version >= 2 else ErrorCode.UNKNOWN_SERVER_ERROR
        assert codes(answer) == [expected, 0]
        told = f"told as UNKNOWN_SERVER_ERROR in version {version}: keep.me is kept."
        assert (told in caplog.text) == (version < 2)
        assert answer.responses[0].error_message == ("keep.me is kept." if version >= 5 else None)
        assert "keep.me" in cluster.image.topics


async def test_a_batch_cannot_pass_a_limit() -> None:
    """K201-3: the policy sees what those before it in the request left."""
    async with ruling(policy=Keeper()) as cluster:
        await cluster.make(wanted("a", 1, 1), wanted("b", 1, 1))
        answer = await cluster.ask(named(LAST, "a", "b"), LAST)
    assert codes(answer) == [0, ErrorCode.POLICY_VIOLATION]


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_a_dry_run(version: int, tmp_path: Path) -> None:
    """K201-8a: everything is checked, the policy included, which sees the topics before it as
    deleted, and nothing is deleted; the audit log has it as validated.
    """
    policy = Keeper()
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        await cluster.make(*(wanted(name, 1, 1) for name in ("a", "b")))
        asked = stated(("a", NO_ID), ("nobody", NO_ID), ("a", NO_ID), (None, cluster.topic("b").topic_id))
        answer = await cluster.ask(packed(asked), version)
        assert codes(answer) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, ErrorCode.POLICY_VIOLATION]
        assert answer.responses[3].error_message == ("The last topic stays." if version >= 5 else None)
        assert not any(topic.marked_for_deletion for topic in cluster.image.topics.values())
        assert await cluster.store.children(layout.DELETE_TOPICS) == []
    assert [request.validate_only for request in policy.asked] == [True, True]
    decisions = [each for each in decisions_in(tmp_path) if each.operation == "delete_topic"]
    assert [(each.name, each.validate_only, each.error, each.effect.value) for each in decisions] == [
        ("a", True, "NONE", "none"),
        ("nobody", True, "UNKNOWN_TOPIC_OR_PARTITION", "none"),
        ("b", True, "POLICY_VIOLATION", "none"),
    ]
    assert found(tmp_path) == []
    replay = Replay()
    for event in events_in(tmp_path):
        if event is decisions[2] or event == decisions[2]:
            question = replay.question(decisions[2])
            assert question is not None and question[1].topics() == {"b"}
        assert list(replay.apply(event)) == []
