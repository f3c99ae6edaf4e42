"""The socket's end of a connection."""

import pytest
import trio
import trio.testing

from minicontroller.controller.network.transport import Disconnected, SocketTransport


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
