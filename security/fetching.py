"""Asks an HTTP address of the configuration for keys or tokens (KIP-768).

Rule: an answer is bounded in time and size, redirections are not followed, because whoever answers
must not choose another address, and no error repeats any part of a question or an answer.
"""

import os
import ssl
from collections.abc import AsyncIterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import trio

SCHEMES = ("file", "http", "https")
JSON = ("Accept", "application/json")


class FetchError(Exception):
    """An address gives no answer, or a wrong one. The message is a phrase for the log."""


class Limits(msgspec.Struct, frozen=True):
    """How long connecting may take, how long the answer, and how large it may be."""

    connect_seconds: float
    read_seconds: float
    max_bytes: int


class HttpRequest(msgspec.Struct, frozen=True):
    url: str
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {shown(self.url)})"


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
            and parts.port != 0
            and (parts.path.startswith("/") if parts.scheme == "file" else _can_be_asked(url))
        )
    except ValueError:  # for what is no port
        return False


def _can_be_asked(url: str) -> bool:
    """Return whether HTTP can carry an address. Raises ValueError for what no host can be named."""
    host = (urlsplit(url).hostname or "").encode("idna")
    return bool(host) and url.isascii() and url.isprintable() and " " not in url


def file_of(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def shown(url: str) -> str:
    """Return an address without the parts of it that may be secret."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "file" else f"{parts.scheme}://{parts.hostname}"


async def ask(request: HttpRequest, limits: Limits) -> Answer:
    """Return the answer to a request, whatever its status is. Raises FetchError."""
    import httpcore  # slow to import, and most processes fetch nothing

    url = httpcore.URL(request.url)
    secure = url.scheme == b"https"
    context = await trio.to_thread.run_sync(ssl.create_default_context) if secure else None  # reads many certificates
    timeouts = {"connect": limits.connect_seconds, "read": limits.read_seconds, "write": limits.read_seconds}
    try:
        with trio.fail_after(limits.connect_seconds + limits.read_seconds):
            async with (
                httpcore.AsyncHTTPConnection(url.origin, context, network_backend=httpcore.TrioBackend()) as connection,
                connection.stream(
                    request.method,
                    url,
                    headers=[("Host", urlsplit(request.url).netloc), JSON, ("Connection", "close"), *request.headers],
                    content=request.body or None,
                    extensions={"timeout": timeouts},
                ) as response,
            ):
                return Answer(response.status, await _at_most(limits.max_bytes, response.aiter_stream()))
    except httpcore.ConnectTimeout:
        raise FetchError(f"no connection was made within {limits.connect_seconds:g} seconds") from None
    except (httpcore.TimeoutException, trio.TooSlowError):
        raise FetchError(f"no answer came within {limits.read_seconds:g} seconds") from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchError(f"the address does not answer ({_why(error)})") from None


async def _at_most(max_bytes: int, parts: AsyncIterable[bytes]) -> bytes:
    body = bytearray()
    with trio.CancelScope() as scope:
        async for part in parts:
            body += part
            if len(body) > max_bytes:
                scope.cancel()  # leaving the loop would abandon httpcore's generators
    if len(body) > max_bytes:
        raise FetchError(f"the answer has more than {max_bytes} bytes")
    return bytes(body)


def _why(error: BaseException) -> str:
    """Return why an address does not answer, without any text of the other end."""
    causes = list(_causes(error))
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno and cause.errno > 0:
            return os.strerror(cause.errno)
    return type(causes[-1]).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__
