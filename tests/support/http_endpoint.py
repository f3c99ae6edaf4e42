"""A small HTTP server for what nodes fetch: keys and tokens."""

import contextlib
import re
import ssl

import trio


class Endpoint:
    """An HTTP server that answers each connection with the same bytes, after a while."""

    def __init__(self, body: bytes, tls: ssl.SSLContext | None = None) -> None:
        self.body = body
        self._tls = tls
        self.status = "200 OK"
        self.delay = 0.0
        self.fetched = 0
        self.asked = b""
        """The bytes that the last connection sent."""
        self.port = 0

    async def serve(self, task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        await trio.serve_listeners(self._answer, listeners, task_status=task_status)

    async def _answer(self, connection: trio.SocketStream) -> None:
        stream = connection if self._tls is None else trio.SSLStream(connection, self._tls, server_side=True)
        with contextlib.suppress(trio.BrokenResourceError):
            await self._answer_on(stream)

    async def _answer_on(self, stream: trio.abc.Stream) -> None:
        async with stream:
            self.asked = await _request(stream)
            self.fetched += 1
            await trio.sleep(self.delay)
            head = f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.body)}\r\n\r\n"
            with trio.move_on_after(5):
                try:
                    await stream.send_all(head.encode() + self.body)
                except trio.BrokenResourceError:
                    return


async def _request(stream: trio.abc.Stream) -> bytes:
    """Return a whole request, which may come in pieces, or what came before its sender was gone."""
    data = b""
    while (more := await stream.receive_some()) and not _is_whole(data := data + bytes(more)):
        pass
    return data


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
    return bool(end) and len(body) >= (int(length[1]) if length else 0)
