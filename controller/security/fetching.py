"""Asks an HTTP address of the configuration for keys or tokens (KIP-768).

Rule: an answer is bounded in time and size, redirections are not followed, because whoever answers
must not choose another address, and no error repeats any part of a question or an answer.
"""

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import h11
import msgspec
import trio

READ_BYTES = 64 * 1024
SCHEMES = ("file", "http", "https")
HTTP_PORT, HTTPS_PORT = 80, 443
JSON = ("Accept", "application/json")

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class FetchError(Exception):
    """An address gives no answer, or a wrong one. The message is a phrase for the log."""


class Limits(msgspec.Struct, frozen=True):
    """How long connecting may take, how long the answer, and how large it may be."""

    connect_seconds: float
    read_seconds: float
    max_bytes: int


class Question(msgspec.Struct, frozen=True):
    """One request to an address."""

    url: str
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""

    def __repr__(self) -> str:
        return f"Question({self.method} {shown(self.url)})"


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Answer({self.status}, {len(self.body)} bytes)"


def is_address(url: str) -> bool:
    """Return whether a text is of the form file:///path or https://host/path without a password."""
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in SCHEMES
            and parts.username is None
            and parts.port != 0  # which raises ValueError for what is no port
            and bool(parts.path.startswith("/") if parts.scheme == "file" else parts.hostname)
        )
    except ValueError:
        return False


def file_of(url: str) -> Path | None:
    """Return the file that an address names, or None if it names none."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def shown(url: str) -> str:
    """Return an address without the parts of it that may be secret."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "file" else f"{parts.scheme}://{parts.hostname}"


async def ask(question: Question, limits: Limits) -> Answer:
    """Return the answer to a question, whatever its status is. Raises FetchError."""
    parts = urlsplit(question.url)
    try:
        with _at_most(limits.connect_seconds, "no connection was made"):
            stream = await _connection(parts)
        with _at_most(limits.read_seconds, "no answer came"):
            async with stream:
                return await _exchange(stream, question, limits.max_bytes)
    except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError, h11.LocalProtocolError) as error:
        raise FetchError(f"the address does not answer ({_why(error)})") from None


@contextmanager
def _at_most(seconds: float, fault: str) -> Iterator[None]:
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise FetchError(f"{fault} within {seconds:g} seconds") from None


async def _connection(parts: SplitResult) -> Stream:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return await trio.open_tcp_stream(host, parts.port or HTTP_PORT)
    context = await trio.to_thread.run_sync(ssl.create_default_context)  # which reads many certificates
    stream = await trio.open_ssl_over_tcp_stream(
        host, parts.port or HTTPS_PORT, ssl_context=context, https_compatible=True
    )
    try:
        await stream.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return stream


async def _exchange(stream: Stream, question: Question, max_bytes: int) -> Answer:
    http = h11.Connection(h11.CLIENT)
    await stream.send_all(_encoded(http, question))
    status, body = None, bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(READ_BYTES)))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > max_bytes:
                raise FetchError(f"the answer has more than {max_bytes} bytes")
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            if status is None:
                raise FetchError("the connection was closed without an answer")
            return Answer(status, bytes(body))


def _encoded(http: h11.Connection, question: Question) -> bytes:
    parts = urlsplit(question.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = [("Host", parts.netloc), JSON, ("Connection", "close"), *question.headers]
    if question.body:
        headers.append(("Content-Length", str(len(question.body))))
    events = (
        h11.Request(method=question.method, target=target, headers=headers),
        h11.Data(data=question.body),
        h11.EndOfMessage(),
    )
    return b"".join(http.send(event) or b"" for event in events)


def _why(error: BaseException) -> str:
    """Return why an address does not answer, without any text of the other end."""
    causes = error.__cause__
    while isinstance(causes, BaseExceptionGroup):
        causes = causes.exceptions[0]
    cause = causes or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    number = getattr(cause, "errno", None) or 0
    return os.strerror(number) if number > 0 and not isinstance(cause, ssl.SSLError) else type(cause).__name__
