"""TLS by Kafka's own client keys (`ssl.*`), with stores in PEM (KIP-651).

Rule: a file means the same as to Java: every certificate in a truststore is trusted as it is, a
chain begins with the client's own certificate, and without a truststore the system's authorities
are trusted. Java's own formats are refused with the command that converts them to PEM.
"""

import re
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .keys import CHAIN, ENABLED, KEY, KEY_PASSWORD, KEYSTORE, NAME_CHECK, TRUSTED, TRUSTSTORE
from .properties import ClientProperties

PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
LINE = 64  # RFC 7468
LABEL = re.compile(r"[A-Z0-9 ]++")
CERTIFICATE = "CERTIFICATE"
PROTOCOLS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

TO_PEM = {
    (TRUSTSTORE, JKS): "keytool -list -rfc -keystore {0} > {0}.pem",
    (TRUSTSTORE, PKCS12): "keytool -list -rfc -keystore {0} > {0}.pem",
    (KEYSTORE, JKS): "keytool -importkeystore -srckeystore {0} -destkeystore {0}.p12 -deststoretype PKCS12; "
    "openssl pkcs12 -in {0}.p12 -out {0}.pem",
    (KEYSTORE, PKCS12): "openssl pkcs12 -in {0} -out {0}.pem",
}


def client_context(properties: ClientProperties) -> ssl.SSLContext:
    """Make the TLS context of a client. Raises ConfigurationError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = _checks_names(properties)
    _limit_versions(context, properties)
    _trust(context, properties)
    _introduce(context, properties)
    return context


def _checks_names(properties: ClientProperties) -> bool:
    wanted = properties.text(NAME_CHECK)
    if NAME_CHECK in properties.entries and not wanted:
        return False
    if wanted.lower() not in ("", "https"):
        raise properties.fault(NAME_CHECK, "is https, or empty for no look at the names in certificates")
    return True


def _limit_versions(context: ssl.SSLContext, properties: ClientProperties) -> None:
    names = [name.strip() for name in properties.text(ENABLED).split(",") if name.strip()]
    allowed = [PROTOCOLS[name] for name in names if name in PROTOCOLS]
    if names and not allowed:
        raise properties.fault(ENABLED, "allows neither TLSv1.2 nor TLSv1.3, and nothing older is spoken here")
    context.minimum_version = min(allowed, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(allowed, default=ssl.TLSVersion.MAXIMUM_SUPPORTED)


# ------------------------------------------------------------------ whom we trust


def _trust(context: ssl.SSLContext, properties: ClientProperties) -> None:
    key = _store(properties, TRUSTSTORE, TRUSTED)
    if key is None:
        context.load_default_certs()
        return
    pem = properties.content(key) if key == TRUSTSTORE else properties.text(key)
    try:
        context.load_verify_locations(cadata="".join(text for label, text in _blocks(pem) if label == CERTIFICATE))
    except (ssl.SSLError, ValueError):
        raise properties.fault(key, f"holds no certificate that can be read (-----BEGIN {CERTIFICATE}-----)") from None
    context.verify_flags |= (
        ssl.VERIFY_X509_PARTIAL_CHAIN
    )  # Java: whatever is in the store is an anchor, not a root alone


# ------------------------------------------------------------------ who we are


def _introduce(context: ssl.SSLContext, properties: ClientProperties) -> None:
    key = _store(properties, KEYSTORE, CHAIN)
    if key == KEYSTORE:
        _load_chain(context, properties, key, properties.text(KEYSTORE))
    elif key == CHAIN:
        pem = "".join(text for _, text in _blocks(properties.text(CHAIN) + properties.text(KEY)))
        with (
            tempfile.TemporaryDirectory() as folder
        ):  # nobody else may enter it; the library reads a chain from a file alone
            file = Path(folder) / "keystore.pem"
            file.write_text(pem, encoding="ascii")
            _load_chain(context, properties, key, str(file))
    elif properties.text(KEY):
        raise properties.fault(KEY, f"has no certificate beside it: {CHAIN} is missing")


def _load_chain(context: ssl.SSLContext, properties: ClientProperties, key: str, file: str) -> None:
    was_asked = False

    def password() -> str:
        nonlocal was_asked
        was_asked = True
        return properties.text(KEY_PASSWORD)  # without this function the library would ask on the terminal

    try:
        context.load_cert_chain(file, password=password)
    except (ssl.SSLError, ValueError):
        if not was_asked:
            text = "must hold a certificate and the private key that belongs to it, both in PEM"
            raise properties.fault(key, f"{text}, the key beside it in {KEY}" if key == CHAIN else text) from None
        if properties.text(KEY_PASSWORD):
            raise properties.fault(KEY_PASSWORD, "does not open the private key") from None
        raise properties.fault(KEY_PASSWORD, "is missing: the private key is encrypted") from None


# ------------------------------------------------------------------ stores


def _store(properties: ClientProperties, location: str, inline: str) -> str | None:
    """Return a key or trust store in PEM, whichever of the two keys holds it; None if there is
    none.
    """
    present = [key for key in (location, inline) if properties.text(key)]
    if len(present) == 2:
        raise properties.fault(inline, f"and {location} are both set: one of them is enough")
    if not present:
        return None
    type_key = location.replace(".location", ".type")
    kind = (properties.text(type_key) or JKS).upper()
    file = properties.text(location)
    holds_pem = any(_blocks(properties.content(location) if file else properties.text(inline)))
    if kind == PEM:
        if not holds_pem:
            raise properties.fault(present[0], "holds nothing in PEM (-----BEGIN ...)")
        return present[0]
    way = TO_PEM.get((location, kind))
    if way is None or not file or holds_pem:
        raise properties.fault(type_key, f"must be {PEM}: no other kind of store is read here")
    raise properties.fault(
        location,
        f"is a store of type {kind}, and only {PEM} is read here: convert it by `{way.format(file)}`, "
        f"then set {type_key}={PEM} and {location}={file}.pem",
    )


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each PEM label with its block, whose lines may have been joined, as in a properties
    file: Java reads that.
    """
    for block in text.split("-----BEGIN ")[1:]:
        label, _, rest = block.partition("-----")
        body, end, _ = rest.partition(f"-----END {label}-----")
        if not (end and LABEL.fullmatch(label)):
            continue
        lines = [body.strip()] if ":" in body else _cut("".join(body.split()))
        yield label, "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def _cut(text: str) -> list[str]:
    return [text[start : start + LINE] for start in range(0, len(text), LINE)]
