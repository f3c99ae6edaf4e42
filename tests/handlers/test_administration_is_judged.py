"""A policy judges changes of ACLs, users, quotas, tokens, groups and leaders before anything is
written, and the audit log can be asked again.
"""

from itertools import pairwise
from pathlib import Path

import pytest
import trio

from minicontroller.admin.recording.requests import DENIALS
from minicontroller.audit.event import REDACTED, Decision, Effect
from minicontroller.audit.replay import judged_request
from minicontroller.controller.active import jobs
from minicontroller.policies import AdminRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.policies.rules.vocabulary import OPERATION_OF_API
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from minicontroller.protocol.registry import KAFKA
from tests.audit.logs import decisions_in, found
from tests.handlers.administering import ALL, NO_TEXT, SETTINGS, Administrator
from tests.handlers.client_quotas import MUTATION, entry
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.rules.reading import rules
from tests.support.specs import APIS

TEXT = "Ask the platform team."
VIOLATION = "POLICY_VIOLATION"
REPEATABLE = frozenset(
    {
        *("create_acls", "alter_client_quotas", "alter_user_scram_credentials", "create_delegation_token"),
        *("renew_delegation_token", "offset_commit"),
    }
)
"""The operations of which a second request is as good as the first."""


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
    """Return what is kept: the znodes, and the directories of the node's replicas."""
    moved = repr(cluster.node.data.logs._moved).encode()
    return {**{path: node.data for path, node in cluster.store.tree.nodes.items()}, "log.dirs": moved}


def decided_by(name: str, folder: Path, count: int = 2) -> list[Decision]:
    """Return the last decisions of an operation."""
    return [each for each in decisions_in(folder) if each.operation == name][-count:]


def test_the_operations_of_the_audit_log_are_those_of_the_rules() -> None:
    changing = {KAFKA[key].name: spec.changes.operation for key, spec in APIS.items() if spec.changes is not None}
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


@pytest.mark.parametrize("operation", ALL)
async def test_rules_judge_each_api(operation: str, tmp_path: Path) -> None:
    """Rules that do not name an operation are not asked about it; one that does refuses it, or
    notes what it has against it.
    """
    others = [each for each in ALL if each != operation]
    noting = f"[[protected_operations]]\noperations = '{operation}'\naction = 'audit'\n"
    async with ruling({**SETTINGS, "audit.dir": str(tmp_path)}, policy=TopicManagementPolicy()) as cluster:
        policy = cluster.node.policy
        assert policy is not None
        admin = Administrator(cluster)
        await admin.prepare()
        for text, wanted in (
            (f"[[protected_operations]]\noperations = {others}\n[[partitions]]\nmax = 1\n", 0),
            (f"[[protected_operations]]\noperations = '{operation}'\n", ErrorCode.POLICY_VIOLATION),
            (noting, 0),
        )[0 if operation in REPEATABLE else 1 :]:
            policy.use(rules(text))
            [(code, _)] = await ALL[operation][2](admin)
            assert code == wanted
        assert policy.metrics.verdicts[policy.name, "protected_operations", "violated"] == 1
    decisions = decided_by(operation, tmp_path, 3)
    if operation in REPEATABLE:
        assert decisions.pop(0).policy is None
    refused, noted = (each.policy for each in decisions[-2:])
    assert refused is not None and refused.rule == "protected_operations"
    assert str(refused.message).startswith("User:alice may not ")
    assert noted is not None
    assert [(each.rule, each.action) for each in noted.findings] == [("protected_operations", "audit")]
    assert found(tmp_path) == []


async def test_each_element_is_judged_on_its_own(tmp_path: Path) -> None:
    """What a rule refuses does not hold up the others, and a refused edit leaves those of the same
    resource as they are; a validated one is judged, too.
    """
    text = "[[protected_operations]]\noperations = 'admin'\nresources = ['*:bad', 'user=bob,*']\nexcept_hosts = '::1'"
    async with ruling({"audit.dir": str(tmp_path)}, policy=TopicManagementPolicy()) as cluster:
        assert cluster.node.policy is not None
        cluster.node.policy.use(rules(text))
        admin = Administrator(cluster)
        assert [code for code, _ in await admin.create_acls("a", "bad", "b", "bad")] == [0, 44, 0, 44]
        assert [code for code, _ in await admin.create_acls("a:", "bad")] == [0, 44]
        assert [pattern.name for pattern in sorted(cluster.image.acls)] == ["a", "a:", "b"]
        [(code, message)] = await admin.quotas(validate_only=True)
        assert (code, message) == (44, "User:alice may not change the quotas of user=bob,client-id=<default>.")
    decisions = decisions_in(tmp_path)
    assert [each.error for each in decisions] == ["NONE", VIOLATION, "NONE", "NONE", VIOLATION, VIOLATION]
    assert decisions[-1].validate_only
    assert found(tmp_path) == []


async def test_what_is_invalid_is_not_judged(tmp_path: Path) -> None:
    """An error that a request has anyway is answered before the policy is asked."""
    policy = Refusing()
    policy.is_strict = True
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        admin = Administrator(cluster)
        assert (await admin.create_acls(""))[0][0] == ErrorCode.INVALID_REQUEST
        assert await admin.renew_token() == [(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, NO_TEXT)]
        assert (await admin.elect())[0][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert policy.seen == []
    assert [judged_request(each) for each in decisions_in(tmp_path)] == [None] * 3


async def test_who_may_not_is_not_judged() -> None:
    """The policy is asked after the ACLs, so that it tells nothing to those who may do nothing."""
    policy = Refusing()
    policy.is_strict = True
    async with ruling(policy=policy) as cluster:
        await cluster.make(wanted("__consumer_offsets", placed={0: [1]}), wanted("t", placed={0: [2, 3]}))
        nobody = Administrator(cluster, may=False)
        asked = (nobody.create_acls, nobody.quotas, nobody.users, nobody.elect, nobody.commit, nobody.delete_group)
        for ask in (*asked, nobody.delete_offsets):
            assert {code for code, _ in await ask()} <= DENIALS, ask
    assert policy.seen == []


async def test_no_secret_reaches_a_policy() -> None:
    """A policy sees which mechanisms a user gets, and nothing of a password."""
    policy = Refusing()
    async with ruling(policy=policy) as cluster:
        assert await Administrator(cluster).users() == [(0, "")]
    [asked] = policy.seen
    assert dict(asked.config_operations) == {"SCRAM-SHA-256": REDACTED}
    assert dict(asked.config_operation_kinds or {}) == {"SCRAM-SHA-256": "set"}


async def test_a_slow_policy_lets_others_in_between_edits_of_one_entity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request with many edits of the same entity is carried out in parts while others wait; each
    edit is judged and recorded once, and the last one holds.
    """
    monkeypatch.setattr(jobs, "PART_SECONDS", 0)
    policy = Refusing()
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        rates = {name: [float(number) for number in range(1, 9)] for name in ("a", "b", "c")}

        async def alter_all(name: str) -> None:
            entries = [entry({"user": name}, {MUTATION: rate}) for rate in rates[name]]
            answer = await cluster.ask(AlterClientQuotasRequest(entries=entries), 1)
            assert [row.error_code for row in answer.entries] == [0]

        async with trio.open_nursery() as nursery:
            for name in rates:
                nursery.start_soon(alter_all, name)
        for name in rates:
            assert await cluster.configs(f"users/{name}") == {MUTATION: "8.0"}
    asked = [(each.name, each.config_operations[MUTATION]) for each in policy.seen]
    assert sorted(asked) == sorted((f"user={name}", repr(rate)) for name, each in rates.items() for rate in each)
    assert [judged_request(each) for each in decisions_in(tmp_path)] == policy.seen
    names = [each.name for each in policy.seen]
    assert sum(one != other for one, other in pairwise(names)) > len(rates)
    assert found(tmp_path) == []
