"""The keys that say who clients are, and who the cluster takes them for.

Rule: a key that would be without effect is a mistake, and so is a listener at which nobody could
prove who they are.
"""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from pathlib import Path

import msgspec

from ...client.configuration import ClientConfig, configure, parse_addresses
from ...controller.config.keys import KEYS
from ...controller.errors import ConfigurationError
from ...controller.security.scram_credentials import HASHES
from .sight import SUBJECT_CLAIM

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
GATEWAY_KEYS = frozenset({IDENTITY, CREDENTIALS_FILE, SCRAM_FILE, CLAIM})
MISSING_USERS = (
    f"{CREDENTIALS_FILE} is missing: it names the user of the brokers for each client, "
    "because the brokers ask for a login."
)
NOBODY = (
    "security.protocol must be SASL_PLAINTEXT, SASL_SSL, or SSL with ssl.client.auth=required: "
    "nobody could prove to the gateway who they are."
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
    """Whether a key belongs to this module."""
    return key in GATEWAY_KEYS or key in OWN_LOGIN_KEYS or key.startswith((OF_LISTENER, CONTROLLER, f"{CONTROLLERS}"))


def is_of_clients(key: str) -> bool:
    """Whether a key says how clients log in at the gateway, in the words of a node."""
    return key in OWN_LOGIN_KEYS or key == CLAIM or key.startswith(OF_LISTENER)


def read_identity(keys: Mapping[str, str], upstream: Mapping[str, str]) -> IdentitySettings:
    """Read the keys of a gateway; `upstream` are those for brokers, without their beginning. Raises
    ConfigurationError.
    """
    text = _texts(keys)
    mode = _mode(text(IDENTITY))
    _check_effect(mode, keys)
    has_login = upstream.get("security.protocol", "").strip().upper().startswith("SASL")
    if mode is Mode.PASS:
        return IdentitySettings(subject_claim=text(CLAIM) or SUBJECT_CLAIM, brokers_ask=has_login)
    _check_listener(text)
    file = text(CREDENTIALS_FILE)
    if mode is Mode.MAP and not has_login:
        raise ConfigurationError(
            f"{IDENTITY}={mode.value} needs a login at the brokers, by upstream.security.protocol."
        )
    if has_login and not file:
        raise ConfigurationError(MISSING_USERS)
    if file and not has_login:
        raise ConfigurationError(f"{CREDENTIALS_FILE} is without effect: the brokers ask for no login.")
    mechanism = upstream.get("sasl.mechanism", "").strip()
    return IdentitySettings(
        mode=mode,
        brokers_ask=has_login,
        credentials_file=Path(file) if file else None,
        scram_file=_scram_file(keys, text),
        scram_upstream=mechanism if mechanism in HASHES else "SCRAM-SHA-512",
        controllers=_controllers(keys, upstream) if mode is Mode.ENVELOPE else None,
    )


def _texts(keys: Mapping[str, str]) -> Callable[[str], str]:
    return lambda key: keys.get(key, "").strip()


def _mode(text: str) -> Mode:
    try:
        return Mode(text or Mode.PASS.value)
    except ValueError:
        raise ConfigurationError(f"{IDENTITY} must be one of {', '.join(each.value for each in Mode)}.") from None


def _check_effect(mode: Mode, keys: Collection[str]) -> None:
    """Raise ConfigurationError for keys that would be without effect."""
    for key in sorted(keys):
        is_own = key in (CREDENTIALS_FILE, SCRAM_FILE) or (is_of_clients(key) and key != CLAIM)
        if mode is Mode.PASS and is_own:
            raise ConfigurationError(
                f"{key} is without effect with {IDENTITY}={mode.value}: clients log in at the brokers."
            )
        if mode is not Mode.ENVELOPE and (key == CONTROLLERS or key.startswith(CONTROLLER)):
            raise ConfigurationError(f"{key} is without effect with {IDENTITY}={mode.value}.")


def _check_listener(text: Callable[[str], str]) -> None:
    protocol = text("security.protocol").upper()
    by_certificate = protocol == "SSL" and text("ssl.client.auth").lower() == "required"
    if not protocol.startswith("SASL") and not by_certificate:
        raise ConfigurationError(NOBODY)


def _scram_file(keys: Mapping[str, str], text: Callable[[str], str]) -> Path | None:
    enabled = {
        name.strip()
        for key, value in keys.items()
        if key.endswith("sasl.enabled.mechanisms")
        for name in value.split(",")
    }
    offers = text("security.protocol").upper().startswith("SASL") and not enabled.isdisjoint(HASHES)
    file = text(SCRAM_FILE)
    if offers and not file:
        raise ConfigurationError(f"{SCRAM_FILE} is missing: it names the users who log in by SCRAM.")
    if file and not offers:
        raise ConfigurationError(f"{SCRAM_FILE} is without effect: sasl.enabled.mechanisms names no SCRAM.")
    return Path(file) if file else None


def _controllers(keys: Mapping[str, str], upstream: Mapping[str, str]) -> ClientConfig:
    servers = keys.get(CONTROLLERS, "")
    if not servers.strip():
        raise ConfigurationError(f"{CONTROLLERS} is missing: it lists controllers of the cluster as HOST:PORT.")
    parse_addresses(servers)
    own = {key.removeprefix(CONTROLLER): value for key, value in keys.items() if key.startswith(CONTROLLER)}
    return configure({**upstream, **own, "bootstrap.servers": servers})
