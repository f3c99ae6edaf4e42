"""Speaks HTTP/1.1 on one connection, and passes its requests to an ASGI application.

Rule: a request costs a bounded size and time, whoever sends it. It has to be complete, with its
body, within IDLE_SECONDS; bodies are dropped, because nothing can be changed here. Requests are
answered one after the other, and a mistake ends the connection.
"""

from collections.abc import Iterable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import unquote

import h11
import trio
from starlette.types import ASGIApp, Message, Scope

from ..transport import Disconnected
from .listener import BoundedStream

IDLE_SECONDS = 15.0
"""How long a connection may be open without a complete request."""
MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 16 * 1024

NO_BODY: Message = {"type": "http.request", "body": b"", "more_body": False}
DISCONNECT: Message = {"type": "http.disconnect"}


class HttpConnection:
    """Answers the requests of one connection: `serve` it."""

    def __init__(self, app: ASGIApp, stream: BoundedStream) -> None:
        self._app = app
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._is_gone = False
        """Whether the client takes no more."""
        self._is_head = False
        self._is_received = False
        self._unsent = b""
        """The head of an answer, which is sent with the first part of its body."""

    async def serve(self) -> None:
        """Answer requests until either end wants no more. Raises Disconnected."""
        try:
            while (request := await self._request()) is not None:
                self._is_head, self._is_received = request.method == b"HEAD", False
                await self._app(self._scope(request), self._receive, self._send)
                if self._is_gone or not self._http.our_state is self._http.their_state is h11.DONE:
                    return
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._refuse(error.error_status_hint)

    async def _request(self) -> h11.Request | None:
        """Return the next request once all of it is there; None if none comes. Raises Disconnected
        or RemoteProtocolError.
        """
        request, dropped = None, 0
        with trio.move_on_after(IDLE_SECONDS):
            while not isinstance(event := self._http.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
                if event is h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:  # RFC 9110, section 10.1.1
                        continued = h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[])
                        await self._stream.send(self._encoded(continued))
                    self._http.receive_data(await self._stream.receive())
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    dropped += len(event.data)
                    if dropped > MAX_BODY_BYTES:
                        raise h11.RemoteProtocolError("the body is too long", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return request
        return None

    def _scope(self, request: h11.Request) -> Scope:
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": request.http_version.decode(),
            "method": request.method.decode(),
            "scheme": self._stream.scheme,
            "path": unquote(path.decode()),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "state": {"stream": self._stream},
        }

    async def _receive(self) -> Message:
        """Return the request's body, which is empty, and then wait until the client is gone. A
        client that sends something before it has the whole answer counts as gone, too.
        """
        if not self._is_received:
            self._is_received = True
            return NO_BODY
        if not self._is_gone:
            with suppress(Disconnected):
                await self._stream.receive()
            self._is_gone = True
        return DISCONNECT

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._unsent = self._encoded(_response(message["status"], message["headers"]))
            return
        head, self._unsent = self._unsent, b""
        body = b"" if self._is_head else self._encoded(h11.Data(data=message.get("body", b"")))
        end = b"" if message.get("more_body", False) else self._encoded(h11.EndOfMessage())
        if not self._is_gone:
            try:
                await self._stream.send(head + body + end)
            except Disconnected:
                self._is_gone = True

    async def _refuse(self, status: int) -> None:
        await self._stream.send(
            self._encoded(_response(status, [(b"content-length", b"0"), (b"connection", b"close")]))
        )

    def _encoded(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""


def _response(status: int, headers: Iterable[tuple[bytes, bytes]]) -> h11.Response:
    return h11.Response(status_code=status, headers=[*headers, (b"date", formatdate(usegmt=True).encode())])
