"""Envelope, as a real broker forwards with it (K590-9): the receiver's checks in Kafka's order,
then the inner request.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from minicontroller.cluster.errors import Refusal
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from minicontroller.protocol.messages.metadata import MetadataRequest
from minicontroller.protocol.messages.offset_commit import OffsetCommitRequest
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from minicontroller.security.principal import principal_from_envelope, principal_from_text
from tests.support.small_server import CLIENTS, NODES, TINY_HANDLERS, Client, Served, TinyNode, serving

ALICE = bytes.fromhex("0000 05 55736572 06 616c696365 00 00")
ANONYMOUS = bytes.fromhex("0000 05 55736572 0a 414e4f4e594d4f5553 00 00")  # as a real 3.9 broker sent it
LOCALHOST = bytes([127, 0, 0, 1])
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")])


def inner(message: WireStruct, version: int, key: ApiKey) -> bytes:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=4711, client_id="inner-client")
    return KAFKA.encode_request(header, message)[4:]


GOOD = EnvelopeRequest(
    request_data=inner(CREATE, 5, ApiKey.CREATE_TOPICS), request_principal=ALICE, client_host_address=LOCALHOST
)


async def login(client: Client, username: str) -> None:
    await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    token = f"\0{username}\0{username}-secret".encode()
    await client.ask(2, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)


def create(node: TinyNode, ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    node.seen.append(ctx)
    return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name) for topic in request.topics])


@asynccontextmanager
async def peer(
    handler: Any = create, *, username: str = "node", node: TinyNode | None = None
) -> AsyncIterator[tuple[Served, Client]]:
    handlers = {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: handler}
    async with (
        serving(handlers=handlers, listeners=[CLIENTS, NODES], node=node) as served,
        await served.connect(NODES) as client,
    ):
        await login(client, username)
        yield served, client


def unwrapped(answer: EnvelopeResponse, version: int) -> CreateTopicsResponse:
    assert answer.error_code == ErrorCode.NONE
    assert answer.response_data is not None
    header, response = KAFKA.decode_response(ApiKey.CREATE_TOPICS, version, answer.response_data)
    assert header.correlation_id == 4711
    assert isinstance(response, CreateTopicsResponse)
    return response


@pytest.mark.parametrize(
    ("principal", "address", "name", "host"),
    [
        (ALICE, LOCALHOST, "User:alice", "127.0.0.1"),
        (ANONYMOUS, bytes(15) + b"\1", None, "::1"),
    ],
)
async def test_the_inner_request_runs_as_its_sender(
    principal: bytes, address: bytes, name: str | None, host: str
) -> None:
    """The inner request is carried out under its client's principal, address (4 or 16 bytes),
    client id, correlation id and version.
    """
    async with peer() as (served, client):
        sent = msgspec.structs.replace(GOOD, request_principal=principal, client_host_address=address)
        answer = unwrapped(await client.ask(0, sent, EnvelopeResponse), 5)
        assert [topic.name for topic in answer.topics] == ["t"]
        (ctx,) = served.node.seen
        assert (ctx.origin.principal, ctx.origin.client_host, ctx.client_id) == (name, host, "inner-client")
        assert (ctx.api_key, ctx.header.api_version, ctx.origin.api_version, ctx.forwarded) == (19, 5, 5, True)


async def test_an_envelope_where_nodes_do_not_meet_ends_the_connection() -> None:
    """K590-9: an envelope at a listener that is not the inter-broker one closes the connection
    without an answer.
    """
    async with serving(listeners=[CLIENTS, NODES]) as served, await served.connect() as client:
        await client.send(client.encode(0, GOOD))
        assert await client.ended()


async def test_an_envelope_of_a_client_is_refused() -> None:
    """K590-9, K590-6b: at the inter-broker listener, but no node: error 31, before anything of it
    is looked at.
    """
    async with peer(username="alice") as (served, client):
        answer = await client.ask(0, EnvelopeRequest(), EnvelopeResponse)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert served.node.seen == []


async def test_a_node_that_is_not_the_controller_says_so() -> None:
    """K590-9, K590-4a: error 41, before anything inside is looked at."""
    async with peer(node=TinyNode()) as (_, client):
        answer = await client.ask(0, EnvelopeRequest(), EnvelopeResponse)
        assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


BROKEN = {
    "no principal": ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    "half a principal": ({"request_principal": ALICE[:-9]}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    "a newer principal": ({"request_principal": b"\0\1" + ALICE[2:]}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    "a principal and a wrong address": (
        {"request_principal": b"", "client_host_address": b""},
        ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
    ),
    "an address of 5 bytes": ({"client_host_address": bytes(5)}, ErrorCode.INVALID_REQUEST),
    "an address and a broken request": ({"client_host_address": b"", "request_data": b""}, ErrorCode.INVALID_REQUEST),
    "no request": ({"request_data": b""}, ErrorCode.UNSUPPORTED_VERSION),
    "half a request": ({"request_data": GOOD.request_data[:-3]}, ErrorCode.UNSUPPORTED_VERSION),
    "an unknown version": (
        {"request_data": GOOD.request_data[:2] + b"\0\x63" + GOOD.request_data[4:]},
        ErrorCode.UNSUPPORTED_VERSION,
    ),
    "an API that is not forwarded": (
        {"request_data": inner(MetadataRequest(topics=None), 12, ApiKey.METADATA)},
        ErrorCode.INVALID_REQUEST,
    ),
    "an API that a coordinator answers in Kafka": (
        {"request_data": inner(OffsetCommitRequest(group_id="g"), 9, ApiKey.OFFSET_COMMIT)},
        ErrorCode.INVALID_REQUEST,
    ),
    "an envelope in an envelope": (
        {"request_data": inner(GOOD, 0, ApiKey.ENVELOPE)},
        ErrorCode.INVALID_REQUEST,
    ),
}


@pytest.mark.parametrize(("change", "code"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_envelope_is_answered_with_its_first_fault(change: dict[str, Any], code: ErrorCode) -> None:
    """Principal 97, then address 42, then the request 35, then its API 42: Kafka's order; and the
    connection goes on.
    """
    async with peer() as (served, client):
        answer = await client.ask(0, msgspec.structs.replace(GOOD, **change), EnvelopeResponse)
        assert (answer.error_code, answer.response_data) == (code, None)
        assert served.node.seen == []
        unwrapped(await client.ask(0, GOOD, EnvelopeResponse), 5)


async def test_not_controller_inside_is_the_envelopes_own() -> None:
    """NOT_CONTROLLER of the inner request is the envelope's error, so that the forwarding broker
    finds the new controller.
    """

    def lost(_node: object, _ctx: object, _request: object) -> Any:
        raise Refusal(ErrorCode.NOT_CONTROLLER)

    async with peer(lost) as (_, client):
        answer = await client.ask(0, GOOD, EnvelopeResponse)
        assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


async def test_an_exception_inside_is_the_inner_requests() -> None:
    """An exception in the inner request is answered UNKNOWN_SERVER_ERROR in its own form, in an
    envelope without an error.
    """

    async def explode(_node: object, _ctx: object, _request: object) -> Any:
        raise ZeroDivisionError

    async with peer(explode) as (served, client):
        answer = unwrapped(await client.ask(0, GOOD, EnvelopeResponse), 5)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert served.dispatcher.counters.unexpected_errors == 1


def test_principals_are_read_in_both_forms() -> None:
    """Principals are read in Kafka's binary form and KIP-590's text, where User:ANONYMOUS is
    unauthenticated; names may be long and have colons.
    """
    assert principal_from_envelope(ALICE) == ("User:alice", False)
    assert principal_from_envelope(ANONYMOUS) == (None, False)
    assert principal_from_envelope(ALICE[:-2] + b"\1\0") == ("User:alice", True)
    long = bytes.fromhex("0000 05 55736572") + bytes([0x80 | (301 & 0x7F), 301 >> 7]) + b"x" * 300 + b"\0\0"
    assert principal_from_envelope(long) == ("User:" + "x" * 300, False)
    assert principal_from_text("User:CN=a:b") == "User:CN=a:b"
    assert principal_from_text("User:ANONYMOUS") == "User:ANONYMOUS"


@pytest.mark.parametrize("text", ["", "User", "User:", ":alice", "alice"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    """A principal has a type and a name."""
    with pytest.raises(ValueError, match="Type:name"):
        principal_from_text(text)


@pytest.mark.parametrize("end", range(len(ALICE) - 2))
def test_half_a_principal_is_refused(end: int) -> None:
    """A truncated principal is refused, wherever it is cut."""
    with pytest.raises(ValueError, match="principal"):
        principal_from_envelope(ALICE[:end])


async def test_the_largest_answer_fits_its_envelope() -> None:
    """The largest answer that may be sent fits into an envelope, and a larger one is refused inside
    it.
    """
    async with peer() as (served, client):
        whole = await client.ask(0, GOOD, EnvelopeResponse)
        served.dispatcher._max_answer_bytes = len(whole.response_data or b"") + 4
        assert codes_of(await client.ask(0, GOOD, EnvelopeResponse)) == [ErrorCode.NONE]
        served.dispatcher._max_answer_bytes -= 1
        assert codes_of(await client.ask(0, GOOD, EnvelopeResponse)) == [ErrorCode.REQUEST_TIMED_OUT]


def codes_of(answer: EnvelopeResponse) -> list[int]:
    return [topic.error_code for topic in unwrapped(answer, 5).topics]
