"""The dispatcher takes a request from its frame to its answer.

Errors become answers only here:

- `ProtocolError`, for bytes that cannot be read, ends the connection, with one line in the log.
- `Refusal` becomes a response that refuses the request, with a row for each thing that it names.
- Any other exception is a defect of this program. It becomes such a response with
  UNKNOWN_SERVER_ERROR, and the log gets the request and a traceback.

`Dispatcher.answer` is synchronous, so a response that the handler returns at once costs no task,
and neither do a few steps towards one (`process/steps.py`). For more steps, or an awaitable,
`answer` returns an awaitable. The rest of the steps are taken in time slices, and so is the
encoding of a long response.
"""

import logging
from collections.abc import Awaitable, Iterable
from functools import partial
from types import GeneratorType
from typing import Any

import msgspec
import trio

from ...admin.bounds import ENVELOPE_BYTES, MAX_ANSWER_BYTES, SMALL_BYTES, check_changes
from ...admin.error_answers import error_answer, first_error, first_error_of_row
from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender, Spec
from ...cluster.errors import EarlyRefusal, NotANode, Refusal, TooManyChanges
from ...process.observe.logs import ClientWarnings, about, cut
from ...process.time_slices import at_once
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.errors import MalformedMessage, ProtocolError
from ...protocol.header import REQUEST_START, RequestHeader, RequestOrigin, client_id_of
from ...protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ...security.authorizer import Authorization
from ...security.caller import MAX_SOFTWARE_CHARACTERS, Caller
from ...security.principal import principal_from_text
from .api import response_of
from .context import RequestContext, Route, Routes
from .long_answers import with_encoded_rows
from .observers import RequestObserver, overridden
from .request_log import RequestLog
from .request_metrics import RequestMetrics

log = logging.getLogger("minicontroller.answer")

MAX_REMEMBERED_SOFTWARE = 1_000
"""The most names of client software that are remembered after their leftover bytes were logged,
because clients choose these names.
"""

AT_ONCE_BYTES = 10_000
"""A larger request takes no steps at once, because few steps may be long: names are hashed."""

UNEXPECTED = "An unexpected error: the node's log says more."
_ANYONE, _NODE = Sender.ANYONE, Sender.NODE  # bound once: each request compares with them
_NAMES = {int(key): key.name for key in ApiKey}


class Counters(msgspec.Struct):
    """Counters of requests since the start of the node."""

    forged_forwarding: int = 0
    """Requests refused because they carried the tags of a forwarded request, but came from a
    connection that is not a node's (K590-6).
    """
    forged_node_requests: int = 0
    """Requests refused because only nodes may send them, and their sender was not authenticated as
    a node.
    """
    leftover_requests: int = 0
    """Requests with bytes after their end, accepted as Kafka accepts them."""
    unexpected_errors: int = 0
    """Requests answered with UNKNOWN_SERVER_ERROR."""


class Dispatcher:
    """Answers the requests of all connections of a node."""

    def __init__(
        self,
        routes: Routes,
        observers: Iterable[RequestObserver] = (),
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        authorization: Authorization | None = None,
    ) -> None:
        self.authorization = authorization
        self._max_answer_bytes = max_answer_bytes
        self.counters = Counters()
        self.warnings = ClientWarnings()
        self.routes = routes
        self._decode_request = routes.registry.decode_request
        self._encode_response = routes.registry.encode_response
        self.metrics = RequestMetrics()
        everybody = (self.metrics, RequestLog(), *observers)
        self._before = overridden(everybody, RequestObserver.before)
        self._refused = overridden(everybody, RequestObserver.refused)
        self._failed = overridden(everybody, RequestObserver.failed)
        self._refused_early = overridden(everybody, RequestObserver.refused_early)
        self._after = overridden(everybody, RequestObserver.after)
        self._answered = overridden(everybody, RequestObserver.answered)
        self._waits_for_observers = bool(self._before or self._after)
        self._software_with_leftovers: set[str] = set()

    def answer(self, caller: Caller, frame: bytes) -> bytes | Awaitable[bytes]:
        """Return the answer with its size in front, or an awaitable of it. Raises ProtocolError if
        the connection has to end without an answer.
        """
        if len(frame) < REQUEST_START.size:
            raise MalformedMessage(f"a request of {len(frame)} bytes has no header")
        api_key, version, correlation_id = REQUEST_START.unpack_from(frame)
        route = self.routes.get(api_key)
        now = trio.current_time()
        if route is None or not route.api.min_version <= version <= route.api.max_version:
            if route is not None and api_key == ApiKey.API_VERSIONS:
                _admit(caller, route, now)
                self.metrics.refused_version()
                return self._encode_response(api_key, 0, correlation_id, _older_api_versions(route))
            raise _not_served(api_key, version, frame)
        _admit(caller, route, now)

        try:
            header, request, leftover = self._decode_request(frame, caller.from_peer)
            if route.spec.check_readable is not None:
                route.spec.check_readable(request)
            if route.spec.read_tags is not None:
                route.spec.read_tags(request)
        except ProtocolError as error:
            raise MalformedMessage(
                f"client {client_id_of(frame)!r}, {_name(api_key)} version {version}: {error}"
            ) from error
        ctx = self._context(caller, route.spec, header, now)
        if leftover:
            self._accept_leftover(caller, ctx, leftover)
        if self._waits_for_observers:
            return self._answer_later(ctx, request, self.respond(ctx, route, request, header.origin))
        try:
            self._authorize(ctx, header.origin)
            if len(frame) > SMALL_BYTES and route.spec.at_controller:
                check_changes(request)
            response = route.handler(ctx, request)
            if isinstance(response, GeneratorType) and len(frame) <= AT_ONCE_BYTES:
                response = at_once(response)
        except TooManyChanges as refusal:
            response = self._refuse_large_request(ctx, request, refusal)
        except EarlyRefusal as refusal:
            response = self._refuse_early(ctx, request, refusal)
        except Exception as error:  # noqa: BLE001 - every exception of a handler becomes an answer here
            response = self.error_response(ctx, request, error)
        if isinstance(response, msgspec.Struct):
            return self.encode(ctx, request, response)
        return self._answer_later(ctx, request, response)

    def _context(self, caller: Caller, spec: Spec, header: RequestHeader, now: float) -> RequestContext:
        """Return the context of a request. The origin in its header is accepted from nodes of the
        cluster only.
        """
        forwarded = header.origin is not None and caller.from_peer
        return RequestContext(
            spec=spec,
            header=header,
            origin=_forwarded_origin(caller, header)
            if forwarded
            else RequestOrigin(
                caller.principal,
                caller.host,
                header.api_version,
                header.correlation_id,
                caller.software,
                by_token=caller.by_token,
            ),
            caller=caller,
            dispatcher=self,
            forwarded=forwarded,
            arrived=now,
        )

    async def respond(
        self, ctx: RequestContext, route: Route, request: Any, origin: RequestOrigin | None = None
    ) -> Any:
        """Return the response, not yet encoded, to a request that came inside another one, or for
        which an observer may wait. `origin` is that in its own header.
        """
        try:
            for before in self._before:
                if (response := await before(ctx, request)) is not None:
                    break
            else:
                self._authorize(ctx, origin)
                if route.spec.at_controller:
                    check_changes(request)
                response = await response_of(route.handler(ctx, request))
        except EarlyRefusal as refusal:
            response = await self._refuse_early(ctx, request, refusal)
        except Exception as error:  # noqa: BLE001 - every exception of a handler becomes an answer here
            response = self.error_response(ctx, request, error)
        for after in self._after:
            response = await after(ctx, request, response)
        return response

    async def _refuse_early(self, ctx: RequestContext, request: Any, refusal: EarlyRefusal) -> Any:
        """Return the answer to a request that no handler saw, once all observers know of it."""
        answer = self.error_response(ctx, request, refusal)
        for refused_early in self._refused_early:
            await refused_early(ctx, request, refusal)
        return answer

    async def _refuse_large_request(self, ctx: RequestContext, request: Any, refusal: EarlyRefusal) -> Any:
        """Return the answer to a request that is too large. Decoding it took long, so other tasks
        run first.
        """
        await trio.lowlevel.checkpoint()
        return await self._refuse_early(ctx, request, refusal)

    async def _answer_later(self, ctx: RequestContext, request: Any, pending: Any) -> bytes:
        response = await self._wait(ctx, request, pending)
        throttle_ms = max(getattr(response, "throttle_time_ms", 0), ctx.notes.throttle_ms)
        if ctx.notes.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        if throttle_ms > 0 and not ctx.forwarded:
            ctx.caller.throttled_until = trio.current_time() + throttle_ms / 1000
            ctx.notes.throttle_ms = throttle_ms
        rows = with_encoded_rows(response, ctx.header.api_version, partial(_note_error, ctx))
        return self.encode(ctx, request, await self._wait(ctx, request, rows))

    async def _wait(self, ctx: RequestContext, request: Any, pending: Any) -> Any:
        try:
            return await response_of(pending)
        except Exception as error:  # noqa: BLE001 - every exception of a handler becomes an answer here
            return self.error_response(ctx, request, error)

    def encode(self, ctx: RequestContext, request: Any, response: Any) -> bytes:
        key, header, notes = ctx.spec.key, ctx.header, ctx.notes
        version, correlation_id = header.api_version, header.correlation_id
        try:
            answer = self._encode_response(key, version, correlation_id, response, notes.update_number)
        except Exception as error:  # noqa: BLE001 - a response that this version cannot encode is a defect
            response = self.error_response(ctx, request, error)
            answer = self._encode_response(key, version, correlation_id, response)
        if len(answer) > self._max_answer_bytes and len(answer) > self._allowed(key):
            response = self.error_response(ctx, request, _too_large(ctx, answer, self._max_answer_bytes))
            answer = self._encode_response(key, version, correlation_id, response)
        notes.first_error = notes.first_error or first_error(ctx.spec, response)
        now = trio.current_time()
        for answered in self._answered:
            answered(ctx, request, response, now)
        return _silence(ctx) if notes.is_silent else answer

    def _allowed(self, api_key: int) -> int:
        return self._max_answer_bytes + (ENVELOPE_BYTES if api_key == ApiKey.ENVELOPE else 0)

    def error_response(self, ctx: RequestContext, request: Any, error: Exception) -> Any:
        """Return the response for an exception that was raised while a request was answered."""
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # the nursery of a handler wraps the exception of its task
        ctx.notes.first_error = 0
        if isinstance(error, Refusal):
            refusal = error
        else:
            self.counters.unexpected_errors += 1
            for failed in self._failed:
                failed(ctx, request, error)
            refusal = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, reason=UNEXPECTED)
        for refused in self._refused:
            refused(ctx, request, refusal)
        return error_answer(ctx.spec, request, ctx.header.api_version, code=refusal.code, message=refusal.message)

    def _accept_leftover(self, caller: Caller, ctx: RequestContext, leftover: int) -> None:
        """Log bytes after the end of a client's request, which Kafka accepts. Raises ProtocolError
        if a node sent them, because that is a defect of this program.
        """
        if caller.from_peer:
            raise ProtocolError(f"a node sent {leftover} bytes after the end of a request")
        self.counters.leftover_requests += 1
        software = caller.software or f"client {(ctx.client_id or '')[:MAX_SOFTWARE_CHARACTERS]!r}"
        known = self._software_with_leftovers
        if software not in known and len(known) < MAX_REMEMBERED_SOFTWARE:
            known.add(software)
            log.info(
                "%s sends %d bytes after the end of requests of API %d; they are ignored, as in Kafka",
                software,
                leftover,
                ctx.api_key,
                extra=about(ctx),
            )

    def _authorize(self, ctx: RequestContext, origin: RequestOrigin | None) -> None:
        """Refuse requests between nodes from whoever is neither a node nor, at the inter-broker
        listener, authorized to act as one, and requests with the origin of a forwarded one from
        whoever is no node. Raises EarlyRefusal.
        """
        if origin is not None and not ctx.forwarded:
            self._refuse_forged(ctx, origin)
        if ctx.spec.sender is not _NODE or ctx.caller.from_peer or self._may_act_as_node(ctx):
            return
        self.counters.forged_node_requests += 1
        self._suspect(ctx, f"sends {_name(ctx.api_key)}")
        raise NotANode(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")

    def _may_act_as_node(self, ctx: RequestContext) -> bool:
        """Whether the caller is one of Kafka's brokers by its ACLs. These do not log in by tokens,
        which others may be able to create for them.
        """
        if self.authorization is None or ctx.caller.by_token:
            return False
        return ctx.caller.listener.inter_broker and ctx.may(CLUSTER_ACTION)

    def _refuse_forged(self, ctx: RequestContext, claimed: RequestOrigin) -> None:
        self.counters.forged_forwarding += 1
        self._suspect(ctx, f"forwards a request in the name of {cut(claimed.principal)!r}")
        raise EarlyRefusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Only nodes of the cluster may forward requests.")

    def _suspect(self, ctx: RequestContext, what: str) -> None:
        """Log that a client sends what only nodes may send. Each connection is logged once, and
        many connections seldom, so that clients cannot fill the log.
        """
        if not ctx.caller.is_suspect:
            ctx.caller.is_suspect = True
            self.warnings.say(
                log, "refused: %s %s but is not a node of this cluster", ctx.caller, what, extra=about(ctx)
            )


def _silence(ctx: RequestContext) -> bytes:
    """Return no bytes for a client that wants no response. Raises ProtocolError if the request had
    an error.
    """
    code = ctx.notes.first_error
    if code:
        raise ProtocolError(f"{_name(ctx.api_key)} without acknowledgement failed with error {code}")
    return b""


def _too_large(ctx: RequestContext, answer: bytes, allowed: int) -> Refusal:
    """Return the refusal of an answer that is too large. If the request was a change, it has been
    carried out, so the error is REQUEST_TIMED_OUT.
    """
    code = ErrorCode.REQUEST_TIMED_OUT if ctx.spec.at_controller else ErrorCode.INVALID_REQUEST
    return Refusal(code, f"The answer would have {len(answer)} bytes, {allowed} are allowed: ask for less at a time.")


def _note_error(ctx: RequestContext, field: str, row: Any) -> None:
    ctx.note(first_error_of_row(ctx.spec, field, row))


def _not_served(api_key: int, version: int, frame: bytes) -> ProtocolError:
    return ProtocolError(
        f"client {client_id_of(frame)!r} asks for {_name(api_key)} version {version}, which is not served"
    )


def _name(api_key: int) -> str:
    name = _NAMES.get(api_key)
    return f"API {api_key}" if name is None else f"API {api_key} ({name})"


def _admit(caller: Caller, route: Route, now: float) -> None:
    """Check that the caller has authenticated as the API demands. Raises ProtocolError, which ends
    the connection as in Kafka.
    """
    api, spec = route.api, route.spec
    if now >= caller.expires and api.key != ApiKey.SASL_HANDSHAKE and not caller.is_amid_authentication:
        raise ProtocolError(f"{api.name} was sent after the session had expired, without a new authentication")
    if spec.sender is _ANYONE:
        if api.key == ApiKey.SASL_AUTHENTICATE and caller.has_to_choose_a_mechanism:
            raise ProtocolError(f"{api.name} was sent before SaslHandshake")
        return
    if not caller.authenticated:
        raise ProtocolError(f"{api.name} was sent before authentication")
    if caller.is_amid_authentication:
        raise ProtocolError(f"{api.name} was sent before a new authentication was over")
    if caller.has_valid_token is not None and not caller.has_valid_token():
        raise ProtocolError(f"{api.name} was sent after the client's delegation token was removed or had expired")
    if spec.between_nodes and not caller.listener.inter_broker:
        raise ProtocolError(f"{api.name} was sent to a listener that is not for nodes")


def _older_api_versions(route: Route) -> ApiVersionsResponse:
    """Return the response, in version 0, to an ApiVersions request of a version that is too new. It
    lists only the versions of ApiVersions (KIP-511).
    """
    api = route.api
    ours = ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ours])


def _forwarded_origin(caller: Caller, header: RequestHeader) -> RequestOrigin:
    """Return the client of a request that a node forwards, from the request's header (K590-5).
    Raises ProtocolError.
    """
    origin = header.origin
    assert origin is not None
    try:
        if origin.principal is not None:
            principal_from_text(origin.principal)
    except ValueError as error:
        raise ProtocolError(f"a node forwards a request with an invalid principal: {error}") from error
    caller.forwards = True
    return msgspec.structs.replace(
        origin,
        client_host=origin.client_host or caller.host,
        api_version=header.api_version if origin.api_version < 0 else origin.api_version,
        software=origin.software[:MAX_SOFTWARE_CHARACTERS],
    )
