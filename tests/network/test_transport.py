"""The socket's end of a connection."""

from functools import cache
from random import Random

import pytest
import trio
import trio.testing

from minicontroller.network.tls import TlsTransport
from minicontroller.network.transport import Disconnected, Outbox, SocketTransport
from tests.support.small_server import FixedTls

LARGE = 20_000_000


async def pair() -> tuple[SocketTransport, trio.SocketStream]:
    """Both ends of a TCP connection."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = await trio.open_tcp_stream(*listener.socket.getsockname())
    accepted = await listener.accept()
    await listener.aclose()
    return SocketTransport(accepted), stream


@pytest.mark.parametrize("expected", [True, False])
async def test_bytes_come_whether_they_were_expected_or_not(expected: bool) -> None:
    """Available bytes are received at once, others are awaited, and the end of the stream is empty
    bytes.
    """
    ours, theirs = await pair()
    await theirs.send_all(b"there")
    assert await ours.receive(expected=expected) == b"there"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(theirs.send_all, b"later")
        assert await ours.receive(expected=expected) == b"later"
    await theirs.aclose()
    assert await ours.receive(expected=expected) == b""
    ours.close()


@pytest.mark.parametrize("expected", [True, False])
async def test_who_waits_learns_that_it_was_closed(expected: bool) -> None:
    """A transport that is closed from this end wakes its reader."""
    ours, theirs = await pair()
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            with pytest.raises(Disconnected):
                await ours.receive(expected=expected)

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        ours.close()
    await theirs.aclose()


@pytest.mark.parametrize("expected", [True, False])
async def test_whoever_reads_lets_others_have_their_turn(expected: bool) -> None:
    """Bytes that are there are no reason to keep the event loop."""
    ours, theirs = await pair()
    await theirs.send_all(b"there")
    had: list[str] = []
    async with trio.open_nursery() as nursery:

        async def other() -> None:
            had.append("the other")

        nursery.start_soon(other)
        for _ in range(2):  # trio takes those who have their first turn at once in any order
            await ours.receive(1, expected=expected)
        had.append("the reader")
    assert had == ["the other", "the reader"]
    ours.close()
    await theirs.aclose()


# ------------------------------------------------------------------ over TLS


@cache
def fixed_tls() -> FixedTls:
    return FixedTls()


async def secure_pair() -> tuple[TlsTransport, TlsTransport]:
    """Both ends of a TLS connection, after the handshake."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = await trio.open_tcp_stream(*listener.socket.getsockname())
    server = TlsTransport(await listener.accept(), fixed_tls().server_context())
    client = TlsTransport(stream, fixed_tls().client_context(), host="localhost")
    await listener.aclose()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.secure)
        nursery.start_soon(client.secure)
    return server, client


@pytest.mark.parametrize("seed", range(6))
async def test_bytes_over_tls_are_the_same_however_they_are_cut(seed: int) -> None:
    """Both ends send at once, in pieces of any size and far more than the kernel holds, and read
    in pieces of any size: nothing is lost, doubled or exchanged.
    """
    random = Random(seed)
    ends = await secure_pair()
    texts = [random.randbytes(random.choice((1, 70_000, 3_000_000))) for _ in ends]

    async def send(end: TlsTransport, text: bytes) -> None:
        outbox, start = Outbox(end), 0
        while start < len(text):
            size = random.choice((1, 100, 16_384, 16_385, 65_536, 65_537, 1_000_000))
            outbox.put(text[start : start + size])
            start += size
            if random.random() < 0.3:
                outbox.flush_nowait()
            if random.random() < 0.3:
                await outbox.flush()
        await outbox.flush()

    async def receive(end: TlsTransport, text: bytes) -> None:
        found = bytearray()
        while len(found) < len(text):
            found += await end.receive(random.choice((100, 8_192, 65_536)), expected=random.random() < 0.5)
        assert found == text

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for end, other, text in ((ends[0], ends[1], texts[0]), (ends[1], ends[0], texts[1])):
                nursery.start_soon(send, end, text)
                nursery.start_soon(receive, other, text)
    ends[0].close()
    assert await ends[1].receive() == b""
    ends[1].close()


async def test_little_is_read_ahead_of_a_reader() -> None:
    """Who reads in small pieces, because memory is short, has no more than a record in memory."""
    server, client = await secure_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.send_rest, memoryview(bytes(LARGE)))
        for _ in range(20):
            assert 0 < len(await server.receive(8_192)) <= 8_192
            assert server.buffered_bytes <= 32_768
        nursery.cancel_scope.cancel()
    client.close()
    server.close()


async def test_who_waits_over_tls_learns_that_it_was_closed() -> None:
    """A transport that is closed from this end wakes its reader, and the other end's is at its
    end.
    """
    server, client = await secure_pair()
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            with pytest.raises(Disconnected):
                await server.receive()

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        server.close()
    assert await client.receive() == b""
    client.close()


async def test_damaged_bytes_end_a_connection() -> None:
    """What is not what the other end has encrypted is never given to the reader."""
    server, client = await secure_pair()
    client.raw_socket.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(Disconnected, match="TLS fails"):
        await server.receive()
    client.close()
    server.close()
