"""The context of one request: who sent it, from where, in which version, and how its listener
answers.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from ...admin.permissions import Permission
from ...admin.spec import Changes, Spec
from ...cluster.errors import Refusal
from ...policies.authorizer import Requester
from ...policies.interface import ANONYMOUS
from ...process.observe.logs import ClientWarnings
from ...process.steps import Steps
from ...process.time_slices import carried_out
from ...protocol.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.header import RequestHeader, RequestOrigin
from ...protocol.registry import KAFKA, Api, Registry
from ...security.authorizer import Authorization
from ...security.caller import Caller
from .api import Handler

NO_NAMES: frozenset[str] = frozenset()
NAMES_AT_ONCE = 100
"""For so many names permissions are asked without letting other tasks run."""


class Route(msgspec.Struct, frozen=True):
    """The way in which a listener answers one API."""

    api: Api
    spec: Spec
    handler: Handler
    """Answers the request on this node, or forwards it to the active controller."""
    ask_controller: Handler | None = None
    """Runs the handler at the active controller, without the API's `receiver`."""


class Routes:
    """The APIs that a listener answers and advertises, by key."""

    def __init__(self, routes: Iterable[Route], registry: Registry = KAFKA) -> None:
        self.registry = registry
        self._routes = {int(route.api.key): route for route in sorted(routes, key=lambda route: route.api.key)}
        self.get = self._routes.get
        """Returns the `Route` of an API key, or None. It is bound once, because every request calls
        it.
        """

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes.values())


class DispatcherView(Protocol):
    """The part of the dispatcher that handlers may use."""

    warnings: ClientWarnings
    authorization: Authorization | None
    """None where no authorizer is configured, so that everybody may do everything."""

    @property
    def routes(self) -> Routes: ...

    async def respond(self, ctx: "RequestContext", route: Route, request: Any) -> Any:
        """Return the response, not yet encoded, to a request that came inside another one."""

    def encode(self, ctx: "RequestContext", request: Any, response: Any) -> bytes:
        """Return the frame of a response, its size included."""


class AnswerNotes(msgspec.Struct, gc=False):
    """Notes of handlers about the answer to a request, beside the response itself."""

    update_number: int = -1
    """The metadata update that the forwarding node must have before it answers further reads, or -1
    if it need not wait. It goes into the response header.
    """
    throttle_ms: int = 0
    """For how long the client has to wait after the answer, beside what the response says."""
    first_error: int = 0
    """The first error code among rows that are encoded one by one."""
    is_silent: bool = False
    """Whether the client wants no response. An error then ends its connection, as in Kafka, so that
    it learns of it.
    """


class RequestContext(msgspec.Struct, kw_only=True, gc=False):
    """The sender, version and connection of one request, made when the request is decoded."""

    spec: Spec
    """The declaration of the API."""
    header: RequestHeader
    """The header as it came, with the version in which the answer will be encoded."""
    origin: RequestOrigin
    """The client that sent the request, and the node and API at which it arrived."""
    caller: Caller
    """The connection on which the request came."""
    dispatcher: DispatcherView
    """The dispatcher of the listener at which the request came in."""
    forwarded: bool = False
    """Whether an authenticated node forwarded it; if so, it is never forwarded again."""
    arrived: float = 0.0
    """The time of arrival in seconds, by trio's clock."""
    notes: AnswerNotes = msgspec.field(default_factory=AnswerNotes)

    @property
    def api_key(self) -> ApiKey:
        return self.spec.key

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def listener(self) -> str:
        """The name of the listener on which the caller reached this node."""
        return self.caller.listener.name

    @property
    def changes(self) -> Changes | None:
        """The declared changes of the API that the client used, or of this one. A topic that a read
        creates automatically counts as created.
        """
        route = self.dispatcher.routes.get(self.origin.api_key)
        return self.spec.changes if route is None else route.spec.changes or self.spec.changes

    @property
    def policy_api(self) -> str:
        """Kafka's name of the API that the client used, as policies see it."""
        # During an upgrade, a newer node may name an API that is not known here.
        registry = self.spec.registry
        return registry[self.origin.api_key if self.origin.api_key in registry else self.api_key].name

    @property
    def requester(self) -> Requester:
        """The client under whose principal and address the request is authorized, however it came
        here.
        """
        return Requester(
            principal=self.origin.principal or ANONYMOUS,
            client_host=self.origin.client_host,
            client_id=self.header.client_id,
            api_key=self.spec.key if self.origin.api_key < 0 else self.origin.api_key,
        )

    @property
    def viewer(self) -> Hashable:
        """Return a value on which depends what the client may see: whoever has an equal one may see
        the same. None if decisions may change at any time.
        """
        authorization = self.dispatcher.authorization
        if authorization is None:
            return ()
        generation = authorization.generation
        return None if generation is None else (generation, self.origin.principal, self.origin.client_host)

    @property
    def is_operator(self) -> bool:
        """Whether the client may do anything to the cluster, so that bounds which keep users from
        each other do not hold for it: a super user, or whoever may alter the cluster.
        """
        authorization = self.dispatcher.authorization
        kind = AclResourceType.CLUSTER
        return authorization is None or all(
            authorization.allows(self.requester, AclOperation.ALTER, kind, (CLUSTER_NAME,), logs_denials=False)
        )

    def may(self, permission: Permission, name: str = CLUSTER_NAME, *, logs_denial: bool = True) -> bool:
        """Return whether the client has a permission for the resource of this name. `logs_denial`
        is False if the client did not name the resource, or if another permission serves as well.
        """
        return self.may_each(permission, (name,), logs_denials=logs_denial)[0]

    def may_each(self, permission: Permission, names: Sequence[str], *, logs_denials: bool = True) -> Sequence[bool]:
        """Return, for each resource in order, whether the client has a permission for it."""
        assert permission in self.spec.permissions, f"{self.spec.key.name} does not declare {permission}"
        authorization = self.dispatcher.authorization
        if authorization is None:
            return [True] * len(names)
        operation, resource_type = permission.operation, permission.resource_type
        if operation is AclOperation.CLUSTER_ACTION and self.caller.from_peer and not self.forwarded:
            return [True] * len(names)  # a node of the cluster asks in its own name
        return authorization.allows(self.requester, operation, resource_type, names, logs_denials=logs_denials)

    def without(self, permission: Permission, names: Sequence[str], *, logs_denials: bool = True) -> frozenset[str]:
        """Return the names of those resources for which the client lacks a permission."""
        if self.dispatcher.authorization is None:
            return NO_NAMES
        allowed = self.may_each(permission, names, logs_denials=logs_denials)
        if False not in allowed:
            return NO_NAMES
        return frozenset(name for name, may in zip(names, allowed, strict=True) if not may)

    def denied(
        self, permission: Permission, names: Sequence[str], *, logs_denials: bool = True
    ) -> Steps[frozenset[str]]:
        """Return the names as `without` does, in steps of NAMES_AT_ONCE names."""
        found = NO_NAMES
        for start in range(0, len(names), NAMES_AT_ONCE):
            if start:
                yield
            found |= self.without(permission, names[start : start + NAMES_AT_ONCE], logs_denials=logs_denials)
        return found

    async def denied_in_advance(
        self, permission: Permission, names: Sequence[str], *, unless: Permission | None = None
    ) -> frozenset[str]:
        """Return what is denied of a long request, before it waits for the writer, so that it takes
        little of the writer's time: nothing if the client has the permission `unless` for the
        cluster. Whatever is allowed by now is asked about again when it is planned.
        """
        if len(names) > NAMES_AT_ONCE:
            with suppress(Refusal):  # of an authorizer, which each element gets when it is planned
                if unless is None or not self.may(unless, logs_denial=False):
                    return await carried_out(self.denied(permission, names))
        return NO_NAMES

    def note(self, error_code: int) -> None:
        """Note the error of a row that is encoded by itself, because an encoded row shows none."""
        if error_code and not self.notes.first_error:
            self.notes.first_error = error_code

    def check_cluster(self, permission: Permission) -> None:
        """Raise CLUSTER_AUTHORIZATION_FAILED if the client lacks a permission for the cluster."""
        if not self.may(permission):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def authorized_operations(self, resource_type: AclResourceType, name: str = CLUSTER_NAME) -> int:
        """Return what the client may do to a resource, as Kafka answers it (KIP-430): bit n for the
        operation with the number n.
        """
        authorization = self.dispatcher.authorization
        supported = SUPPORTED_OPERATIONS[resource_type]
        if authorization is None:
            return supported
        return authorization.operations(self.requester, resource_type, name) & supported
