"""What a request's context answers to a handler that asks what the client may do."""

from collections.abc import Sequence

from minicontroller.controller.handlers import SPECS
from minicontroller.controller.requests.context import RequestContext, Routes
from minicontroller.controller.routing.dispatcher import Dispatcher
from minicontroller.controller.security.authorizer import Authorization
from minicontroller.controller.security.caller import Caller, Listener
from minicontroller.policies.authorizer import Action, Authorizer, Requester
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestOrigin


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
        spec=SPECS[ApiKey.METADATA],
        api_version=9,
        correlation_id=1,
        client_id="tests",
        origin=RequestOrigin(principal, "10.0.0.9", 9),
        listener="PLAINTEXT",
        forwarded=forwarded,
        from_peer=caller.from_peer,
        caller=caller,
        dispatcher=Dispatcher(None, Routes(()), authorization=authorization),
    )


def own_topics(denied: list[tuple[str, str]] | None = None) -> Authorization:
    told = [] if denied is None else denied
    return Authorization(
        OwnTopics(),
        frozenset({"User:admin"}),
        lambda requester, action: told.append((requester.principal, action.resource_name)),
    )


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    """A node without an authorizer refuses nothing, as in Kafka."""
    assert context(None, None).may(AclOperation.DELETE, AclResourceType.TOPIC, "alice")


def test_the_client_is_asked_about_and_not_the_node_that_forwards() -> None:
    """A forwarded request is decided under the principal and the address of its client."""
    for forwarded in (False, True):
        alice = context(own_topics(), "User:alice", forwarded=forwarded)
        assert alice.may(AclOperation.DELETE, AclResourceType.TOPIC, "alice")
        assert not alice.may(AclOperation.DELETE, AclResourceType.TOPIC, "bob")
        assert not alice.may(AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)


def test_a_client_that_has_not_authenticated_is_anonymous() -> None:
    """The principal None is Kafka's `User:ANONYMOUS`."""
    assert context(own_topics(), None).may(AclOperation.READ, AclResourceType.TOPIC, "ANONYMOUS")


def test_a_node_of_the_cluster_has_cluster_action_and_nothing_else() -> None:
    """A node's own requests need ClusterAction; it may not do more because it is a node."""
    node = context(own_topics(), None)
    node.from_peer = True
    assert node.may(AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
    assert not node.may(AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME)


def test_super_users_may_do_everything_and_denials_of_named_resources_are_told() -> None:
    """A super user is not asked about. A denial is told of unless the client named no resource."""
    denied: list[tuple[str, str]] = []
    admin, bob = context(own_topics(denied), "User:admin"), context(own_topics(denied), "User:bob")
    assert admin.may_each(AclOperation.READ, AclResourceType.TOPIC, ["a", "b"]) == [True, True]
    assert bob.may_each(AclOperation.READ, AclResourceType.TOPIC, ["a", "bob"], logs_denials=False) == [False, True]
    assert denied == []
    assert bob.may_each(AclOperation.READ, AclResourceType.TOPIC, ["a", "bob"]) == [False, True]
    assert denied == [("User:bob", "a")]
