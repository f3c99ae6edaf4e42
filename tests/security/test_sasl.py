"""SASL at the door, as real clients come to it: with and without ApiVersions first, by tokens with
and without a header.
"""

import logging
import struct
from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock

from minicontroller.clock import now_ms
from minicontroller.network.limits import ConnectionLimits
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.protocol.schema import WireStruct
from minicontroller.security.caller import Listener
from minicontroller.security.principal import MAX_NAME_BYTES
from minicontroller.security.sasl import Challenge, PlainExchange, Proved, Rejected, SaslOutcome
from tests.support.small_server import CLIENTS, PLAIN, SASL, USERS, Client, serving

PLAIN_HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
ALL = MetadataRequest(topics=None)
LIFETIMES = {"PLAIN": 60_000}


def plain(username: str, password: str, authorization_id: str = "") -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=f"{authorization_id}\0{username}\0{password}".encode())


async def handshake(client: Client, version: int = 1) -> SaslHandshakeResponse:
    return await client.ask(version, PLAIN_HANDSHAKE, SaslHandshakeResponse)


# ------------------------------------------------------------------ what clients do


@pytest.mark.parametrize("versions_first", [0, 2, 3, 4, None])
@pytest.mark.parametrize("authenticate", [0, 1, 2])
async def test_clients_authenticate_in_every_version(versions_first: int | None, authenticate: int) -> None:
    """ApiVersions in any version, or none at all, then handshake v1, then SaslAuthenticate: and the
    principal is `User:alice`.
    """
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        if versions_first is not None:
            asked = ApiVersionsRequest(client_software_name="x", client_software_version="1")
            assert (await client.ask(versions_first, asked, ApiVersionsResponse)).error_code == ErrorCode.NONE
        answer = await handshake(client)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.NONE, ["PLAIN"])
        proved = await client.ask(authenticate, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        assert (proved.error_code, proved.auth_bytes, proved.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
        await client.ask(1, ALL, MetadataResponse)
        assert served.node.seen[-1].origin.principal == "User:alice"


async def test_api_versions_may_come_after_authentication() -> None:
    """ApiVersions may come later, as from the one client that opens with the handshake on every
    connection.
    """
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await handshake(client)
        await client.ask(2, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        asked = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        assert (await client.ask(3, asked, ApiVersionsResponse)).error_code == ErrorCode.NONE


async def test_a_handshake_in_version_0_is_followed_by_bare_tokens() -> None:
    """No header around the token; the answer to PLAIN is an empty frame; then requests go on as
    ever.
    """
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        assert (await handshake(client, 0)).error_code == ErrorCode.NONE
        token = b"\0alice\0alice-secret"
        await client.send(struct.pack(">i", len(token)) + token)
        assert await client.frame() == b""
        await client.ask(1, ALL, MetadataResponse)
        assert served.node.seen[-1].origin.principal == "User:alice"


async def test_everything_in_one_write_is_taken_in_order() -> None:
    """A client that does not wait for the answers finds its later requests under its new name."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await client.send(
            client.encode(1, PLAIN_HANDSHAKE) + client.encode(2, plain("alice", "alice-secret")) + client.encode(1, ALL)
        )
        await client.answer(SaslHandshakeResponse, 1)
        await client.answer(SaslAuthenticateResponse, 2)
        await client.answer(MetadataResponse, 1)
        assert served.node.seen[-1].origin.principal == "User:alice"


# ------------------------------------------------------------------ refusals

REFUSED = {
    "a wrong password": (plain("alice", "guess"), "Authentication failed: Invalid username or password"),
    "an unknown user": (plain("mallory", "guess"), "Authentication failed: Invalid username or password"),
    "no user": (plain("", "alice-secret"), "Authentication failed: username not specified"),
    "no password": (plain("alice", ""), "Authentication failed: password not specified"),
    "another's name": (
        plain("alice", "alice-secret", "node"),
        "Authentication failed: Client requested an authorization id that is different from username",
    ),
    "no PLAIN token": (
        SaslAuthenticateRequest(auth_bytes=b"alice-secret"),
        "Invalid SASL/PLAIN response: expected 3 tokens, got 1",
    ),
    "more than a PLAIN token": (
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret\0and\0more"),
        "Invalid SASL/PLAIN response: expected 3 tokens, got 4",
    ),
}


@pytest.mark.parametrize(("token", "text"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_client_reads_why_a_little_later_and_is_disconnected(
    token: SaslAuthenticateRequest,
    text: str,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After `connection.failed.authentication.delay.ms` comes error 58 with Kafka's text, then the
    end; no secret is in the log.
    """
    caplog.set_level(logging.DEBUG)
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await handshake(client)
        before = trio.current_time()
        answer = await client.ask(2, token, SaslAuthenticateResponse)
        assert trio.current_time() - before == pytest.approx(0.1)
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
        assert await client.ended()
        assert "secret" not in caplog.text
        assert "guess" not in caplog.text


async def test_a_guesser_delays_nobody_else() -> None:
    """While a refused client waits for its answer others are served."""
    async with serving(listeners=[SASL, CLIENTS]) as served, await served.connect(SASL) as client:
        await handshake(client)
        await client.send(client.encode(2, plain("alice", "guess")) + client.encode(1, ALL))
        assert await served.alive()
        await client.answer(SaslAuthenticateResponse, 2)
        assert await client.ended()
        assert [ctx.origin.principal for ctx in served.node.seen] == [None]


async def test_a_bare_token_that_is_wrong_ends_the_connection(autojump_clock: MockClock) -> None:
    """A bare token has no form for an error: nothing is answered."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await handshake(client, 0)
        await client.send(struct.pack(">i", 12) + b"\0alice\0guess")
        assert await client.ended()


@pytest.mark.parametrize("version", [0, 1])
async def test_an_unknown_mechanism_is_told_the_known_ones(version: int, autojump_clock: MockClock) -> None:
    """An unknown mechanism is answered error 33 with the mechanisms that this listener enables,
    then the connection ends.
    """
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        asked = SaslHandshakeRequest(mechanism="GSSAPI")
        answer = await client.ask(version, asked, SaslHandshakeResponse)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
        assert await client.ended()


@pytest.mark.parametrize("after_handshake", [False, True])
async def test_nothing_else_is_heard_before_authentication(after_handshake: bool) -> None:
    """Any other API ends the connection, before and between the steps."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        if after_handshake:
            await handshake(client)
        await client.send(client.encode(1, ALL))
        assert await client.ended()
        assert served.node.seen == []


@pytest.mark.parametrize("limits", [ConnectionLimits(), ConnectionLimits(max_unauthenticated_bytes=200_000)])
async def test_a_request_before_authentication_is_small(limits: ConnectionLimits) -> None:
    """Strangers cannot make the node keep `socket.request.max.bytes` for them: more than
    `sasl.server.max.receive.size`, by default half a mebibyte, ends the connection.
    """
    async with serving(listeners=[SASL], limits=limits) as served, await served.connect(SASL) as client:
        await client.send(struct.pack(">i", 50 * 1024 * 1024))
        sent = 0
        while served.server.connections:
            with suppress(trio.BrokenResourceError):
                await client.send(bytes(64 * 1024))
            sent += 64 * 1024
            await trio.testing.wait_all_tasks_blocked()
        assert sent < 2 * limits.max_unauthenticated_bytes


async def test_a_token_without_a_handshake_ends_the_connection() -> None:
    """As in Kafka, where no exchange has been begun."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await client.send(client.encode(2, plain("alice", "alice-secret")))
        assert await client.ended()
        assert served.node.seen == []


async def test_sasl_at_a_listener_without_it_is_out_of_place() -> None:
    """On PLAINTEXT both APIs are answered with 34, as Kafka answers them, and the connection goes
    on.
    """
    async with serving() as served, await served.connect() as client:
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        answer = await client.ask(2, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        await client.ask(1, ALL, MetadataResponse)
        assert served.node.seen[-1].origin.principal is None


# ------------------------------------------------------------------ again


SHORT = Listener(
    name="SHORT", host="127.0.0.1", sasl=True, mechanisms=PLAIN | {"OTHER": PLAIN["PLAIN"]}, reauthenticate_ms=LIFETIMES
)


async def test_a_client_may_authenticate_again_on_its_connection() -> None:
    """After another handshake and token, and in between, requests are those of the same user."""
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        for _ in range(2):
            await handshake(client)
            await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
            await client.ask(1, ALL, MetadataResponse)
        assert [ctx.origin.principal for ctx in served.node.seen] == ["User:alice", "User:alice"]


async def test_a_client_whose_session_does_not_end_cannot_authenticate_again() -> None:
    """As in Kafka such a handshake is answered with 34, and the connection goes on as it was."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await handshake(client)
        await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        assert await handshake(client) == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        answer = await client.ask(1, plain("node", "node-secret"), SaslAuthenticateResponse)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        await client.ask(1, ALL, MetadataResponse)
        assert [ctx.origin.principal for ctx in served.node.seen] == ["User:alice"]


async def test_a_client_authenticates_again_once_a_second_at_most(autojump_clock: MockClock) -> None:
    """The handshakes in between are answered with 34, and the connection goes on."""
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        codes = []
        for pause in (0, 0, 0.5, 0.6):
            await trio.sleep(pause)
            codes.append((await handshake(client)).error_code)
            if codes[-1] == ErrorCode.NONE:
                await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.ILLEGAL_SASL_STATE, ErrorCode.NONE]


async def test_a_handshake_amid_an_exchange_ends_the_connection(autojump_clock: MockClock) -> None:
    """Messages in a wrong order are answered with 34 and go no further, as in Kafka."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        await handshake(client)
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await client.ended()
        assert served.server.failures.failed_authentications == {"PLAIN": 1}


@pytest.mark.parametrize("version", [0, 3])
async def test_versions_amid_an_exchange_end_the_connection(version: int, autojump_clock: MockClock) -> None:
    """In the first authentication and in the next one alike, as a Kafka 3.9.1 answered."""
    asked = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    for has_user in (False, True):
        async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
            await handshake(client)
            if has_user:
                await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
                await handshake(client)
            answer = await client.ask(version, asked, ApiVersionsResponse)
            assert answer == ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
            assert await client.ended()


async def test_nothing_is_carried_out_before_a_new_authentication_is_over() -> None:
    """Neither as the old user nor as the new one."""
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        await handshake(client)
        await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        await handshake(client)
        await client.send(client.encode(1, ALL))
        assert await client.ended()
        assert not served.node.seen


async def test_nobody_becomes_another_on_his_connection(autojump_clock: MockClock) -> None:
    """A re-authentication under another name is refused with Kafka's text and ends the connection
    (KIP-368).
    """
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        await handshake(client)
        await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        await handshake(client)
        answer = await client.ask(1, plain("node", "node-secret"), SaslAuthenticateResponse)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == ("Cannot change principals during re-authentication from User.alice: User.node")
        assert await client.ended()


async def test_nobody_changes_the_mechanism_on_his_connection(autojump_clock: MockClock) -> None:
    """A re-authentication by another mechanism, also one that the listener offers, ends the
    connection.
    """
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        await handshake(client)
        await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        asked = SaslHandshakeRequest(mechanism="OTHER")
        assert (await client.ask(1, asked, SaslHandshakeResponse)).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert await client.ended()


async def test_a_session_has_a_lifetime(autojump_clock: MockClock) -> None:
    """The mechanism's `connections.max.reauth.ms` is told to the client; who has not authenticated
    again by then is disconnected at the next request.
    """
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        await handshake(client)
        answer = await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        assert answer.session_lifetime_ms == 60_000
        await trio.sleep(50)
        await handshake(client)
        await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        await trio.sleep(50)
        await client.ask(1, ALL, MetadataResponse)
        await trio.sleep(20)
        await client.send(client.encode(1, ALL))
        assert await client.ended()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (0, ApiVersionsRequest()),
        (3, ApiVersionsRequest(client_software_name="x", client_software_version="1")),
        (1, SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")),
    ],
)
async def test_after_the_end_of_a_session_only_a_handshake_is_answered(
    version: int, message: WireStruct, autojump_clock: MockClock
) -> None:
    """Everything else closes the connection, as a Kafka 3.9.1 does."""
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        await handshake(client)
        await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
        await trio.sleep(61)
        await client.send(client.encode(version, message))
        assert await client.ended()


async def test_a_client_may_authenticate_again_after_its_session_ended(autojump_clock: MockClock) -> None:
    """Between the end of the session and the new authentication nothing else was asked, so the
    connection goes on, as in Kafka.
    """
    async with serving(listeners=[SHORT]) as served, await served.connect(SHORT) as client:
        for _ in range(2):
            assert (await handshake(client)).error_code == ErrorCode.NONE
            answer = await client.ask(1, plain("alice", "alice-secret"), SaslAuthenticateResponse)
            assert answer.session_lifetime_ms == 60_000
            await client.ask(1, ALL, MetadataResponse)
            await trio.sleep(70)


class Passing:
    """A mechanism whose credential ends a minute after it is shown."""

    def step(self, token: bytes) -> SaslOutcome:
        return Proved(token.decode(), expires_ms=now_ms() + 60_000)


@pytest.mark.parametrize(("reauthenticate_ms", "most"), [(0, 60_000), (90_000, 60_000), (20_000, 20_000)])
async def test_a_session_ends_with_its_credential(reauthenticate_ms: int, most: int, autojump_clock: MockClock) -> None:
    """The session's lifetime is that of the credential, or the listener's limit if that is less."""
    listener = Listener(
        name="SASL",
        host="127.0.0.1",
        sasl=True,
        mechanisms={"PASSING": Passing},
        reauthenticate_ms={"PASSING": reauthenticate_ms},
    )
    async with serving(listeners=[listener]) as served, await served.connect(listener) as client:
        await client.ask(1, SaslHandshakeRequest(mechanism="PASSING"), SaslHandshakeResponse)
        answer = await client.ask(1, SaslAuthenticateRequest(auth_bytes=b"alice"), SaslAuthenticateResponse)
        assert most - 10_000 < answer.session_lifetime_ms <= most
        await client.ask(1, ALL, MetadataResponse)
        await trio.sleep(most / 1000)
        await client.send(client.encode(1, ALL))
        assert await client.ended()


# ------------------------------------------------------------------ another mechanism


class Riddle:
    """A mechanism of two steps, as SCRAM is one."""

    def __init__(self) -> None:
        self._asked = False

    def step(self, token: bytes) -> SaslOutcome:
        if not self._asked:
            self._asked = True
            return Challenge(b"what walks on four legs?")
        return Proved("oedipus", b"go on") if token == b"man" else Rejected("eaten")


@pytest.mark.parametrize("bare", [False, True])
async def test_a_mechanism_may_take_several_steps(bare: bool) -> None:
    """The interface carries challenges both ways, with and without headers: the place of SCRAM."""
    listener = Listener(name="SASL", host="127.0.0.1", sasl=True, mechanisms={"RIDDLE": Riddle})
    async with serving(listeners=[listener]) as served, await served.connect(listener) as client:
        await client.ask(0 if bare else 1, SaslHandshakeRequest(mechanism="RIDDLE"), SaslHandshakeResponse)
        replies = []
        for token in (b"hello", b"man"):
            if bare:
                await client.send(struct.pack(">i", len(token)) + token)
                replies.append(await client.frame())
            else:
                asked = SaslAuthenticateRequest(auth_bytes=token)
                replies.append((await client.ask(2, asked, SaslAuthenticateResponse)).auth_bytes)
        assert replies == [b"what walks on four legs?", b"go on"]
        await client.ask(1, ALL, MetadataResponse)
        assert served.node.seen[-1].origin.principal == "User:oedipus"


class LongName:
    """A mechanism that lets in whoever shows a name."""

    def step(self, token: bytes) -> SaslOutcome:
        return Proved(token.decode())


@pytest.mark.parametrize(("size", "is_let_in"), [(MAX_NAME_BYTES, True), (MAX_NAME_BYTES + 1, False)])
async def test_a_name_that_nodes_cannot_forward_lets_nobody_in(
    size: int, is_let_in: bool, autojump_clock: MockClock
) -> None:
    """The owner of a delegation token and the subject of a signed one may have any length."""
    listener = Listener(name="SASL", host="127.0.0.1", sasl=True, mechanisms={"NAME": LongName})
    async with serving(listeners=[listener]) as served, await served.connect(listener) as client:
        await client.ask(1, SaslHandshakeRequest(mechanism="NAME"), SaslHandshakeResponse)
        shown = SaslAuthenticateRequest(auth_bytes=b"x" * (size % 2) + "é".encode() * (size // 2))
        answer = await client.ask(2, shown, SaslAuthenticateResponse)
        assert answer.error_code == (ErrorCode.NONE if is_let_in else ErrorCode.SASL_AUTHENTICATION_FAILED)
        if not is_let_in:
            assert "é" not in str(answer.error_message)
            assert await client.ended()


class Broken:
    """A mechanism with a bug."""

    def step(self, token: bytes) -> SaslOutcome:
        raise ZeroDivisionError(token)


@pytest.mark.parametrize("version", [0, 1])
async def test_an_exception_in_a_mechanism_lets_nobody_in(version: int) -> None:
    """The caller stays unknown after an accident in a mechanism, with and without headers, and
    others are served.
    """
    listener = Listener(name="SASL", host="127.0.0.1", sasl=True, mechanisms={"BROKEN": Broken})
    async with serving(listeners=[listener, CLIENTS]) as served, await served.connect(listener) as client:
        await client.ask(version, SaslHandshakeRequest(mechanism="BROKEN"), SaslHandshakeResponse)
        if version:
            answer = await client.ask(2, SaslAuthenticateRequest(auth_bytes=b"x"), SaslAuthenticateResponse)
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            await client.send(client.encode(1, ALL))
        else:
            await client.send(b"\0\0\0\1x")
        assert await client.ended()
        assert served.node.seen == []
        assert await served.alive()


def test_plain_takes_utf_8() -> None:
    """Names and passwords are UTF-8, and what is not is a wrong password, not an accident."""
    assert PlainExchange({"jürgen": "größe"}).step("\0jürgen\0größe".encode()) == Proved("jürgen")
    assert isinstance(PlainExchange(USERS).step(b"\0alice\0\xff\xfe"), Rejected)
