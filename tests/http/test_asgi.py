"""One connection of the HTTP port, with an application that shows what reaches it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from starlette.types import Receive, Scope, Send
from trio.testing import MockClock

from minicontroller.network.http.asgi import IDLE_SECONDS, HttpConnection
from minicontroller.network.http.listener import STALL_SECONDS, BoundedStream
from minicontroller.network.transport import Disconnected, SocketTransport
from minicontroller.process.observe.logs import ClientWarnings

HOST = b"Host: localhost\r\n"
GET = b"GET /path%20with?a=b HTTP/1.1\r\n" + HOST
END = b"\r\n"


class App:
    """Answers with the request's method, path and query, or streams until its client is gone."""

    def __init__(self) -> None:
        self.received: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.received.append((await receive())["type"])
        if scope["path"] == "/broken":
            raise LookupError
        text = f"<{scope['method']} {scope['path']} {scope['query_string'].decode()}>".encode()
        streams = scope["path"] in {"/stream", "/flood"}
        headers = [] if streams else [(b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text, "more_body": streams})
        if scope["path"] == "/flood":
            await send({"type": "http.response.body", "body": bytes(10_000_000), "more_body": True})
        if streams:
            self.received.append((await receive())["type"])


@asynccontextmanager
async def served(app: App) -> AsyncIterator[trio.SocketStream]:
    """A client's end of a connection that is served."""
    ours, theirs = trio.socket.socketpair()
    stream = BoundedStream(SocketTransport(trio.SocketStream(ours)), ClientWarnings())

    async def serve() -> None:
        try:
            await HttpConnection(app, stream).serve()
        finally:
            stream.close()

    async with trio.open_nursery() as nursery, trio.SocketStream(theirs) as client:
        nursery.start_soon(serve)
        yield client


async def rest(client: trio.SocketStream) -> bytes:
    """Return what comes until the other end closes the connection."""
    return b"".join([bytes(part) async for part in client])


async def test_requests_are_answered_in_their_order() -> None:
    """Whether they come together or in pieces; a body is dropped, and HEAD has an answer without
    one.
    """
    async with served(App()) as client:
        head = b"HEAD /head HTTP/1.1\r\n" + HOST + END
        with_body = b"GET /body HTTP/1.1\r\n" + HOST + b"Content-Length: 16\r\n" + END + b"GET /not HTTP/1."
        last = b"GET /last HTTP/1.1\r\nConnection: close\r\n" + HOST + END
        for byte in GET + END:
            await client.send_all(bytes([byte]))
        await client.send_all(head + with_body + last)
        text = (await rest(client)).decode()
    assert text.count("HTTP/1.1 200") == text.count("date: ") == 4
    answers = [part.partition("\r\n\r\n")[2] for part in text.split("HTTP/1.1 200")[1:]]
    assert answers == ["<GET /path with a=b>", "", "<GET /body >", "<GET /last >"]
    assert "content-length: 12\r\n" in text  # of HEAD


async def test_a_client_that_asks_first_may_send_its_body() -> None:
    """As RFC 9110, section 10.1.1, demands, and one that sends the body at once is not held up."""
    head = b"POST /body HTTP/1.1\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n" + HOST + END
    async with served(App()) as client:
        await client.send_all(head)
        assert (await client.receive_some()).startswith(b"HTTP/1.1 100 ")
        await client.send_all(b"abc")
        assert (await rest(client)).startswith(b"HTTP/1.1 200 ")
    async with served(App()) as client:
        await client.send_all(head + b"abc")
        assert b"HTTP/1.1 200 " in await rest(client)


@pytest.mark.parametrize("lines", [END, END * 2, END * 100, b"\n\n"])
async def test_empty_lines_before_the_first_request_are_ignored(lines: bytes) -> None:
    """As RFC 9112, section 2.2, asks for, whether they come with the request or by themselves."""
    for parts in (
        [lines + GET + END],
        [*(bytes([byte]) for byte in lines), GET, END],
        [lines + GET[:1], GET[1:] + END],
    ):
        async with served(App()) as client:
            for part in parts:
                await client.send_all(part)
            await client.send_eof()
            assert (await rest(client)).count(b"HTTP/1.1 200") == 1


async def test_an_older_client_gets_one_answer() -> None:
    """HTTP/1.0 has neither chunks nor, here, a second request."""
    async with served(App()) as client:
        await client.send_all(b"GET /old HTTP/1.0\r\n\r\n" * 2)
        text = await rest(client)
    assert text.count(b"HTTP/1.1 200") == 1
    assert b"Connection: close" in text


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000, b"431"),
        (b"GET /" + b"x" * 20_000, b"431"),
        (GET + b"Content-Length: 20000\r\n" + END + bytes(20_000), b"413"),
        (GET + b"Transfer-Encoding: chunked\r\n" + END + b"2710\r\n" + bytes(10_000) + b"\r\n", None),
        (GET + b"Transfer-Encoding: chunked\r\n" + END + (b"2710\r\n" + bytes(10_000) + b"\r\n") * 2, b"413"),
        (GET + b"Transfer-Encoding: chunked\r\n" + END + b"zz\r\n", b"400"),
        (GET + HOST + END, b"400"),
        (b"GET /\xff HTTP/1.1\r\n" + HOST + END, b"400"),
        (b"planted\r\n\r\n", b"400"),
        (GET[:20], None),
        (b"", None),
    ],
    ids=range(11),
)
async def test_a_request_is_bounded(data: bytes, status: bytes | None, autojump_clock: MockClock) -> None:
    """In size, with a status that says so, and in time, without any answer."""
    app, began = App(), trio.current_time()
    async with served(app) as client:
        await client.send_all(data)
        text = await rest(client)
    assert text.startswith(b"" if status is None else b"HTTP/1.1 " + status)
    assert bool(text) == (status is not None)
    assert trio.current_time() - began == (IDLE_SECONDS if status is None else 0)
    assert not app.received


@pytest.mark.parametrize("more", [b"", GET + END])
async def test_an_answer_without_end_ends_with_its_client(more: bytes) -> None:
    """A client that closes its connection, or asks for something else, wants no more of it."""
    app = App()
    async with served(app) as client:
        await client.send_all(b"GET /stream HTTP/1.1\r\n" + HOST + END)
        text = b""
        while b"<GET /stream >" not in text:
            text += bytes(await client.receive_some())
        await (client.send_all(more) if more else client.send_eof())
        assert await rest(client) == b""
    assert app.received == ["http.request", "http.disconnect"]


async def test_a_client_that_takes_nothing_is_disconnected(autojump_clock: MockClock) -> None:
    """The application goes on as if it were heard, and learns that nobody is there."""
    app, began = App(), trio.current_time()
    async with served(app) as client:
        await client.send_all(b"GET /flood HTTP/1.1\r\n" + HOST + END)
        await trio.sleep(STALL_SECONDS + 1)
        assert app.received == ["http.request", "http.disconnect"]
        assert len(await rest(client)) < 10_000_000
    assert trio.current_time() - began == STALL_SECONDS + 1


async def test_errors_are_the_listeners() -> None:
    """It logs those of the application, and ends the connection; it expects Disconnected."""
    ours, theirs = trio.socket.socketpair()
    stream = BoundedStream(SocketTransport(trio.SocketStream(ours)), ClientWarnings())
    await theirs.send(b"GET /broken HTTP/1.1\r\n" + HOST + END)
    with pytest.raises(LookupError):
        await HttpConnection(App(), stream).serve()
    theirs.close()
    stream.close()
    with pytest.raises(Disconnected):
        await HttpConnection(App(), stream).serve()
