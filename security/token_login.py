"""A node's login at other nodes by OAUTHBEARER, with a token from a file or from a token endpoint
(`sasl.oauthbearer.token.endpoint.url`, KIP-768).

A task reads the token anew when its file changes, or fetches the next one before it expires; no
request waits for it. A token stays in use until it expires, while no newer one can be had. Neither
the token nor the secret for it is in a log, an error or a repr.
"""

import base64
import logging
import secrets
from collections.abc import Callable
from urllib.parse import quote_plus

import msgspec
import trio

from ..process.settings.watched_files import LOOK_SECONDS, Content, Contents, WatchedFiles
from ..protocol.errors import ProtocolError
from .credentials import Tokens
from .fetching import FetchError, HttpRequest, Limits, ask, file_of, shown
from .login_token import (
    LoginToken,
    LoginTokenError,
    RefreshRules,
    read_login_token,
    seconds_until_refresh,
    token_of_answer,
)
from .mechanism_keys import OAUTHBEARER
from .oauthbearer import ACKNOWLEDGED
from .signed_tokens import MAX_TOKEN_CHARACTERS

log = logging.getLogger("minicontroller.oauthbearer")

LEAST_RETRY_SECONDS = 0.1
MAX_ANSWER_BYTES = 4 * MAX_TOKEN_CHARACTERS


class ClientSecret(msgspec.Struct, frozen=True):
    """The credentials of a node at a token endpoint: the options `clientId`, `clientSecret` and
    `scope` of the login module.
    """

    client_id: str
    secret: str
    scope: str | None = None
    is_url_encoded: bool = False
    """Whether id and secret are encoded before they are joined, as RFC 6749 demands and Kafka does
    by `sasl.oauthbearer.header.urlencode`.
    """

    def question(self, url: str) -> HttpRequest:
        """Return the request for a token by the grant of client credentials (RFC 6749)."""
        encoded = quote_plus if self.is_url_encoded else str
        proof = base64.b64encode(f"{encoded(self.client_id)}:{encoded(self.secret)}".encode()).decode()
        headers = (
            ("Authorization", f"Basic {proof}"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Cache-Control", "no-cache"),
        )
        scope = f"&scope={quote_plus(self.scope)}" if self.scope else ""
        return HttpRequest(url, "POST", headers, f"grant_type=client_credentials{scope}".encode())

    def __repr__(self) -> str:
        return f"ClientSecret({self.client_id!r})"


class TokenSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node gets its tokens, and how often it tries."""

    url: str
    client: ClientSecret | None = None
    """None for a file."""
    subject_claim: str = "sub"
    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    retry_ms: int = 100
    max_retry_ms: int = 10_000
    refresh: RefreshRules = RefreshRules()

    def __repr__(self) -> str:
        return f"TokenSettings({shown(self.url)!r})"


class TokenLogin:
    """The credentials of a node that logs in by OAUTHBEARER; `run` keeps its token new."""

    mechanism = OAUTHBEARER
    basis: object = None
    """A connection outlives the token with which it was opened by no session, so that a newer token
    makes no new connection.
    """

    def __init__(self, settings: TokenSettings, clock: Callable[[], float]) -> None:
        """`clock` returns the seconds since 1970."""
        self.tried = trio.Event()
        """Set when the first attempt to get a token is over."""
        self._settings = settings
        self._clock = clock
        self._token: LoginToken | None = None
        self._fault = "none was read yet"
        """Why there is no newer token; empty if there is one."""

    @property
    def username(self) -> str:
        """The subject of the token, or an empty text before there was one."""
        return "" if self._token is None else self._token.subject

    def exchange(self) -> Tokens:
        token = self._token
        if token is None or token.expires <= self._clock():
            raise ProtocolError(
                f"this node has no valid token to log in with ({self._shown}: {self._fault or 'the token has expired'})"
            )
        answer = yield f"n,,\x01auth=Bearer {token.text}\x01\x01".encode()
        if answer:
            yield ACKNOWLEDGED  # whereupon the other end says why
            raise ProtocolError("it does not accept the token of this node")

    async def run(self) -> None:
        """Keep the token new until cancelled."""
        file = file_of(self._settings.url)
        if file is not None:
            await self._follow(WatchedFiles([file], max_bytes=MAX_TOKEN_CHARACTERS))
        else:
            await self._fetch()

    async def _follow(self, files: WatchedFiles) -> None:
        contents: Contents | None = await trio.to_thread.run_sync(files.read)
        while True:
            if contents is not None:
                self._use_file(contents[0])
            elif not self._fault and self._has_expired():
                self._note("the token has expired")
            self.tried.set()
            await trio.sleep(LOOK_SECONDS)
            contents = await files.look()

    async def _fetch(self) -> None:
        failures = 0
        while True:
            try:
                self._use(await self._fetched())
            except LoginTokenError as error:
                self._note(str(error))
            self.tried.set()
            failures = failures + 1 if self._fault else 0
            await trio.sleep(self._pause(failures))

    async def _fetched(self) -> str:
        """Return a token from the endpoint. Raises LoginTokenError."""
        settings = self._settings
        assert settings.client is not None
        limits = Limits(settings.connect_seconds, settings.read_seconds, MAX_ANSWER_BYTES)
        try:
            answer = await ask(settings.client.question(settings.url), limits)
        except FetchError as error:
            raise LoginTokenError(str(error)) from None
        return token_of_answer(answer.status, answer.body)

    def _pause(self, failures: int) -> float:
        """Return for how many seconds the endpoint is not asked."""
        settings = self._settings
        if failures or self._token is None:
            pause_ms = min(settings.retry_ms << min(failures - 1, 30), settings.max_retry_ms)
            return max(pause_ms / 1000, LEAST_RETRY_SECONDS)
        return seconds_until_refresh(self._token, settings.refresh, self._clock(), secrets.randbelow(1000) / 1000)

    def _use_file(self, content: Content) -> None:
        try:
            self._use(_text(content))
        except LoginTokenError as error:
            self._note(str(error))

    def _use(self, text: str) -> None:
        """Log in with this token from now on. Raises LoginTokenError."""
        token = read_login_token(text, self._settings.subject_claim, self._clock())
        if self._token is None or self._fault or token.subject != self._token.subject:
            log.info("this node logs in to other nodes as %r, with a token from %s", token.subject, self._shown)
        self._token, self._fault = token, ""

    def _note(self, fault: str) -> None:
        """Note why there is no newer token, and log it unless it is the reason as before."""
        if fault != self._fault:
            self._fault = fault
            log.warning(
                "no new token to log in to other nodes can be had from %s: %s; trying again", self._shown, fault
            )

    @property
    def _shown(self) -> str:
        return shown(self._settings.url)

    def _has_expired(self) -> bool:
        return self._token is not None and self._token.expires <= self._clock()


def _text(content: Content) -> str:
    """Return the text of a file. Raises LoginTokenError."""
    if content.data is None:
        raise LoginTokenError(content.fault)
    if len(content.data) > MAX_TOKEN_CHARACTERS:
        raise LoginTokenError("the token is too long")
    return content.data.decode("ascii", "replace")
