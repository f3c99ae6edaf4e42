"""Makes contexts of TLS from Kafka's keys, `ssl.*`, for clients and for listeners alike.

Rule: a file means the same as to Java, and so does a value. Where the values come from (a client's
file, a node's configuration with the prefix of a listener) is the caller's business: a fault names
the key without a prefix, and never shows a value that is secret.
"""

import ssl
from collections.abc import Callable

from .key_stores import (
    JKS,
    KINDS,
    PEM,
    Certificates,
    KeyPasswordError,
    KeyStore,
    KeyStoreError,
    read_key_store,
    read_trust_store,
    show,
    trust,
)
from .tls_options import set_cipher_suites, set_versions

TRUSTSTORE = "ssl.truststore.location"
TRUSTED = "ssl.truststore.certificates"
KEYSTORE = "ssl.keystore.location"
CHAIN, KEY = "ssl.keystore.certificate.chain", "ssl.keystore.key"
KEY_PASSWORD = "ssl.key.password"  # noqa: S105 - the key's name
ENABLED = "ssl.enabled.protocols"
SUITES = "ssl.cipher.suites"
NAME_CHECK = "ssl.endpoint.identification.algorithm"
CLIENT_AUTH = "ssl.client.auth"

STORE_KEYS = frozenset(
    {
        KEYSTORE,
        CHAIN,
        KEY,
        KEY_PASSWORD,
        TRUSTSTORE,
        TRUSTED,
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
KEYS = STORE_KEYS | {ENABLED, SUITES, NAME_CHECK, CLIENT_AUTH}
"""Every key that this module reads."""
CLIENT_AUTHS = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

Text = Callable[[str], str]
"""Returns the value of a key without a prefix, empty if it is not set."""
Read = Callable[[str], bytes]
"""Returns the content of the file that a key names."""


class TlsFault(ValueError):  # noqa: N818 - it is what is wrong with a configuration
    """TLS is configured wrongly. The text continues a sentence that begins with the key."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def make_client_context(text: Text, read: Read) -> ssl.SSLContext:
    """Make the TLS context of an end that connects. Raises TlsFault, and what `read` raises."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_names(text)
    _limit(context, text)
    trusted = trusted_certificates(text, read)
    _trust(context, trusted)
    store = own_key_store(text, read)
    if store is not None:
        _show(context, store, text)
    return context


def make_server_context(text: Text, read: Read) -> tuple[ssl.SSLContext, KeyStore]:
    """Make the TLS context of a listener. Return it with what the listener shows. Raises TlsFault,
    and what `read` raises.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # connections are few and long, and a session would outlive a client's certificate
    _limit(context, text)
    store = own_key_store(text, read)
    if store is None:
        raise TlsFault(KEYSTORE, "is missing: it names the private key and the certificate of the listener")
    _show(context, store, text)
    auth = text(CLIENT_AUTH) or "none"
    if auth not in CLIENT_AUTHS:
        raise TlsFault(CLIENT_AUTH, f"is one of {', '.join(CLIENT_AUTHS)}")
    if auth != "none":
        _trust(context, trusted_certificates(text, read))
    context.verify_mode = CLIENT_AUTHS[auth]
    return context, store


def checks_names(text: Text) -> bool:
    algorithm = text(NAME_CHECK)
    if algorithm.lower() not in ("", "https"):
        raise TlsFault(NAME_CHECK, "is https, or empty for no look at the names in certificates")
    return bool(algorithm)


def _limit(context: ssl.SSLContext, text: Text) -> None:
    for key, limit in ((ENABLED, set_versions), (SUITES, set_cipher_suites)):
        try:
            limit(context, words(text(key)))
        except ValueError as error:
            raise TlsFault(key, str(error)) from None


def words(text: str) -> list[str]:
    return [word for word in (word.strip() for word in text.split(",")) if word]


def _trust(context: ssl.SSLContext, trusted: Certificates | None) -> None:
    if trusted is None:
        context.load_default_certs(
            ssl.Purpose.SERVER_AUTH if context.protocol is ssl.PROTOCOL_TLS_CLIENT else ssl.Purpose.CLIENT_AUTH
        )
    else:
        trust(context, trusted)


def _show(context: ssl.SSLContext, store: KeyStore, text: Text) -> None:
    try:
        show(context, store)
    except KeyStoreError as error:
        raise TlsFault(KEYSTORE if text(KEYSTORE) else CHAIN, str(error)) from None


# ------------------------------------------------------------------ stores


def trusted_certificates(text: Text, read: Read) -> Certificates | None:
    """Return the certificates in the trust store, or None if there is none, so that the system's
    authorities are trusted.
    """
    key = _which(text, TRUSTSTORE, TRUSTED)
    if key is None:
        return None
    content = read(key) if key == TRUSTSTORE else text(key).encode()
    kind = _kind(text, TRUSTSTORE, key)
    try:
        return read_trust_store(content, kind, text("ssl.truststore.password"), text(TRUSTSTORE))
    except KeyStoreError as error:
        raise TlsFault(key, str(error)) from None


def own_key_store(text: Text, read: Read) -> KeyStore | None:
    key = _which(text, KEYSTORE, CHAIN)
    if key is None:
        if text(KEY):
            raise TlsFault(KEY, f"has no certificate beside it: {CHAIN} is missing")
        return None
    content = read(key) if key == KEYSTORE else f"{text(KEY)}\n{text(CHAIN)}".encode()
    kind = _kind(text, KEYSTORE, key)
    try:
        return read_key_store(content, kind, text("ssl.keystore.password"), text(KEY_PASSWORD), text(KEYSTORE))
    except KeyPasswordError as error:
        raise TlsFault(KEY_PASSWORD, str(error)) from None
    except KeyStoreError as error:
        beside = f", the key beside it in {KEY}" if key == CHAIN and not text(KEY) else ""
        raise TlsFault(key, f"{error}{beside}") from None


def _which(text: Text, location: str, inline: str) -> str | None:
    """Return which of the two keys has a store; None if there is none."""
    present = [key for key in (location, inline) if text(key)]
    if len(present) == 2:
        raise TlsFault(inline, f"and {location} are both set: one of them is enough")
    return present[0] if present else None


def _kind(text: Text, location: str, key: str) -> str:
    """Return the type of a store. What stands in the configuration itself is in PEM."""
    type_key = location.replace(".location", ".type")
    kind = (text(type_key) or JKS).upper()
    if key != location and kind != PEM:
        raise TlsFault(type_key, f"must be {PEM}, since {key} is set")
    if kind not in KINDS:
        raise TlsFault(type_key, f"must be one of {', '.join(KINDS)}: no other kind of store is read here")
    return kind
