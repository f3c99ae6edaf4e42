"""Automatic creation of topics (`auto.create.topics.enable`), as if the client had sent
CreateTopics.

Rule: one creation at a time for a topic and a caller. Requests of the same caller that come
meanwhile share its outcome, so a service with a thousand connections costs one request. Callers are
the same if they agree in everything that the policy and the audit log see of them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import trio

from ...admin.automatic_creation import as_seen_by_the_client, creatable_topic
from ...admin.bounds import MAX_CHANGES
from ...cluster.errors import Refusal
from ...network.serving.api import response_of
from ...network.serving.context import AnswerNotes, RequestContext
from ...process.settings.node_config import NodeConfig
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.header import RequestHeader
from ...protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)

PATIENCE_SECONDS = 5.0
"""How long a request may wait for a controller and its response: the client only asked where its
topics are.
"""
TRIGGER_ONLY_MS = 0
"""The timeout of a CreateTopics that does not wait until the topic is complete (K4-C6)."""


class Asker(NamedTuple):
    """A caller, as policies and the audit log know them."""

    principal: str | None
    client_id: str | None
    client_host: str
    software: str
    listener: str
    api: int
    """The key of the API in which the topic was named."""
    api_version: int


class Flight(msgspec.Struct):
    """One automatic creation that is under way."""

    landed: trio.Event
    code: ErrorCode | None = None
    """The outcome; None if the request that made the creation was cancelled: another one makes it.
    """


class AutoCreation:
    """The automatic creations of one node."""

    def __init__(
        self, config: NodeConfig, refused: Callable[[RequestContext, CreateTopicsRequest, Refusal], None]
    ) -> None:
        """`refused` is called with each creation that is refused as a whole."""
        self._config = config
        self._refused = refused
        self._flights: dict[tuple[Asker, str], Flight] = {}

    async def create(self, context: RequestContext, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics with valid names, and return the error code of each in Metadata:
        LEADER_NOT_AVAILABLE if it was created. If there are more names than one request may create,
        none is created, and all are unknown.
        """
        if len(names) > MAX_CHANGES:
            return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        codes: dict[str, ErrorCode] = {}
        asker = _asker(context)
        while left := [name for name in names if name not in codes]:
            joined = {name: self._flights[key] for name in left if (key := (asker, name)) in self._flights}
            grounded = [name for name in left if name not in joined]
            if grounded:
                codes.update(await self._fly(context, asker, grounded))
            for name, flight in joined.items():
                await flight.landed.wait()
                if flight.code is not None:
                    codes[name] = flight.code
        return codes

    async def _fly(self, context: RequestContext, asker: Asker, names: Iterable[str]) -> dict[str, ErrorCode]:
        flights = {name: Flight(trio.Event()) for name in names}
        self._flights.update({(asker, name): flight for name, flight in flights.items()})
        try:
            codes = await self._ask_the_controller(context, list(flights))
            for name, flight in flights.items():
                flight.code = codes[name]
            return codes
        finally:
            for name, flight in flights.items():
                del self._flights[asker, name]
                flight.landed.set()

    async def _ask_the_controller(self, context: RequestContext, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Send CreateTopics by the route that a CreateTopics of this client would take."""
        route = context.dispatcher.routes.get(ApiKey.CREATE_TOPICS)
        if route is None:
            return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        asking = msgspec.structs.replace(
            context,
            spec=route.spec,
            header=RequestHeader(
                route.api.key, route.api.max_version, context.header.correlation_id, context.header.client_id
            ),
            origin=msgspec.structs.replace(context.origin, api_version=route.api.max_version, api_key=context.api_key),
            notes=AnswerNotes(),
        )
        request = CreateTopicsRequest(
            topics=[creatable_topic(self._config, name) for name in names], timeout_ms=TRIGGER_ONLY_MS
        )
        codes: dict[str, ErrorCode] = dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
        with trio.move_on_after(PATIENCE_SECONDS):
            try:
                response: CreateTopicsResponse = await response_of(route.handler(asking, request))
            except Refusal as refusal:
                self._refused(asking, request, refusal)
                return dict.fromkeys(names, as_seen_by_the_client(refusal.code))
            codes.update((result.name, as_seen_by_the_client(result.error_code)) for result in response.topics)
        return codes


def _asker(context: RequestContext) -> Asker:
    return Asker(
        context.origin.principal,
        context.client_id,
        context.origin.client_host,
        context.origin.software,
        context.listener,
        context.api_key,
        context.origin.api_version,
    )
