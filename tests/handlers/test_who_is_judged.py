"""Each client is judged and recorded separately, also while another asks for the same change; with
rules and with a class.
"""

from pathlib import Path

import pytest
import trio.testing

from minicontroller.audit.event import Decision
from minicontroller.controller.active.jobs import Draft, StagedElement
from minicontroller.policies import (
    ClusterState,
    CreateTopicRequest,
    DeleteTopicRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestOrigin
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.audit.logs import decisions_in, found
from tests.handlers.ruling import PATIENT_MS, Ruling, creating, ruling, wanted
from tests.rules.reading import rules

OWNER, STRANGER, FRIEND = "User:owner", "User:stranger", "User:friend"
SERVICE, INTRUDER = "service", "intruder"

OWNED = f"""
[[rule]]
name = "kept"
operations = "delete"
condition = 'principal in ["{OWNER}", "{FRIEND}"]'
"""
SERVED = f"""
[[rule]]
name = "kept"
operations = "create"
condition = 'request.client_id == "{SERVICE}"'
"""


class Owned(TopicManagementPolicy):
    """Decides as `OWNED` does."""

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.principal not in {OWNER, FRIEND}:
            raise PolicyViolation("kept")


class Served(TopicManagementPolicy):
    """Decides as `SERVED` does."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.client_id != SERVICE:
            raise PolicyViolation("kept")


def in_force(cluster: Ruling, text: str) -> None:
    assert cluster.node.policy is not None
    if text:
        cluster.node.policy.use(rules(text))


def told(decision: Decision) -> tuple[str, str, str]:
    return str(decision.principal), decision.error, "" if decision.policy is None else decision.policy.decision


@pytest.mark.parametrize(("policy", "text"), [(TopicManagementPolicy(), OWNED), (Owned(), "")], ids=["rules", "class"])
async def test_a_deletion_that_somebody_else_has_begun(
    policy: TopicManagementPolicy, text: str, tmp_path: Path
) -> None:
    """A principal that may not delete a topic is refused and recorded while its owner deletes it;
    one that may waits for that deletion (K4-D3).
    """
    answers: dict[str, int] = {}
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        in_force(cluster, text)
        await cluster.make(wanted("t", 1, 1))
        held = trio.Event()

        async def slow(_draft: Draft) -> list[StagedElement]:
            await held.wait()
            return []

        async def delete(principal: str) -> None:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=PATIENT_MS)
            [row] = (await cluster.ask(request, 6, principal=principal)).responses
            answers[principal] = row.error_code

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.controller.writer.write, slow)
            for principal in (OWNER, STRANGER, FRIEND):
                await trio.testing.wait_all_tasks_blocked(0.01)
                nursery.start_soon(delete, principal)
            await trio.testing.wait_all_tasks_blocked(0.01)
            held.set()
    assert answers == {OWNER: 0, STRANGER: ErrorCode.POLICY_VIOLATION, FRIEND: 0}
    assert sorted(told(each) for each in decisions_in(tmp_path)[1:]) == [
        (FRIEND, "NONE", "allowed"),
        (OWNER, "NONE", "allowed"),
        (STRANGER, "POLICY_VIOLATION", "violated"),
    ]
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("policy", "text"), [(TopicManagementPolicy(), SERVED), (Served(), "")], ids=["rules", "class"]
)
@pytest.mark.parametrize("asking_first", [SERVICE, INTRUDER])
async def test_an_automatic_creation_that_somebody_else_has_begun(
    policy: TopicManagementPolicy, text: str, asking_first: str, tmp_path: Path
) -> None:
    """Two clients with the same principal that differ otherwise are judged separately, and each has
    its own audit event.
    """
    answers: dict[str, int] = {}
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        in_force(cluster, text)

        async def look(client_id: str) -> None:
            request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            [row] = (await cluster.client(principal=OWNER).ask(request, 12, client_id=client_id)).topics
            answers[client_id] = row.error_code

        asking_last = INTRUDER if asking_first == SERVICE else SERVICE
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look, asking_first)
            nursery.start_soon(look, asking_last)
    decisions = {each.client_id: each for each in decisions_in(tmp_path)}
    assert len(decisions) == len(decisions_in(tmp_path)) == 2
    assert told(decisions[SERVICE]) == (OWNER, "NONE", "allowed")
    assert answers[SERVICE] == ErrorCode.LEADER_NOT_AVAILABLE
    # Whoever comes second asks for what is there already, and gets nothing by it.
    assert decisions[INTRUDER].error in {"POLICY_VIOLATION", "TOPIC_ALREADY_EXISTS"}
    assert answers[INTRUDER] in {ErrorCode.POLICY_VIOLATION, ErrorCode.LEADER_NOT_AVAILABLE}
    assert found(tmp_path) == []


KNOWN = """
[[rule]]
name = "known"
operations = "create"
condition = "principal != null"
"""


class Known(TopicManagementPolicy):
    """Decides as `KNOWN` does."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.principal is None:
            raise PolicyViolation("known")


@pytest.mark.parametrize(("policy", "text"), [(TopicManagementPolicy(), KNOWN), (Known(), "")], ids=["rules", "class"])
@pytest.mark.parametrize("is_forwarded", [False, True])
async def test_a_user_who_is_called_anonymous(
    policy: TopicManagementPolicy, text: str, is_forwarded: bool, tmp_path: Path
) -> None:
    """A user named ANONYMOUS differs from an unauthenticated client, for policies and in the audit
    log, whichever node was asked.
    """
    codes: dict[str | None, int] = {}
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        in_force(cluster, text)
        for principal, name in (("User:ANONYMOUS", "a"), (None, "b")):
            tags = {"origin": RequestOrigin(principal, "10.0.0.7")} if is_forwarded else {}
            client = cluster.client(peer=True) if is_forwarded else cluster.client(principal=principal)
            [row] = (await client.ask(creating(wanted(name, 1, 1)), 7, **tags)).topics
            codes[principal] = row.error_code
    assert codes == {"User:ANONYMOUS": 0, None: ErrorCode.POLICY_VIOLATION}
    assert [each.principal for each in decisions_in(tmp_path)] == ["User:ANONYMOUS", None]
