"""The public keys of an issuer of tokens, followed in a file or at an address
(`sasl.oauthbearer.jwks.endpoint.url`).

Keys are read by a task, never while a client waits. Keys that were read stay in force while newer
ones cannot be read. A token signed by an unknown key makes the task look sooner, but not often.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec
import trio

from .fetching import FetchError, HttpRequest, Limits, ask, file_of, is_address, shown
from .signed_tokens import MAX_KEY_SET_BYTES, KeySetError, PublicKey, read_key_set

log = logging.getLogger("minicontroller.oauthbearer")

FETCH_SECONDS = 20.0
"""How long connecting to the address may take, and how long its answer."""
LIMITS = Limits(FETCH_SECONDS, FETCH_SECONDS, MAX_KEY_SET_BYTES)
SOONEST_SECONDS = 10.0
"""How long after the last look unknown keys make the task look again at the soonest."""
OK = 200


class EndpointSettings(msgspec.Struct, frozen=True):
    """Where keys are, and how often they are looked for."""

    url: str
    refresh_ms: int
    retry_ms: int
    max_retry_ms: int

    def __repr__(self) -> str:
        return f"EndpointSettings({shown(self.url)!r})"


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
        if not is_address(settings.url):
            raise KeySetError("it is no address of the form file:///path or https://host/path without a password")
        self._file = file_of(settings.url)
        if self._file is not None:
            self._keys = read_key_set(_content(self._file))

    def named(self, key_id: str | None) -> Sequence[PublicKey]:
        found = [key for key in self._keys if key_id is None or key.kid == key_id]
        if not found:
            self._unknown.set()
        return found

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                self._keys = read_key_set(await self._read())
                failures = 0
            except KeySetError as error:
                failures += 1
                if failures == 1:
                    log.warning(
                        "the keys for tokens cannot be read from %s: %s; trying again", shown(self._settings.url), error
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
            answer = await ask(HttpRequest(self._settings.url), LIMITS)
        except FetchError as error:
            raise KeySetError(str(error)) from None
        if answer.status != OK:
            raise KeySetError(f"the answer has the status {answer.status}")
        return answer.body


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_KEY_SET_BYTES + 1)
    except OSError as error:
        raise KeySetError(error.strerror or "it cannot be read") from None
