"""kazoo's surroundings: the doorbell, the buffered socket, and the way into the event loop."""

import socket
import threading
from collections.abc import Iterator
from functools import partial

import pytest
import trio
import trio.testing

from minicontroller.controller.store.crossing import Crossing
from minicontroller.controller.store.link import CORK_BYTES, Doorbell, Link, LinkHandler, LinkTimeout


@pytest.fixture(name="doorbell")
def doorbell_fixture() -> Iterator[Doorbell]:
    doorbell = Doorbell()
    yield doorbell
    doorbell.close()


@pytest.fixture(name="ends")
def ends_fixture(doorbell: Doorbell) -> Iterator[tuple[Link, socket.socket]]:
    """A link and the other end of its connection."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    link = Link(ours, doorbell)
    yield link, theirs
    link.close()
    theirs.close()


def test_ringing_never_blocks(doorbell: Doorbell) -> None:
    """A hundred thousand requests can be queued before the first is taken: a socket pair would
    block at some 280.
    """
    for _ in range(100_000):
        doorbell.send(b"\0")
    for _ in range(100_000):
        doorbell.recv(1)
    with pytest.raises(BlockingIOError):
        doorbell.recv(1)


def test_a_closed_doorbell_refuses(doorbell: Doorbell) -> None:
    """An OSError is what kazoo takes for a closed connection; closing twice (it closes both ends)
    is no error.
    """
    doorbell.close()
    doorbell.close()
    with pytest.raises(OSError, match="closed"):
        doorbell.send(b"\0")


def test_a_burst_of_requests_leaves_in_one_send(ends: tuple[Link, socket.socket], doorbell: Doorbell) -> None:
    """While more requests wait at the door the bytes are held back; the last of them sends all."""
    link, server = ends
    for _ in range(3):
        doorbell.send(b"\0")
    for part in (b"one", b"two"):
        assert link.send(part) == 3
        doorbell.recv(1)
        with pytest.raises(BlockingIOError):
            server.recv(100)
    link.send(b"three")
    assert server.recv(100) == b"onetwothree"


def test_held_back_bytes_leave_before_anyone_waits(ends: tuple[Link, socket.socket], doorbell: Doorbell) -> None:
    """Requests that were withdrawn leave rings behind: what was held back for them is sent before
    the link waits.
    """
    link, server = ends
    for _ in range(2):
        doorbell.send(b"\0")
    link.send(b"one")
    for _ in range(2):
        doorbell.recv(1)
    assert link.select(0, with_doorbell=True) == (False, False)
    assert server.recv(100) == b"one"


def test_much_is_not_held_back(ends: tuple[Link, socket.socket], doorbell: Doorbell) -> None:
    """A burst is sent when it has grown large, though more requests wait."""
    link, server = ends
    for _ in range(2):
        doorbell.send(b"\0")
    link.send(bytes(CORK_BYTES))
    assert server.recv(CORK_BYTES) == bytes(CORK_BYTES)


def test_answers_of_one_packet_are_read_by_one_receive(ends: tuple[Link, socket.socket]) -> None:
    """What came with the first bytes is there without asking the socket again, until
    it is used up.
    """
    link, server = ends
    server.sendall(b"headbody")
    assert link.select(5, with_doorbell=True) == (True, False)
    assert link.recv(4) == b"head"
    assert link.pending() == 4
    server.close()
    assert link.select(5, with_doorbell=False) == (True, False)
    assert link.recv(100) == b"body"
    assert link.pending() == 0
    assert link.select(5, with_doorbell=False) == (True, False)
    assert link.recv(4) == b""


def test_the_doorbell_wakes_whoever_waits(ends: tuple[Link, socket.socket], doorbell: Doorbell) -> None:
    """A ring from another thread ends the wait for an answer, and is seen until it is taken."""
    link, _ = ends
    ringer = threading.Timer(0.01, doorbell.send, [b"\0"])
    ringer.start()
    assert link.select(20, with_doorbell=True) == (False, True)
    ringer.join()
    assert link.select(0, with_doorbell=True) == (False, True)
    doorbell.recv(1)
    assert link.select(0, with_doorbell=True) == (False, False)


def test_a_server_that_reads_nothing_times_out(ends: tuple[Link, socket.socket]) -> None:
    """When the socket takes no more the link waits for as long as kazoo allows, and no longer."""
    link, _ = ends
    link.write_timeout = 0.01
    with pytest.raises(LinkTimeout):
        link.send(bytes(10_000_000))


def test_a_large_request_is_sent_whole(ends: tuple[Link, socket.socket]) -> None:
    """More than the socket takes at once goes out in parts."""
    link, server = ends
    link.write_timeout = 20
    server.setblocking(True)
    data = bytes(range(256)) * 20_000
    received = bytearray()

    def read() -> None:
        while len(received) < len(data):
            received.extend(server.recv(1 << 16))

    reader = threading.Thread(target=read)
    reader.start()
    link.send(data)
    reader.join()
    assert received == data


def test_the_end_of_the_thread_is_told_with_its_cause() -> None:
    """Whatever ends kazoo's thread reaches whoever asked for it; nothing is printed."""
    ends: list[Exception | None] = []
    handler = LinkHandler(lambda _: None, ends.append)
    failure = RuntimeError("xids do not match")

    def fail() -> None:
        raise failure

    handler.spawn(fail).join()
    handler.spawn(lambda: None).join()
    assert ends == [failure, None]
    handler.create_socket_pair()[0].close()


async def test_posts_arrive_in_order_and_never_within_the_post() -> None:
    """What threads post runs in the loop, in the order of the posts; what is posted meanwhile comes
    after it.
    """
    crossing = Crossing()
    crossing.enter_loop()
    seen: list[int] = []

    def first() -> None:
        crossing.post(lambda: seen.append(100))
        seen.append(0)

    crossing.post(first)
    assert seen == []

    def post_many() -> None:
        for i in range(1, 100):
            crossing.post(partial(seen.append, i))

    await trio.to_thread.run_sync(post_many)
    await trio.testing.wait_all_tasks_blocked()
    assert seen[0] == 0
    assert sorted(seen) == list(range(101))
    assert [i for i in seen if 0 < i < 100] == list(range(1, 100))


def test_a_loop_that_has_ended_needs_no_news() -> None:
    """A post after the end of the loop is dropped without an error: kazoo's thread may outlive it
    by a moment.
    """
    crossing = Crossing()

    async def main() -> None:
        crossing.enter_loop()

    trio.run(main)
    crossing.post(lambda: pytest.fail("nobody runs this"))
