"""The socket that kazoo and the store share, and the way into the event loop."""

import socket
import threading
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest
import trio
import trio.testing

from minicontroller.store import jute
from minicontroller.store.kazoo_handler import KazooHandler
from minicontroller.store.loop_queue import LoopQueue
from minicontroller.store.replies import Reply
from minicontroller.store.server_connection import FIRST_XID, LAST_XID, ServerConnection

PATIENCE_SECONDS = 20.0
PING_XID = -2
OPENED = jute.INT.pack(37) + bytes(37)
"""The server's answer to the request that opens a session: it has no header."""


class Ends:
    """A connection, its doorbell, what was delivered of it, and the other end of its socket."""

    def __init__(self) -> None:
        ours, self.server = socket.socketpair()
        self.bell, self.ring = socket.socketpair()
        for each in (ours, self.server, self.bell, self.ring):
            each.setblocking(False)
        self.delivered: list[list[bytes]] = []
        self.connection = ServerConnection(ours, self.ring, lambda _, frames: self.delivered.append(frames))

    def open(self) -> None:
        """Kazoo opens the session, and waits for requests."""
        self.server.sendall(OPENED)
        assert self.connection.wait(PATIENCE_SECONDS, None) == (True, False)
        assert self.connection.recv(4) + self.connection.recv(37) == OPENED
        assert self.connection.wait(0, self.bell) == (False, False)

    def close(self) -> None:
        self.connection.close()
        for each in (self.server, self.bell, self.ring):
            each.close()


@pytest.fixture(name="ends")
def ends_fixture() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close()


def frame(xid: int, body: bytes = b"", zxid: int = 1) -> bytes:
    """A frame of the server."""
    return jute.INT.pack(16 + len(body)) + jute.REPLY_HEADER.pack(xid, zxid, 0) + body


def xids(sent: bytes) -> list[int]:
    """The numbers of the requests in these bytes."""
    found = []
    while sent:
        size, xid, _ = jute.REQUEST_HEADER.unpack_from(sent)
        found.append(xid)
        sent = sent[4 + size :]
    return found


def test_requests_wait_until_kazoo_has_authenticated(ends: Ends) -> None:
    """What is asked for before goes out behind kazoo's authentication, in its order, and not
    before.
    """
    ends.connection.request(jute.SYNC, b"one", Reply(jute.SYNC, "/"))
    ends.connection.request(jute.SYNC, b"two", Reply(jute.SYNC, "/"))
    assert ends.connection.send(b"auth") == 4
    assert ends.server.recv(100) == b"auth"
    ends.open()
    assert xids(ends.server.recv(1000)) == [FIRST_XID, FIRST_XID + 1]
    ends.connection.request(jute.SYNC, b"three", Reply(jute.SYNC, "/"))
    assert xids(ends.server.recv(1000)) == [FIRST_XID + 2]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_frames_are_told_apart_however_they_come(ends: Ends, step: int) -> None:
    """Answers to the store and events of watches are delivered, in order; heartbeats are
    kazoo's.
    """
    ends.open()
    ours = [frame(FIRST_XID, b"a"), frame(jute.WATCH_XID, b"event"), frame(LAST_XID, b"z" * 100)]
    ping = frame(PING_XID)
    stream = ours[0] + ours[1] + ping + ours[2]
    for start, end in pairwise([*range(0, len(stream), step), len(stream)]):
        ends.server.sendall(stream[start:end])
        ends.connection.wait(0, ends.bell)
    assert [each for frames in ends.delivered for each in frames] == [each[4:] for each in ours]
    assert ends.connection.recv(1000) == ping
    assert ends.connection.last_zxid == 1


def test_kazoo_sleeps_while_answers_come(ends: Ends) -> None:
    """Answers to the store do not end the wait of kazoo's thread: its own time passes."""
    ends.open()
    ends.server.sendall(frame(FIRST_XID))
    assert ends.connection.wait(0.05, ends.bell) == (False, False)
    assert len(ends.delivered) == 1


def test_the_signal_wakes_the_waiting_task(ends: Ends) -> None:
    """A ring from another thread ends the wait, and is seen until it is taken."""
    ends.open()
    ringer = threading.Timer(0.01, ends.ring.send, [b"\0"])
    ringer.start()
    assert ends.connection.wait(PATIENCE_SECONDS, ends.bell) == (False, True)
    ringer.join()
    assert ends.connection.wait(0, ends.bell) == (False, True)
    ends.bell.recv(1)
    assert ends.connection.wait(0, ends.bell) == (False, False)


def test_a_request_never_waits_for_the_socket(ends: Ends) -> None:
    """What the socket does not take goes out, whole and in order, when kazoo's thread, woken for
    it, waits.
    """
    ends.open()
    large = bytes(range(256)) * 20_000
    for body in (large, b"small"):
        ends.connection.request(jute.MULTI, body, Reply(jute.MULTI, "/"))
    ends.connection.send(b"ping")
    assert ends.connection.wait(PATIENCE_SECONDS, ends.bell) == (False, True)
    ends.bell.recv(1)
    received = bytearray()
    expected = len(large) + len(b"small") + 24 + len(b"ping")
    ends.server.setblocking(True)

    def read() -> None:
        while len(received) < expected:
            received.extend(ends.server.recv(1 << 16))
        ends.server.sendall(frame(PING_XID))

    reader = threading.Thread(target=read)
    reader.start()
    assert ends.connection.wait(PATIENCE_SECONDS, ends.bell) == (True, False)
    reader.join()
    assert xids(bytes(received[:-4])) == [FIRST_XID, FIRST_XID + 1]
    assert received.endswith(b"smallping")


def test_the_end_of_the_connection_is_kazoo_s_to_find(ends: Ends) -> None:
    """A request on a connection that has ended raises nothing and stays unanswered; kazoo reads the
    end.
    """
    ends.open()
    ends.server.close()
    for _ in range(2):
        ends.connection.request(jute.SYNC, b"", Reply(jute.SYNC, "/"))
    assert ends.connection.wait(PATIENCE_SECONDS, ends.bell) == (True, False)
    assert ends.connection.recv(4) == b""
    ends.connection.close()
    ends.connection.request(jute.SYNC, b"", Reply(jute.SYNC, "/"))
    assert len(ends.connection.unanswered) == 3


def test_a_cut_wakes_kazoo(ends: Ends) -> None:
    """Another thread's cut ends the wait for an answer."""
    ends.open()
    threading.Timer(0.01, ends.connection.cut).start()
    assert ends.connection.wait(PATIENCE_SECONDS, ends.bell) == (True, False)
    assert ends.connection.recv(4) == b""


@pytest.mark.parametrize("length", [-1, 0, 15])
def test_what_is_no_frame_breaks_the_connection(ends: Ends, length: int) -> None:
    """Bytes that no server of ZooKeeper sends are an OSError, which kazoo takes for a broken
    connection.
    """
    ends.open()
    ends.server.sendall(jute.INT.pack(length))
    with pytest.raises(OSError, match=f"a frame of {length} bytes"):
        ends.connection.wait(PATIENCE_SECONDS, ends.bell)


def test_answers_are_taken_in_order(ends: Ends) -> None:
    """An answer that is not the next one's belongs to nobody."""
    replies = [Reply(jute.SYNC, "/"), Reply(jute.SYNC, "/")]
    for reply in replies:
        ends.connection.request(jute.SYNC, b"", reply)
    assert ends.connection.take_reply(FIRST_XID + 1) is None
    assert ends.connection.take_reply(FIRST_XID) is replies[0]
    assert ends.connection.take_reply(FIRST_XID + 1) is replies[1]
    assert ends.connection.take_reply(FIRST_XID + 2) is None


def test_the_numbers_of_requests_begin_again(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last number comes the first: never one of kazoo's."""
    monkeypatch.setattr(ends.connection, "_last_xid", LAST_XID - 1)
    for _ in range(2):
        ends.connection.request(jute.SYNC, b"", Reply(jute.SYNC, "/"))
    assert [xid for xid, _ in ends.connection.unanswered] == [LAST_XID, FIRST_XID]


def test_the_end_of_the_thread_is_told_with_its_cause() -> None:
    """Whatever ends kazoo's thread reaches whoever asked for it; nothing is printed."""
    ends: list[Exception | None] = []
    handler = KazooHandler(lambda _connection, _frames: None, ends.append)
    failure = RuntimeError("xids do not match")

    def fail() -> None:
        raise failure

    handler.spawn(fail).join()
    handler.spawn(lambda: None).join()
    assert ends == [failure, None]


async def test_posts_arrive_in_order_and_never_within_the_post() -> None:
    """What threads post runs in the loop, in the order of the posts; what is posted meanwhile comes
    after it.
    """
    queue = LoopQueue()
    queue.attach()
    seen: list[int] = []

    def first() -> None:
        queue.post(lambda: seen.append(100))
        seen.append(0)

    queue.post(first)
    assert seen == []

    def post_many() -> None:
        for i in range(1, 100):
            queue.post(partial(seen.append, i))

    await trio.to_thread.run_sync(post_many)
    await trio.testing.wait_all_tasks_blocked()
    assert seen[0] == 0
    assert sorted(seen) == list(range(101))
    assert [i for i in seen if 0 < i < 100] == list(range(1, 100))


def test_a_loop_that_has_ended_needs_no_news() -> None:
    """A post after the end of the loop is dropped without an error: kazoo's thread may outlive it
    by a moment.
    """
    queue = LoopQueue()

    async def main() -> None:
        queue.attach()

    trio.run(main)
    queue.post(lambda: pytest.fail("nobody runs this"))
