"""Two real servers, one of which forwards to the other."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import trio

from minicontroller.cluster.cache import MetadataCache
from minicontroller.cluster.entities import Broker, Endpoint
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.serving.api import ServedApi
from minicontroller.network.serving.context import RequestContext
from minicontroller.network.serving.forwarding import Forwarder, Logins
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from minicontroller.security.caller import Listener
from minicontroller.security.credentials import PlainCredentials
from tests.support.small_server import (
    CLIENTS,
    NODES,
    SASL,
    TINY_HANDLERS,
    Served,
    TinyNode,
    serving,
)
from tests.support.specs import TestHandler

CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t"), CreatableTopic(name="u")], timeout_ms=10_000)
NODE = PlainCredentials("node", "node-secret")


class Recorder:
    """Creates at once, and remembers who asked for what."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.calls: list[tuple[RequestContext, Any]] = []

    def create(self, _node: object, ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        self.calls.append((ctx, request))
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=self.code, error_message="", num_partitions=3)
                for topic in request.topics
            ]
        )

    def delete(self, _node: object, ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        self.calls.append((ctx, request))
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name=topic.name) for topic in request.topics])


class Pair:
    """Node 1 at `near`, which forwards; node 2 at `far`."""

    def __init__(
        self, near: Served, far: Served, cache: MetadataCache, recorder: Recorder, forwarder: Forwarder
    ) -> None:
        self.near = near
        self.far = far
        self.cache = cache
        self.recorder = recorder
        self.forwarder = forwarder

    def elect(self, broker_id: int, epoch: int = 1, *, port: int | None = None) -> None:
        """Send node 1 the metadata of an elected controller."""
        endpoint = Endpoint("NODES", "127.0.0.1", port or self.far.server.ports["NODES"], "SASL_PLAINTEXT")
        self.cache.apply(
            controller_id=broker_id,
            controller_epoch=epoch,
            brokers=[Broker(1), Broker(2, (endpoint,)), Broker(3)],
        )


@asynccontextmanager
async def pair(
    *,
    logins: Logins = lambda _broker, _endpoint: (NODE,),
    far_listener: Listener = NODES,
    far_handler: Callable[..., Any] | None = None,
    near_handler: Callable[..., Any] | None = None,
    elected: bool = True,
    forwards: bool = True,
    limits: ConnectionLimits | None = None,
    handlers: Mapping[ApiKey, TestHandler] | None = None,
) -> AsyncIterator[Pair]:
    """`handlers` are those of further APIs at both nodes."""
    recorder, cache = Recorder(), MetadataCache()
    far_handlers: dict[ApiKey, ServedApi[()] | TestHandler] = {
        **TINY_HANDLERS,
        ApiKey.CREATE_TOPICS: far_handler or recorder.create,
        ApiKey.DELETE_TOPICS: recorder.delete,
        **(handlers or {}),
    }
    near_node = TinyNode()
    near_handlers = {**far_handlers, ApiKey.CREATE_TOPICS: near_handler or far_handlers[ApiKey.CREATE_TOPICS]}
    async with AsyncExitStack() as stack:
        far = await stack.enter_async_context(
            serving(handlers=far_handlers, listeners=[CLIENTS, far_listener], limits=limits)
        )
        nursery = await stack.enter_async_context(trio.open_nursery())
        forwarder = Forwarder(nursery, broker_id=1, cache=cache, inter_broker_listener="NODES", logins=logins)
        near = await stack.enter_async_context(
            serving(
                handlers=near_handlers,
                listeners=[CLIENTS, SASL, NODES],
                node=near_node,
                limits=limits,
                forwarder=forwarder if forwards else None,
            )
        )
        both = Pair(near, far, cache, recorder, forwarder)
        if elected:
            both.elect(2)
        yield both
        nursery.cancel_scope.cancel()


def codes(answer: CreateTopicsResponse) -> list[int]:
    return [topic.error_code for topic in answer.topics]
