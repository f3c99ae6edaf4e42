"""A node's authorization: who decides what callers may do, and what holds with every authorizer.

Rule: whatever cannot be decided is denied.
"""

import ipaddress
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from ..cluster.errors import Refusal
from ..policies.authorizer import Action, Authorizer, AuthorizerError, Requester
from ..protocol.acls import AclOperation, AclResourceType
from .acls import EVERYTHING, AclIndex

OnDenied = Callable[[Requester, Action], None]
"""Called with each denial of something that the client named."""
OnFault = Callable[[Requester, Exception], None]
"""Called with each exception of a broken authorizer."""


class Decider(Protocol):
    """Decides what may be done; super users are not asked about."""

    follows_acls: bool
    """Whether the cluster's ACLs have a say, so that requests about ACLs make sense."""

    @property
    def generation(self) -> int | None:
        """A number that changes with any decision, so that answers can be kept; None if decisions
        may change at any time.
        """

    def allows(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType, names: Sequence[str]
    ) -> Sequence[bool]: ...

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        """Return the operations that the requester may do, bit n for the operation number n."""


class AclRules:
    """Decides by the cluster's ACLs, as Kafka's AclAuthorizer does."""

    follows_acls = True

    def __init__(self, acls: AclIndex) -> None:
        self._acls = acls

    @property
    def generation(self) -> int | None:
        return self._acls.generation

    def allows(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType, names: Sequence[str]
    ) -> Sequence[bool]:
        wanted, host = 1 << operation, java_address(requester.client_host)
        if len(names) == 1:
            return [self._acls.allowed_to_one(requester.principal, host, resource_type, names[0]) & wanted != 0]
        return [bits & wanted != 0 for bits in self._acls.allowed_to(requester.principal, host, resource_type, names)]

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        host = java_address(requester.client_host)
        return self._acls.allowed_to_one(requester.principal, host, resource_type, name)


class UserAuthorizer:
    """Decides by an authorizer that the node's configuration names."""

    def __init__(self, authorizer: Authorizer, acls: AclIndex, on_fault: OnFault) -> None:
        self.follows_acls = authorizer.follows_acls
        self._authorizer = authorizer
        self._rules = AclRules(acls)
        self._on_fault = on_fault

    @property
    def generation(self) -> int | None:
        return None

    def allows(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType, names: Sequence[str]
    ) -> Sequence[bool]:
        actions = [Action(operation, resource_type, name) for name in names]
        return [
            self._rules.allows(requester, operation, resource_type, (action.resource_name,))[0]
            if decision is None
            else decision
            for action, decision in zip(actions, self._decisions(requester, actions), strict=True)
        ]

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        wanted = [each for each in AclOperation if each > AclOperation.ANY]
        actions = [Action(each, resource_type, name) for each in wanted]
        own = self._rules.operations(requester, resource_type, name)
        decisions = self._decisions(requester, actions)
        return sum(
            1 << each
            for each, decision in zip(wanted, decisions, strict=True)
            if decision or (decision is None and own & 1 << each)
        )

    def _decisions(self, requester: Requester, actions: Sequence[Action]) -> Sequence[bool | None]:
        """Ask the authorizer. Raises Refusal if it cannot decide; a fault of it denies."""
        try:
            answer: list[object] = list(self._authorizer.authorize(requester, actions))
            if len(answer) != len(actions):
                raise TypeError(f"{len(answer)} decisions were returned about {len(actions)} actions")
            return [self._decision(each) for each in answer]
        except AuthorizerError as error:
            raise Refusal(error.code, str(error) or None, reason="The authorizer refused the request.") from error
        except Exception as error:  # noqa: BLE001 - a foreign program may raise anything
            self._on_fault(requester, error)
            return [False] * len(actions)

    def _decision(self, answer: object) -> bool | None:
        if isinstance(answer, bool) or (answer is None and self.follows_acls):
            return answer
        raise TypeError(f"{answer!r} was returned, which is no decision")


class Authorization:
    """Answers the questions of a node's handlers. Super users may do everything."""

    def __init__(
        self,
        decider: Decider,
        super_users: frozenset[str] = frozenset(),
        on_denied: OnDenied = lambda *_denied: None,
    ) -> None:
        self.follows_acls = decider.follows_acls
        self._decider = decider
        self._super_users = super_users
        self._on_denied = on_denied

    @property
    def generation(self) -> int | None:
        """A number that changes with any decision, so that answers can be kept; None if decisions
        may change at any time.
        """
        return self._decider.generation

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Sequence[str],
        *,
        logs_denials: bool = True,
    ) -> Sequence[bool]:
        """Return, for each resource in order, whether the requester may do this. `logs_denials` is
        False for resources that the client did not name, such as all topics of a listing. Raises
        Refusal if the authorizer refuses the whole request.
        """
        if requester.principal in self._super_users:
            return [True] * len(names)
        decisions = self._decider.allows(requester, operation, resource_type, names)
        if logs_denials and False in decisions:
            for name, allowed in zip(names, decisions, strict=True):
                if not allowed:
                    self._on_denied(requester, Action(operation, resource_type, name))
        return decisions

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        """Return the operations that the requester may do to a resource (KIP-430): bit n for the
        operation with the number n.
        """
        if requester.principal in self._super_users:
            return EVERYTHING
        return self._decider.operations(requester, resource_type, name)


@lru_cache(maxsize=10_000)
def java_address(host: str) -> str:
    """Return an address as Java writes it, which is how ACLs name hosts: `::1` is
    `0:0:0:0:0:0:0:1` there.
    """
    if ":" not in host:
        return host
    number, percent, scope = host.partition("%")
    try:
        address = ipaddress.IPv6Address(number)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
    return f"{groups}{percent}{scope}"
