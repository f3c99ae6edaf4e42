"""SCRAM at the door, as attackers come to it: with recorded messages, in a wrong order, by another
mechanism, and by the thousand.
"""

from collections.abc import Sequence

import pytest
import trio

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.security.caller import Listener
from minicontroller.security.scram import ScramClient
from minicontroller.security.scram_credentials import ScramCredential, derived_credential
from minicontroller.security.scram_server import scram_mechanism
from tests.support.small_server import CLIENTS, PLAIN, Client, serving

MECHANISM = "SCRAM-SHA-256"
ALL = MetadataRequest(topics=None)
HALF_FINISHED = 1_000
PLAIN_TOKEN = b"\0alice\0alice-secret"


class Users:
    """Alice, with a password that no other mechanism knows."""

    def __init__(self) -> None:
        self.credential = derived_credential(MECHANISM, "scram-secret")

    def scram_credential(self, user: str, _mechanism: str) -> ScramCredential | None:
        return self.credential if user == "alice" else None

    def token_credential(self, _token_id: str, _mechanism: str) -> None:
        return None


SCRAM = Listener(
    name="SCRAM",
    host="127.0.0.1",
    sasl=True,
    mechanisms={MECHANISM: scram_mechanism(MECHANISM, Users(), lambda: b"key"), **PLAIN},
)


def honest() -> ScramClient:
    return ScramClient("sha256", "alice", "scram-secret", "abc")


async def handshake(client: Client, mechanism: str = MECHANISM) -> int:
    answer = await client.ask(1, SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    return answer.error_code


async def show(client: Client, token: bytes) -> SaslAuthenticateResponse:
    return await client.ask(2, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)


async def login(client: Client) -> list[bytes]:
    """An honest login; returns what the client sent."""
    await handshake(client)
    scram = honest()
    sent = [scram.first()]
    sent.append(scram.final((await show(client, sent[0])).auth_bytes))
    scram.verify((await show(client, sent[1])).auth_bytes)
    return sent


async def test_a_client_is_let_in_and_believes_the_server() -> None:
    """Both ends have proved that they know the password."""
    async with serving(listeners=[SCRAM]) as served, await served.connect(SCRAM) as client:
        await login(client)
        await client.ask(1, ALL, MetadataResponse)
        assert served.node.seen[-1].origin.principal == "User:alice"


async def test_recorded_messages_open_no_other_connection(autojump_clock: object) -> None:
    """All that a client sent, sent again, one after the other or at once."""
    async with serving(listeners=[SCRAM]) as served:
        async with await served.connect(SCRAM) as client:
            sent = await login(client)
        for recorded in (sent, sent[1:], [*sent, *sent]):
            async with await served.connect(SCRAM) as thief:
                await handshake(thief)
                codes = [(await show(thief, token)).error_code for token in recorded[:2]]
                assert codes[-1] == ErrorCode.SASL_AUTHENTICATION_FAILED
                assert await thief.ended()
        assert served.node.seen == []
        assert served.server.failures.failed_authentications[MECHANISM] == 3


@pytest.mark.parametrize(
    ("mechanism", "tokens"),
    [
        (MECHANISM, [PLAIN_TOKEN]),
        ("PLAIN", [b"n,,n=alice,r=abc"]),
        (MECHANISM, [b"n,,n=alice,r=abc", PLAIN_TOKEN]),
        (MECHANISM, [b"n,,n=alice,r=abc", b"n,,n=alice,r=abc"]),
        (MECHANISM, [b"c=biws,r=abc,p=" + b"A" * 43 + b"="]),
    ],
)
async def test_messages_of_another_mechanism_or_step_let_nobody_in(
    mechanism: str, tokens: Sequence[bytes], autojump_clock: object
) -> None:
    """An attacker cannot mix what two mechanisms or two steps demand."""
    async with serving(listeners=[SCRAM]) as served, await served.connect(SCRAM) as client:
        await handshake(client, mechanism)
        codes = [(await show(client, token)).error_code for token in tokens]
        assert codes[-1] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await client.ended()
        assert served.node.seen == []


async def test_a_mechanism_cannot_be_changed_amid_an_exchange(autojump_clock: object) -> None:
    """A handshake for a weaker mechanism after the challenge ends the connection."""
    async with serving(listeners=[SCRAM]) as served, await served.connect(SCRAM) as client:
        await handshake(client)
        await show(client, honest().first())
        assert await handshake(client, "PLAIN") == ErrorCode.ILLEGAL_SASL_STATE
        assert await client.ended()


async def test_a_request_amid_an_exchange_ends_the_connection() -> None:
    """Nothing is answered before the proof."""
    async with serving(listeners=[SCRAM]) as served, await served.connect(SCRAM) as client:
        await handshake(client)
        await show(client, honest().first())
        await client.send(client.encode(1, ALL))
        assert await client.ended()
        assert served.node.seen == []


async def test_exchanges_that_are_never_finished_hold_up_nobody() -> None:
    """By the thousand, each with its challenge: others are let in meanwhile, and each can still be
    finished.
    """
    async with serving(listeners=[SCRAM, CLIENTS]) as served, trio.open_nursery() as nursery:
        waiting: list[tuple[Client, bytes]] = []

        async def begin() -> None:
            client = await served.connect(SCRAM)
            await handshake(client)
            waiting.append((client, (await show(client, honest().first())).auth_bytes))

        for _ in range(HALF_FINISHED // 50):
            async with trio.open_nursery() as some:
                for _ in range(50):
                    some.start_soon(begin)
        assert len(served.server.connections) == HALF_FINISHED
        assert await served.alive()
        async with await served.connect(SCRAM) as client:
            await login(client)
        first, challenge = waiting[0]
        answer = await show(first, honest().final(challenge))
        assert answer.error_code == ErrorCode.NONE
        for client, _ in waiting:
            await trio.aclose_forcefully(client.stream)
        nursery.cancel_scope.cancel()
