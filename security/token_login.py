"""A node's login at other nodes by OAUTHBEARER, with a token from a file or from a token endpoint
(`sasl.oauthbearer.token.endpoint.url`, KIP-768).

A task reads the token anew when its file changes, or fetches the next one before it expires; no
request waits for it. A token stays in use until it expires, while no newer one can be had. Neither
the token nor the secret for it is in a log, an error or a repr.

A node does not check who signed its own token: the nodes to which it is shown do. It reads from it
only whose it is and how long it counts. No error repeats any part of a token or of an answer.

Kafka's unsecured default, with which a node writes its own token, ends the start, as does every
option that would have no effect.
"""

import base64
import binascii
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus

import msgspec
import trio

from ..clock import now
from ..cluster.errors import ConfigurationError
from ..process.settings.jaas import OAUTHBEARER_LOGIN_MODULE
from ..process.settings.node_config import NodeConfig
from ..process.settings.watched_files import LOOK_SECONDS, Content, Contents, WatchedFiles
from ..protocol.errors import ProtocolError
from .bearer_message import SIGNS
from .credentials import Tokens
from .fetching import FetchError, HttpRequest, Limits, ask, file_of, is_address, shown
from .mechanism_keys import OAUTHBEARER, key_of_mechanism
from .mechanisms import LoginSources
from .oauthbearer import ACKNOWLEDGED
from .signed_tokens import JAVA_SPACES, LAST_SECOND, MAX_TOKEN_CHARACTERS

log = logging.getLogger("minicontroller.oauthbearer")

LEAST_RETRY_SECONDS = 0.1
MAX_ANSWER_BYTES = 4 * MAX_TOKEN_CHARACTERS
MAX_SUBJECT_CHARACTERS = 1000
TOKEN_ERRORS = frozenset(
    {
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""The errors of a token endpoint (RFC 6749). Other texts of its answer are not repeated."""
OK = (200, 201)
HANDLER_KEY = "sasl.login.callback.handler.class"
ENDPOINT_KEY = "sasl.oauthbearer.token.endpoint.url"
OPTIONS = ("clientId", "clientSecret", "scope")


class LoginTokenError(Exception):
    """There is no token to log in with. The message is a phrase for the log."""


class LoginToken(msgspec.Struct, frozen=True):
    """A token, whose it says that it is, and its times in seconds since 1970."""

    text: str
    subject: str
    expires: float
    issued: float | None

    def __repr__(self) -> str:
        return f"LoginToken of {self.subject!r}"


class RefreshRules(msgspec.Struct, frozen=True):
    """When a token is replaced: `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60
    buffer_seconds: float = 300


def read_login_token(text: str, subject_claim: str, now: float) -> LoginToken:
    """Read a token that counts now. Raises LoginTokenError."""
    text = text.strip()
    parts = text.split(".", 3)
    if len(text) > MAX_TOKEN_CHARACTERS:
        raise LoginTokenError("the token is too long")
    if len(parts) != 3 or not all(parts) or not SIGNS.issuperset(text):
        raise LoginTokenError("there is no signed token")
    claims = _claims(parts[1])
    subject, expires, issued = claims.get(subject_claim), _time(claims.get("exp")), _time(claims.get("iat"))
    name = subject.strip(JAVA_SPACES) if isinstance(subject, str) and len(subject) <= MAX_SUBJECT_CHARACTERS else ""
    if not name:
        raise LoginTokenError(f"the token names nobody in its claim {subject_claim}")
    if expires is None:
        raise LoginTokenError("the token does not say when it expires")
    if expires <= now:
        raise LoginTokenError("the token has expired")
    return LoginToken(text, name, expires, issued)


def token_of_answer(status: int, body: bytes) -> str:
    """Return the token in the answer of a token endpoint. Raises LoginTokenError."""
    try:
        answer = msgspec.json.decode(body, type=_EndpointAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = _EndpointAnswer()
    if status not in OK:
        error = f" and the error {answer.error}" if answer.error in TOKEN_ERRORS else ""
        raise LoginTokenError(f"the answer has the status {status}{error}")
    if not answer.access_token:
        raise LoginTokenError("the answer has no access_token")
    return answer.access_token


def seconds_until_refresh(token: LoginToken, rules: RefreshRules, now: float, share: float) -> float:
    """Return after how many seconds a token is replaced; `share`, from 0 to 1, is that of the
    jitter.

    A token that was old when it came is not asked for again and again: at least a tenth of what is
    left of it, and a second, go by.
    """
    left = token.expires - now
    begin = now if token.issued is None else min(token.issued, now)
    wanted = begin + (token.expires - begin) * (rules.window_factor + rules.window_jitter * share)
    if rules.min_period_seconds + rules.buffer_seconds <= left:
        wanted = max(min(wanted, token.expires - rules.buffer_seconds), now + rules.min_period_seconds)
    return max(wanted - now, left / 10, 1.0)


class _EndpointAnswer(msgspec.Struct):
    access_token: str = ""
    error: str = ""


def _claims(part: str) -> dict[str, Any]:
    try:
        content = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(content, type=dict[str, Any])
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise LoginTokenError("there is no signed token") from None


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LAST_SECOND <= value <= LAST_SECOND:
        return None
    return value


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


def token_user(config: NodeConfig, listener: str, sources: LoginSources) -> TokenLogin:
    """Return the credentials of this node at a listener; `sources` gets the task that keeps its
    token new. Raises ConfigurationError.
    """
    handler = key_of_mechanism(config, listener, HANDLER_KEY, OAUTHBEARER)
    if not config.optional_string(handler):
        raise ConfigurationError(
            f"{handler} is missing: without it Kafka's brokers log in with tokens that nobody signed. "
            "Name OAuthBearerLoginCallbackHandler, which gets signed ones."
        )
    address = config.of_listener(listener, ENDPOINT_KEY)
    url = config.string(address)
    if not url:
        raise ConfigurationError(f"{address} is missing: it names where this node gets the token to log in with.")
    if not is_address(url):
        raise ConfigurationError(
            f"{address}: it is no address of the form file:///path or https://host/path without a password."
        )
    login = TokenLogin(_settings(config, listener, url), now)
    sources.follow(login.run, login.tried)
    return login


def _settings(config: NodeConfig, listener: str, url: str) -> TokenSettings:
    def milliseconds(key: str) -> int:
        return config.integer(config.of_listener(listener, key))

    def seconds(key: str, default: float) -> float:
        value = config.optional_integer(config.of_listener(listener, key))
        return default if value is None or value <= 0 else value / 1000

    return TokenSettings(
        url=url,
        client=_client(config, listener, url),
        subject_claim=config.string(config.of_listener(listener, "sasl.oauthbearer.sub.claim.name")),
        connect_seconds=seconds("sasl.login.connect.timeout.ms", TokenSettings.connect_seconds),
        read_seconds=seconds("sasl.login.read.timeout.ms", TokenSettings.read_seconds),
        retry_ms=milliseconds("sasl.login.retry.backoff.ms"),
        max_retry_ms=milliseconds("sasl.login.retry.backoff.max.ms"),
        refresh=_refresh_rules(config, listener),
    )


def _refresh_rules(config: NodeConfig, listener: str) -> RefreshRules:
    return RefreshRules(
        window_factor=config.decimal(config.of_listener(listener, "sasl.login.refresh.window.factor")),
        window_jitter=config.decimal(config.of_listener(listener, "sasl.login.refresh.window.jitter")),
        min_period_seconds=config.integer(config.of_listener(listener, "sasl.login.refresh.min.period.seconds")),
        buffer_seconds=config.integer(config.of_listener(listener, "sasl.login.refresh.buffer.seconds")),
    )


def _client(config: NodeConfig, listener: str, url: str) -> ClientSecret | None:
    """Return what the node shows to a token endpoint; None for a file."""
    key = key_of_mechanism(config, listener, "sasl.jaas.config", OAUTHBEARER)
    jaas = config.jaas(listener, OAUTHBEARER)
    if jaas is not None and jaas.login_module != OAUTHBEARER_LOGIN_MODULE:
        raise ConfigurationError(
            f"{key} names another login module than that of OAUTHBEARER, {OAUTHBEARER_LOGIN_MODULE}."
        )
    options: Mapping[str, str] = {} if jaas is None else jaas.options
    if file_of(url) is not None:
        if options:
            raise ConfigurationError(
                f"{key}: options of the login module have no effect with a token from a file; leave them out."
            )
        return None
    others = [name for name in options if name not in OPTIONS]
    if others:
        raise ConfigurationError(f"{key}: {', '.join(others)} is not followed; the options are {', '.join(OPTIONS)}.")
    if not options.get("clientId") or not options.get("clientSecret"):
        raise ConfigurationError(
            f"{key} needs a clientId and a clientSecret, for which the token endpoint gives tokens."
        )
    return ClientSecret(
        options["clientId"],
        options["clientSecret"],
        options.get("scope") or None,
        is_url_encoded=config.boolean(config.of_listener(listener, "sasl.oauthbearer.header.urlencode")),
    )
