"""What a server does by time comes when its clock is advanced, at real sockets and at once."""

import trio

from minicontroller.clock import Clock
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.security.caller import Listener
from tests.support.small_server import PLAIN, TINY_HANDLERS, TinyNode, serving

ALL = MetadataRequest(topics=None)
SHORT = Listener(name="SHORT", host="127.0.0.1", sasl=True, mechanisms=PLAIN, reauthenticate_ms={"PLAIN": 60_000})


async def test_a_session_ends(clock: Clock) -> None:
    """A client that authenticated for a minute is answered for so long, and disconnected later."""
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
        assert (await client.ask(1, token, SaslAuthenticateResponse)).session_lifetime_ms == 60_000
        await client.ask(1, ALL, MetadataResponse)
        clock.advance(60)
        await client.send(client.encode(1, ALL))
        assert await client.ended()


async def test_a_throttle_ends(clock: Clock) -> None:
    """A client that has to wait for a minute is heard when it is over, and not before."""
    heard = list[bool]()

    async def create(_node: TinyNode, _ctx: RequestContext, _request: CreateTopicsRequest) -> CreateTopicsResponse:
        await trio.lowlevel.checkpoint()
        return CreateTopicsResponse(throttle_time_ms=60_000)

    def metadata(_node: TinyNode, _ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
        heard.append(request.topics is None)
        return MetadataResponse(topics=[MetadataResponseTopic(name="all")])

    handlers = {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: create, ApiKey.METADATA: metadata}
    async with serving(handlers=handlers) as served, await served.connect() as client:
        await client.ask(7, CreateTopicsRequest(topics=[CreatableTopic(name="t")]), CreateTopicsResponse)
        await client.send(client.encode(1, MetadataRequest(topics=[])))
        assert await served.alive()
        assert heard == [True]
        clock.advance(60)
        await client.frame()
        assert heard == [True, False]


async def test_an_idle_connection_is_closed(clock: Clock) -> None:
    """Ten minutes after its last request, and then a newcomer is served."""
    async with serving(limits=ConnectionLimits(max_idle_seconds=600)) as served, await served.connect() as client:
        await client.ask(1, ALL, MetadataResponse)
        clock.advance(900)
        assert await client.ended()
        assert await served.alive()
