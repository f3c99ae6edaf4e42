"""The keys that say who clients are, and who the cluster takes them for.

Rule: a key that would be without effect is a mistake, and so is a listener at which nobody could
prove who they are.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path

import msgspec

from ...client.configuration import ClientConfig, configured
from ...client.keys import LOGIN_KEYS, TLS_KEYS
from ...client.properties import ClientProperties, PropertyEntry
from ...process.settings.keys import KEYS
from ...security.scram_credentials import HASHES
from ..written_keys import WrittenKeys
from .sight import SUBJECT_CLAIM
from .user_files import check_scram_users, check_upstream_users

IDENTITY = "identity"
CREDENTIALS_FILE = "identity.credentials.file"
SCRAM_FILE = "identity.scram.file"
CLAIM = "sasl.oauthbearer.sub.claim.name"
CONTROLLERS = "upstream.controllers"
CONTROLLER = "upstream.controller."
"""How the keys begin that hold for connections to controllers, in place of those for brokers."""
UPSTREAM = "upstream."
OF_LISTENER = "listener.name.clients."
OWN_LOGIN_KEYS = frozenset(
    {
        "sasl.enabled.mechanisms",
        "connections.max.reauth.ms",
        "connection.failed.authentication.delay.ms",
        *(key for key in KEYS if key.startswith("sasl.oauthbearer.") and key != CLAIM),
    }
)
"""The keys of a node that say how clients log in at the gateway."""
GATEWAY_KEYS = frozenset({IDENTITY, CREDENTIALS_FILE, SCRAM_FILE, CLAIM, CONTROLLERS})
SECURITY_PROTOCOL, CLIENT_AUTH = "security.protocol", "ssl.client.auth"
MECHANISMS = "sasl.enabled.mechanisms"
MISSING_USERS = (
    f"{CREDENTIALS_FILE} is missing: the brokers ask for a login, and this file names the user for each client."
)
NOBODY = (
    "security.protocol must be SASL_PLAINTEXT, SASL_SSL, or SSL with ssl.client.auth=required: "
    "otherwise no client could authenticate at the gateway."
)


class Mode(Enum):
    """The value of `identity`."""

    PASS = "pass"  # noqa: S105 - a mode
    ENVELOPE = "envelope"
    MAP = "map"


class IdentitySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who authenticates clients, and as whom requests go to the cluster."""

    mode: Mode = Mode.PASS
    subject_claim: str = SUBJECT_CLAIM
    """The claim that names the user in tokens of OAUTHBEARER, where logins pass."""
    brokers_ask: bool = False
    """Whether brokers ask for a login."""
    credentials_file: Path | None = None
    """The credentials at the brokers by users; None where brokers ask for no login."""
    scram_file: Path | None = None
    """The users who log in at the gateway by SCRAM."""
    scram_upstream: str = "SCRAM-SHA-512"
    """The mechanism of users who log in at the brokers by SCRAM."""
    controllers: ClientConfig | None = None
    """How the controllers of the cluster are reached; only with `Mode.ENVELOPE`."""

    @property
    def is_own(self) -> bool:
        """Whether the gateway authenticates clients itself."""
        return self.mode is not Mode.PASS


def is_key(key: str) -> bool:
    return key in GATEWAY_KEYS or key in OWN_LOGIN_KEYS or key.startswith((OF_LISTENER, CONTROLLER))


def is_of_clients(key: str) -> bool:
    """Whether a key says how clients log in at the gateway, in the words of a node."""
    return key in OWN_LOGIN_KEYS or key == CLAIM or key.startswith(OF_LISTENER)


def of_brokers(keys: WrittenKeys) -> ClientProperties:
    return ClientProperties(_of_client(keys, UPSTREAM), prefix=UPSTREAM)


def _of_controllers(keys: WrittenKeys) -> ClientProperties:
    return ClientProperties({**_of_client(keys, UPSTREAM), **_of_client(keys, CONTROLLER)}, prefix=UPSTREAM)


def _of_client(keys: WrittenKeys, prefix: str) -> dict[str, PropertyEntry]:
    return {
        key.removeprefix(prefix): PropertyEntry(key, keys.text(key))
        for key in keys
        if key.startswith(prefix) and (prefix == CONTROLLER or not is_key(key))
    }


def read_identity(keys: WrittenKeys) -> IdentitySettings:
    """Read the keys of a gateway, and note their mistakes."""
    mode = Mode(keys.one_of(IDENTITY, [each.value for each in Mode]))
    if not keys.are_certain(IDENTITY):
        return IdentitySettings()
    for sentence in _without_effect(mode, keys):
        keys.note(sentence)
    has_login = of_brokers(keys).text(SECURITY_PROTOCOL).upper().startswith("SASL")
    if mode is Mode.PASS:
        return IdentitySettings(subject_claim=keys.text(CLAIM) or SUBJECT_CLAIM, brokers_ask=has_login)
    for sentence in (*_of_listener(keys), *_of_login(mode, keys, has_login=has_login), *_of_scram(keys)):
        keys.note(sentence)
    file, scram = keys.text(CREDENTIALS_FILE), keys.text(SCRAM_FILE)
    mechanism = keys.text(f"{UPSTREAM}sasl.mechanism")
    return IdentitySettings(
        mode=mode,
        brokers_ask=has_login,
        credentials_file=Path(file) if file else None,
        scram_file=Path(scram) if scram else None,
        scram_upstream=mechanism if mechanism in HASHES else "SCRAM-SHA-512",
        controllers=_controllers(keys) if mode is Mode.ENVELOPE else None,
    )


def checks_of_users(settings: IdentitySettings) -> Iterator[Callable[[], object]]:
    """Yield what reads the files of users; each raises ConfigurationError with all mistakes of its
    file.
    """
    if settings.credentials_file is not None:
        yield partial(check_upstream_users, settings.credentials_file)
    if settings.scram_file is not None:
        yield partial(check_scram_users, settings.scram_file)


# ------------------------------------------------------------------ mistakes


def without_protocol(keys: WrittenKeys) -> Iterator[str]:
    """Yield a sentence for each key of TLS or of a login at brokers or controllers that ask for
    none by `security.protocol`.
    """
    if not keys.are_certain(IDENTITY, UPSTREAM + SECURITY_PROTOCOL, CONTROLLER + SECURITY_PROTOCOL):
        return
    has_controllers = keys.text(IDENTITY).lower() == Mode.ENVELOPE.value
    controllers = _of_controllers(keys).text(SECURITY_PROTOCOL).upper() if has_controllers else ""
    protocols = {UPSTREAM: (of_brokers(keys).text(SECURITY_PROTOCOL).upper(), controllers), CONTROLLER: (controllers,)}
    for prefix, named in protocols.items():
        for what, part, names in (("TLS", "SSL", TLS_KEYS), ("login", "SASL", LOGIN_KEYS)):
            for key in sorted(prefix + name for name in names):
                if key in keys and not any(part in protocol for protocol in named):
                    yield f"{key} is without effect: {prefix}{SECURITY_PROTOCOL} says that connections have no {what}."


def _without_effect(mode: Mode, keys: WrittenKeys) -> Iterator[str]:
    for key in sorted(keys):
        is_own = key in (CREDENTIALS_FILE, SCRAM_FILE) or (is_of_clients(key) and key != CLAIM)
        if mode is Mode.PASS and is_own:
            yield f"{key} is without effect with {IDENTITY}={mode.value}: clients log in at the brokers."
        if mode is not Mode.ENVELOPE and (key == CONTROLLERS or key.startswith(CONTROLLER)):
            yield f"{key} is without effect with {IDENTITY}={mode.value}."


def _of_listener(keys: WrittenKeys) -> Iterator[str]:
    protocol = keys.text(SECURITY_PROTOCOL).upper()
    by_certificate = protocol == "SSL" and keys.text(CLIENT_AUTH).lower() == "required"
    if keys.are_certain(SECURITY_PROTOCOL, CLIENT_AUTH) and not protocol.startswith("SASL") and not by_certificate:
        yield NOBODY


def _of_login(mode: Mode, keys: WrittenKeys, *, has_login: bool) -> Iterator[str]:
    if not keys.are_certain(f"{UPSTREAM}{SECURITY_PROTOCOL}"):
        return
    file = keys.text(CREDENTIALS_FILE)
    if mode is Mode.MAP and not has_login:
        yield f"{IDENTITY}={mode.value} needs a login at the brokers, by {UPSTREAM}{SECURITY_PROTOCOL}."
    elif has_login and not file:
        yield MISSING_USERS
    elif file and not has_login:
        yield f"{CREDENTIALS_FILE} is without effect: the brokers ask for no login."


def _of_scram(keys: WrittenKeys) -> Iterator[str]:
    enabled = {name.strip() for key in keys if key.endswith(MECHANISMS) for name in keys.text(key).split(",")}
    offers = keys.text(SECURITY_PROTOCOL).upper().startswith("SASL") and not enabled.isdisjoint(HASHES)
    file = keys.text(SCRAM_FILE)
    if not keys.are_certain(SECURITY_PROTOCOL):
        return
    if offers and not file:
        yield f"{SCRAM_FILE} is missing: it names the users who log in by SCRAM."
    if file and not offers:
        yield f"{SCRAM_FILE} is without effect: {MECHANISMS} names no SCRAM."


def _controllers(keys: WrittenKeys) -> ClientConfig | None:
    servers = keys.text(CONTROLLERS)
    if not servers:
        keys.note(f"{CONTROLLERS} is missing: it lists controllers of the cluster as HOST:PORT.")
        return None
    return keys.read(partial(configured, _of_controllers(keys), servers, CONTROLLERS), None)
