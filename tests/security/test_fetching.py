"""What nodes fetch from an address: its bounds, and what an address is."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO

import pytest
import trio
from trio.testing import MockClock

from minicontroller.process.observe.logs import use_format
from minicontroller.security.fetching import FetchError, HttpRequest, Limits, ask, is_address

HEAD = b"HTTP/1.1 200 OK\r\n"
LIMITS = Limits(5, 5, 1000)


@asynccontextmanager
async def sending(start: bytes, part: bytes, pause: float) -> AsyncIterator[str]:
    """A server that sends a start and then the same part without end; yields its address."""

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        data = start
        try:
            while True:
                await stream.send_all(data)
                await trio.sleep(pause)
                data = part
        except trio.BrokenResourceError:
            pass

    async with trio.open_nursery() as nursery:
        listeners: list[trio.SocketListener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/planted"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("start", "part", "pause", "fault"),
    [
        (HEAD, b"X: " + b"x" * 10_000 + b"\r\n", 0.0, "the address does not answer (RemoteProtocolError)"),
        (HEAD + b"\r\n", b"x" * 100, 0.0, "the answer has more than 1000 bytes"),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n", b"x" * 100, 0.0, "the answer has more than 1000 bytes"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.0, "the answer has more than 1000 bytes"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\n" * 2,
            b"HTTP/1.1 100 Continue\r\n\r\n",
            1.0,
            "no answer came within 5 seconds",
        ),
        (HEAD + b"\r\n", b"x", 1.0, "no answer came within 5 seconds"),
        (b"H", b"T", 1.0, "no answer came within 5 seconds"),
        (b"planted\r\n\r\n", b"x", 0.0, "the address does not answer (RemoteProtocolError)"),
    ],
    ids=range(8),
)
async def test_an_answer_without_end_is_not_waited_for(
    start: bytes, part: bytes, pause: float, fault: str, autojump_clock: MockClock
) -> None:
    """Its head, its size and its time are bounded, also while each part of it comes in time."""
    async with sending(start, part, pause) as url:
        began = trio.current_time()
        with pytest.raises(FetchError) as raised:
            await ask(HttpRequest(url), LIMITS)
        assert str(raised.value) == fault
        assert trio.current_time() - began <= LIMITS.connect_seconds + LIMITS.read_seconds


async def test_a_handshake_without_end_is_no_connection(autojump_clock: MockClock) -> None:
    """Who connects and then speaks no TLS is not waited for longer than for a connection."""
    async with sending(b"", b"", 1.0) as url:
        with pytest.raises(FetchError, match="no connection was made within 5 seconds"):
            await ask(HttpRequest(url.replace("http", "https")), LIMITS)


async def test_no_log_has_what_is_sent(monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock) -> None:
    """Neither an address nor a header comes into the log, on its lowest level either."""
    root, written = logging.getLogger(), StringIO()
    monkeypatch.setattr(root, "handlers", [logging.StreamHandler(written)])
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        use_format("human")
        async with sending(HEAD + b"Set-Cookie: planted\r\nContent-Length: 2\r\n\r\nok", b"", 1.0) as url:
            answer = await ask(HttpRequest(url, "POST", [("Authorization", "planted")], b"planted"), LIMITS)
        logging.getLogger("minicontroller").debug("still shown")
    finally:
        root.setLevel(level)
    assert (answer.status, answer.body) == (200, b"ok")
    assert "still shown" in written.getvalue()
    assert "planted" not in written.getvalue()


@pytest.mark.parametrize(
    ("url", "can_be_asked"),
    [
        ("file:///etc/keys", True), ("file:///with blank/\xe4", True), ("file:keys", False),
        ("https://host", True), ("http://[::1]:80/x?y", True), ("https://a.example:65535/", True),
        ("https://", False), ("https:///x", False), ("ftp://host/", False), ("https://user:planted@host/", False),
        ("https://host:0/", False), ("https://host:99999/", False), ("https://host:x/", False), ("https://[::1/", False),
        ("https://host/a b", False), ("https://host/\xe4", False), ("https://\xe4.example/", False),
        ("https://host/\x00", False), ("https://a..b/", False), (f"https://{'a' * 64}/", False),
    ],
)  # fmt: skip
def test_what_is_an_address(url: str, can_be_asked: bool) -> None:
    """What no file or no request can name ends the start, and no task of a node later."""
    assert is_address(url) == can_be_asked
