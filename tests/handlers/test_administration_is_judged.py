"""A policy judges changes of ACLs, users, quotas, tokens, groups and leaders before anything is
written, and the audit log can be asked again.
"""

from pathlib import Path

import pytest

from minicontroller.audit.event import Decision, Effect
from minicontroller.audit.replay import judged_request
from minicontroller.controller.handlers import SPECS
from minicontroller.policies import AdminRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.policies.rules.vocabulary import OPERATION_OF_API
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.registry import KAFKA
from tests.audit.logs import decisions_in, found
from tests.handlers.administering import ALL, NO_TEXT, SETTINGS, Administrator
from tests.handlers.ruling import Ruling, ruling

TEXT = "Ask the platform team."


class Refusing(TopicManagementPolicy):
    """Keeps what it is asked, and refuses all of it once it is strict."""

    def __init__(self) -> None:
        self.seen: list[AdminRequest] = []
        self.is_strict = False

    def validate_admin(self, request: AdminRequest, cluster: ClusterState) -> None:
        assert cluster.cluster_size
        self.seen.append(request)
        if self.is_strict:
            raise PolicyViolation(TEXT)


def stored(cluster: Ruling) -> dict[str, bytes | None]:
    return {path: node.data for path, node in cluster.store.tree.nodes.items()}


def decided_by(name: str, folder: Path) -> list[Decision]:
    """Return the last two decisions of an operation."""
    return [each for each in decisions_in(folder) if each.operation == name][-2:]


def test_the_operations_of_the_audit_log_are_those_of_the_rules() -> None:
    changing = {KAFKA[key].name: spec.changes.operation for key, spec in SPECS.items() if spec.changes is not None}
    assert changing == {**changing, **OPERATION_OF_API}
    assert set(OPERATION_OF_API.values()) == set(ALL)


@pytest.mark.parametrize("operation", ALL)
async def test_each_api_is_judged_before_it_writes(operation: str, tmp_path: Path) -> None:
    """A refused element is answered POLICY_VIOLATION, with the policy's text where the API has one;
    the same request is carried out once the policy allows it. Both verdicts are in the audit log,
    from which the policy can be asked the same again.
    """
    policy = Refusing()
    kind, name, ask = ALL[operation]
    async with ruling({**SETTINGS, "audit.dir": str(tmp_path)}, policy=policy) as cluster:
        admin = Administrator(cluster)
        await admin.prepare()
        policy.seen.clear()
        policy.is_strict = True
        before = stored(cluster)
        [(code, text)] = await ask(admin)
        assert code == ErrorCode.POLICY_VIOLATION
        assert text in (TEXT, NO_TEXT)
        assert stored(cluster) == before
        policy.is_strict = False
        [(code, text)] = await ask(admin)
        assert (code, text or "") == (0, "")
        assert stored(cluster) != before
    refused, allowed = decided_by(operation, tmp_path)
    assert [(each.kind, each.principal, each.client_host) for each in policy.seen] == [
        (kind, "User:alice", "10.0.0.9")
    ] * 2
    assert not name or {each.name for each in policy.seen} == {name}
    assert (refused.error, refused.effect, refused.message) == ("POLICY_VIOLATION", Effect.NONE, TEXT)
    assert (allowed.error, allowed.effect) == ("NONE", Effect.APPLIED)
    assert [each.policy and each.policy.decision for each in (refused, allowed)] == ["violated", "allowed"]
    assert [judged_request(each) for each in (refused, allowed)] == policy.seen
    assert found(tmp_path) == []
