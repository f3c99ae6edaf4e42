"""The protection of the HTTP port: TLS, and a token that requests have to show.

Rule: both are followed while the process runs, by the rule of all watched files: a key store or a
token that cannot be used changes nothing, and the log says why. A token is compared in constant
time, and no text shows any part of it.
"""

import base64
import binascii
import hmac
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import trio

from ...cluster.errors import ConfigurationError
from ...process.settings.node_config import NodeConfig
from ...process.settings.watched_files import LOOK_SECONDS, Contents, WatchedFiles

log = logging.getLogger("minicontroller.http")

KEYSTORE, TOKEN, TOKEN_FILE = "http.ssl.keystore.location", "http.bearer.token", "http.bearer.token.file"
LEAST_TOKEN = 16
"""The shortest token, in characters."""
MAX_FILE_BYTES = 10 * 1024 * 1024
OPEN_PATHS = frozenset({"/health/live", "/health/ready"})
"""Paths that ask for no token, because whoever supervises a process seldom has one."""
CHALLENGE = 'Bearer, Basic realm="minicontroller", charset="UTF-8"'
"""The second one makes browsers ask for a password, which is the token; the user does not count."""

Header = tuple[bytes, bytes]


class HttpProtection:
    """The protection of one port, by the configuration of a node."""

    def __init__(self, config: NodeConfig) -> None:
        """Read the key store and the token. Raises ConfigurationError."""
        self._config = config
        self.context: ssl.SSLContext | None = None
        """The TLS of new connections; None without TLS."""
        self._token: bytes | None = None
        paths = [Path(config.string(key)) for key in self._keys()]
        self._files = WatchedFiles(paths, max_bytes=MAX_FILE_BYTES)
        if config.string(TOKEN) and config.string(TOKEN_FILE):
            raise ConfigurationError(f"{TOKEN} and {TOKEN_FILE} are both set: one of them is enough.")
        self._use(self._files.read())

    def _keys(self) -> Sequence[str]:
        return [key for key in (KEYSTORE, TOKEN_FILE) if self._config.string(key)]

    @property
    def asks_for_a_token(self) -> bool:
        return self._token is not None

    def admits(self, path: str, headers: Sequence[Header]) -> bool:
        return path in OPEN_PATHS or self.knows(headers)

    def knows(self, headers: Sequence[Header]) -> bool:
        """Return whether the sender of a request may learn of the cluster: whoever shows the token,
        or everybody where there is none.
        """
        if self._token is None:
            return True
        shown = [value for name, value in headers if name == b"authorization"]
        return len(shown) == 1 and hmac.compare_digest(_credential(shown[0]), self._token)

    async def follow(self, on_new_token: Callable[[], None]) -> None:
        """Follow the files until cancelled. Calls `on_new_token` when another token is in force."""
        if self._keys():
            await self._files.follow(LOOK_SECONDS, partial(self._take, on_new_token))

    async def _take(self, on_new_token: Callable[[], None], contents: Contents) -> None:
        before = self._token
        try:
            self._use(contents)
        except ConfigurationError as error:
            log.warning("%s What was read before stays in force.", error)
        else:
            log.info("the HTTP port uses its key store and its token as they are now")
        if self._token != before:
            on_new_token()
        await trio.lowlevel.checkpoint()

    def _use(self, contents: Contents) -> None:
        files = {}
        for key, content in zip(self._keys(), contents, strict=True):
            if content.data is None:
                raise ConfigurationError(f"{key} names a file that cannot be read: {content.path}: {content.fault}.")
            files[key] = content.data
        self.context, self._token = self._tls_of(files), self._token_of(files)

    def _tls_of(self, files: Mapping[str, bytes]) -> ssl.SSLContext | None:
        if KEYSTORE not in files:
            return None
        from ...security.tls_settings import TlsFault, make_server_context

        def text(key: str) -> str:
            return self._config.string(f"http.{key}") if f"http.{key}" in OWN_KEYS else ""

        try:
            return make_server_context(text, lambda key: files[f"http.{key}"])[0]
        except TlsFault as fault:
            raise ConfigurationError(f"http.{fault.key} {fault}.") from None

    def _token_of(self, files: Mapping[str, bytes]) -> bytes | None:
        key = TOKEN_FILE if TOKEN_FILE in files else TOKEN
        token = files[key].strip() if key in files else self._config.string(TOKEN).encode()
        if key == TOKEN and not token:
            return None
        if len(token) < LEAST_TOKEN or not token.isascii() or any(byte <= 0x20 for byte in token):
            raise ConfigurationError(
                f"{key} must be at least {LEAST_TOKEN} visible characters of ASCII, such as `openssl rand -hex 32` prints."
            )
        return token


OWN_KEYS = frozenset(
    {
        KEYSTORE,
        "http.ssl.keystore.type",
        "http.ssl.keystore.password",
        "http.ssl.key.password",
    }
)


def _credential(authorization: bytes) -> bytes:
    """Return the token in an Authorization header, or nothing."""
    scheme, _, rest = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() != b"basic":
        return b""
    try:
        return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
