"""The public keys of an issuer of tokens, followed in a file or at an address
(`sasl.oauthbearer.jwks.endpoint.url`).

Keys are read by a task, never while a client waits. Keys that were read stay in force while newer
ones cannot be read. A token signed by an unknown key makes the task look sooner, but not often.
"""

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import h11
import msgspec
import trio

from .signed_tokens import MAX_KEY_SET_BYTES, KeySetError, PublicKey, read_key_set

log = logging.getLogger("minicontroller.oauthbearer")

FETCH_SECONDS = 20.0
"""How long fetching the keys may take."""
SOONEST_SECONDS = 10.0
"""How long after the last look unknown keys make the task look again at the soonest."""
READ_BYTES = 64 * 1024
SCHEMES = ("file", "http", "https")
HTTP_PORT, HTTPS_PORT = 80, 443
OK = 200

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class EndpointSettings(msgspec.Struct, frozen=True):
    """Where keys are, and how often they are looked for."""

    url: str
    refresh_ms: int
    retry_ms: int
    max_retry_ms: int

    @property
    def shown(self) -> str:
        """The address without what may be a secret in it."""
        parts = urlsplit(self.url)
        return parts.path if parts.scheme == "file" else f"{parts.scheme}://{parts.hostname}"


class IssuerKeys:
    """The keys of one issuer: `run` follows them."""

    def __init__(self, settings: EndpointSettings) -> None:
        """Prepare to follow the keys. Raises KeySetError for an address that cannot be followed,
        and for a file that has no keys now.
        """
        self._settings = settings
        self._keys: Sequence[PublicKey] = ()
        self._unknown = trio.Event()
        """Set when a token named a key that is not known."""
        parts = urlsplit(settings.url)
        if parts.scheme not in SCHEMES or parts.username is not None or not (parts.path or parts.hostname):
            raise KeySetError("it is no address of the form file:///path or https://host/path without a password")
        self._file = Path(unquote(parts.path)) if parts.scheme == "file" else None
        if self._file is not None:
            self._keys = read_key_set(_content(self._file))

    def named(self, key_id: str | None) -> Sequence[PublicKey]:
        """Return the keys with this id, or all keys for None."""
        found = [key for key in self._keys if key_id is None or key.kid == key_id]
        if not found:
            self._unknown.set()
        return found

    async def run(self) -> None:
        """Follow the keys until cancelled."""
        failures = 0
        while True:
            try:
                self._keys = read_key_set(await self._read())
                failures = 0
            except KeySetError as error:
                failures += 1
                if failures == 1:
                    log.warning(
                        "the keys for tokens cannot be read from %s: %s; trying again", self._settings.shown, error
                    )
            await self._pause(failures)

    async def _pause(self, failures: int) -> None:
        """Wait until the keys are looked for again."""
        settings = self._settings
        if failures:
            await trio.sleep(min(settings.retry_ms << min(failures - 1, 30), settings.max_retry_ms) / 1000)
            return
        now = trio.current_time()
        self._unknown = trio.Event()
        with trio.move_on_after(settings.refresh_ms / 1000):
            await self._unknown.wait()
            await trio.sleep_until(now + SOONEST_SECONDS)

    async def _read(self) -> bytes:
        if self._file is not None:
            return _content(self._file)  # as small as the node's own files
        try:
            with trio.fail_after(FETCH_SECONDS):
                return await _fetched(self._settings.url)
        except trio.TooSlowError:
            raise KeySetError(f"no answer came within {FETCH_SECONDS:.0f} seconds") from None


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_KEY_SET_BYTES + 1)
    except OSError as error:
        raise KeySetError(error.strerror or "it cannot be read") from None


async def _fetched(url: str) -> bytes:
    """Return the body of the answer at an address. Redirections are not followed: whoever answers
    must not choose another address.
    """
    try:
        async with await _connection(urlsplit(url)) as stream:
            return await _body(stream, urlsplit(url))
    except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
        why = error.__cause__ or error
        raise KeySetError(f"the address does not answer ({type(why).__name__})") from None


async def _connection(parts: SplitResult) -> Stream:
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return await trio.open_ssl_over_tcp_stream(
            host, parts.port or HTTPS_PORT, ssl_context=context, https_compatible=True
        )
    return await trio.open_tcp_stream(host, parts.port or HTTP_PORT)


async def _body(stream: Stream, parts: SplitResult) -> bytes:
    """Request the path, and return the body of the answer."""
    http = h11.Connection(h11.CLIENT)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = [("Host", parts.netloc), ("Accept", "application/json"), ("Connection", "close")]
    await stream.send_all(http.send(h11.Request(method="GET", target=target, headers=headers)) or b"")
    body = b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(READ_BYTES)))
        elif isinstance(event, h11.Response) and event.status_code != OK:
            raise KeySetError(f"the answer has the status {event.status_code}")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_KEY_SET_BYTES:
                raise KeySetError(f"the answer has more than {MAX_KEY_SET_BYTES} bytes")
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            return body
