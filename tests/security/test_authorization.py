"""What a request's context answers to a handler that asks what the client may do, by the ACLs or by
an authorizer of a user's.
"""

from collections.abc import Sequence

import msgspec
import pytest

from minicontroller.admin.permissions import CLUSTER_ACTION, Permission
from minicontroller.cluster.errors import Refusal
from minicontroller.network.serving.context import RequestContext, Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.policies.authorizer import Action, Authorizer, Requester, UndecidedError
from minicontroller.protocol.acls import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization, UserAuthorizer, java_address
from minicontroller.security.caller import Caller, Listener
from tests.support.specs import APIS

DELETE, READ, DESCRIBE = (
    Permission(operation, AclResourceType.TOPIC, "an error")
    for operation in (AclOperation.DELETE, AclOperation.READ, AclOperation.DESCRIBE)
)
ALTER = Permission(AclOperation.ALTER, AclResourceType.CLUSTER, "an error")
SPEC = msgspec.structs.replace(APIS[ApiKey.METADATA], permissions=(DELETE, READ, DESCRIBE, ALTER, CLUSTER_ACTION))


class OwnTopics(Authorizer):
    """Everybody may do everything to what carries their name, from one address."""

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> Sequence[bool]:
        return [
            (requester.principal, requester.client_host) == (f"User:{each.resource_name}", "10.0.0.9")
            for each in actions
        ]


def context(authorization: Authorization | None, principal: str | None, *, forwarded: bool = False) -> RequestContext:
    caller = Caller(Listener(name="PLAINTEXT"), "10.0.0.1", 50_000)
    caller.from_peer = forwarded
    return RequestContext(
        spec=SPEC,
        header=RequestHeader(SPEC.key, 9, 1, "tests"),
        origin=RequestOrigin(principal, "10.0.0.9", 9),
        forwarded=forwarded,
        caller=caller,
        dispatcher=Dispatcher(Routes(()), authorization=authorization),
    )


def own_topics(denied: list[tuple[str, str]] | None = None) -> Authorization:
    told = [] if denied is None else denied
    return Authorization(
        UserAuthorizer(OwnTopics(), AclIndex(), not_at_fault),
        frozenset({"User:admin"}),
        lambda requester, action: told.append((requester.principal, action.resource_name)),
    )


def not_at_fault(_requester: Requester, error: Exception) -> None:
    raise AssertionError from error


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    """A node without an authorizer refuses nothing, as in Kafka."""
    assert context(None, None).may(DELETE, "alice")


def test_the_client_is_asked_about_and_not_the_node_that_forwards() -> None:
    """A forwarded request is decided under the principal and the address of its client."""
    for forwarded in (False, True):
        alice = context(own_topics(), "User:alice", forwarded=forwarded)
        assert alice.may(DELETE, "alice")
        assert not alice.may(DELETE, "bob")
        assert not alice.may(CLUSTER_ACTION)


def test_a_client_that_has_not_authenticated_is_anonymous() -> None:
    """The principal None is Kafka's `User:ANONYMOUS`."""
    assert context(own_topics(), None).may(READ, "ANONYMOUS")


def test_a_node_of_the_cluster_has_cluster_action_and_nothing_else() -> None:
    """A node's own requests need ClusterAction; it may not do more because it is a node."""
    node = context(own_topics(), None)
    node.caller.from_peer = True
    assert node.may(CLUSTER_ACTION)
    assert not node.may(ALTER)


def test_super_users_may_do_everything_and_denials_of_named_resources_are_told() -> None:
    """A super user is not asked about. A denial is told of unless the client named no resource."""
    denied: list[tuple[str, str]] = []
    admin, bob = context(own_topics(denied), "User:admin"), context(own_topics(denied), "User:bob")
    assert admin.may_each(READ, ["a", "b"]) == [True, True]
    assert bob.may_each(READ, ["a", "bob"], logs_denials=False) == [False, True]
    assert denied == []
    assert bob.may_each(READ, ["a", "bob"]) == [False, True]
    assert denied == [("User:bob", "a")]


def acl_for(principal: str, operation: AclOperation, host: str = WILDCARD) -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, PermissionType.ALLOW)


def test_acls_decide_and_an_ipv6_host_is_written_as_in_java() -> None:
    """A prefixed ACL allows READ, which implies DESCRIBE; the host is compared with Java's text."""
    acls = AclIndex()
    pattern = ResourcePattern(AclResourceType.TOPIC, "team-", PatternType.PREFIXED)
    acls.set_resource(pattern, [acl_for("User:bob", AclOperation.READ, "0:0:0:0:0:0:0:1")])
    bob = context(Authorization(AclRules(acls)), "User:bob")
    assert not bob.may(READ, "team-a")
    bob.origin.client_host = "::1"
    assert bob.may(READ, "team-a")
    assert bob.authorized_operations(AclResourceType.TOPIC, "team-a") == 1 << AclOperation.READ | 1 << 8
    acls.set_resource(pattern, ())
    assert not bob.may(READ, "team-a")


def test_addresses_are_written_as_java_writes_them() -> None:
    """IPv4 stays, also where it is mapped into IPv6; IPv6 is not shortened."""
    written = {"10.0.0.9": "10.0.0.9", "::ffff:10.0.0.9": "10.0.0.9", "fe80::a1%2": "fe80:0:0:0:0:0:0:a1%2", "": ""}
    assert {host: java_address(host) for host in written} == written


class Odd(Authorizer):
    """Answers what the test says."""

    follows_acls = False

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def authorize(self, _requester: Requester, _actions: Sequence[Action]) -> Sequence[bool | None]:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Sequence[bool | None] = self.answer  # type: ignore[assignment]  # it is what a broken one returns
        return answer


@pytest.mark.parametrize("answer", [None, [], [True, True], ["yes"], [1], [None], ValueError("no")])
def test_a_broken_authorizer_denies_and_is_told_of(answer: object) -> None:
    """Whatever is no decision denies."""
    faults: list[Exception] = []
    authorization = Authorization(UserAuthorizer(Odd(answer), AclIndex(), lambda _who, fault: faults.append(fault)))
    assert not context(authorization, "User:bob").may(READ, "t")
    assert context(authorization, "User:bob").authorized_operations(AclResourceType.TOPIC, "t") == 0
    assert len(faults) == 2


def test_an_authorizer_refuses_a_request_with_its_own_errors() -> None:
    """Its exceptions stand for Kafka's codes (K4-L4a)."""
    authorization = Authorization(UserAuthorizer(Odd(UndecidedError("later")), AclIndex(), not_at_fault))
    with pytest.raises(Refusal) as refused:
        context(authorization, "User:bob").may(READ, "t")
    assert (refused.value.code, refused.value.message) == (ErrorCode.REQUEST_TIMED_OUT, "later")


def test_an_authorizer_leaves_decisions_to_the_acls() -> None:
    """None is what the ACLs say, for an authorizer that says that it follows them."""
    acls = AclIndex()
    acls.set_resource(ResourcePattern(AclResourceType.TOPIC, "t"), [acl_for("User:bob", AclOperation.READ)])
    authorizer = Odd([None])
    authorizer.follows_acls = True  # type: ignore[misc]  # a class of its own would say so
    bob = context(Authorization(UserAuthorizer(authorizer, acls, not_at_fault)), "User:bob")
    assert bob.may(DESCRIBE, "t")
    assert not bob.may(DELETE, "t")
