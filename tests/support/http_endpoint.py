"""A small HTTP server for what nodes fetch: keys and tokens."""

import trio


class Endpoint:
    """An HTTP server that answers each connection with the same bytes, after a while."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.status = "200 OK"
        self.delay = 0.0
        self.fetched = 0
        self.asked = b""
        """What the last connection sent."""
        self.port = 0

    async def serve(self, task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        await trio.serve_listeners(self._answer, listeners, task_status=task_status)

    async def _answer(self, stream: trio.SocketStream) -> None:
        async with stream:
            self.asked = await stream.receive_some()
            self.fetched += 1
            await trio.sleep(self.delay)
            head = f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.body)}\r\n\r\n"
            with trio.move_on_after(5):
                try:
                    await stream.send_all(head.encode() + self.body)
                except trio.BrokenResourceError:
                    return
