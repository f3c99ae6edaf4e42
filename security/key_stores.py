"""Reads key stores and trust stores, in PEM (KIP-651) and in PKCS #12, and puts them into a context
of TLS.

Rule: a store means the same as to Java: every certificate in a trust store is trusted as it is, a
chain begins with the owner's certificate, and stores that keytool writes under the type JKS are
PKCS #12 since Java 9. Java's own older format is refused with the command that converts it. No
error shows a password or any part of a key.
"""

import contextlib
import re
import secrets
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
KINDS = (PEM, JKS, PKCS12)
SUFFIXES = {".pem": PEM, ".jks": JKS, ".p12": PKCS12, ".pfx": PKCS12}
MAX_STORE_BYTES = 10 * 1024 * 1024
"""The largest file that is read as a store."""
JAVAS_OWN = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How files begin that are JKS or JCEKS and not PKCS #12."""
LABEL = re.compile(r"[A-Z0-9 ]++")
LINE = 64  # RFC 7468
CERTIFICATE, PRIVATE_KEY = "CERTIFICATE", "PRIVATE KEY"
TO_PKCS12 = "keytool -importkeystore -srckeystore {0} -destkeystore {0}.p12 -deststoretype PKCS12"

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey
"""Kinds of keys with which TLS signs."""
Certificates = tuple[x509.Certificate, ...]


class KeyStoreError(Exception):
    """A store cannot be used. The text continues a sentence that begins with the store's key."""


class KeyPasswordError(KeyStoreError):
    """The password of a private key is missing or wrong. The text continues a sentence that begins
    with the password's key.
    """


class KeyStore(msgspec.Struct, frozen=True):
    """A private key and the chain of certificates that belongs to it."""

    key: PrivateKey
    chain: Certificates
    """The owner's certificate first, and then its issuers'."""

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    def __repr__(self) -> str:
        return f"<KeyStore of {len(self.chain)} certificates>"


# ------------------------------------------------------------------ reading


def read_key_store(content: bytes, kind: str, password: str, key_password: str, file: str = "") -> KeyStore:
    """Read a private key and its chain. `password` opens a store in PKCS #12, `key_password` the
    key in PEM; `file` is named in the error for a store of another format. Raises KeyStoreError.
    """
    if kind == PEM:
        return _pem_key_store(content, key_password)
    store = _opened(content, kind, password, file)
    if store.key is None or store.cert is None:
        raise KeyStoreError("holds no private key with its certificate")
    others = [each.certificate for each in store.additional_certs]
    return KeyStore(_usable(store.key), _in_order(store.cert.certificate, others))


def read_trust_store(content: bytes, kind: str, password: str, file: str = "") -> Certificates:
    """Read the certificates that are trusted. Raises KeyStoreError."""
    if kind == PEM:
        return _pem_certificates(content)
    store = _opened(content, kind, password, file)
    entries = [each for each in (store.cert, *store.additional_certs) if each is not None]
    if not entries:
        raise KeyStoreError("holds no certificate")
    return tuple(entry.certificate for entry in entries)


def _pem_key_store(content: bytes, password: str) -> KeyStore:
    blocks = [text.encode() for label, text in pem_blocks(_text(content)) if label.endswith(PRIVATE_KEY)]
    if not blocks:
        raise KeyStoreError("must hold a certificate and the private key that belongs to it, both in PEM")
    key = _private_key(blocks[0], password)
    chain = _pem_certificates(content)
    if chain[0].public_key() != key.public_key():
        raise KeyStoreError("must hold a certificate and the private key that belongs to it, both in PEM")
    return KeyStore(key, chain)


def _private_key(block: bytes, password: str) -> PrivateKey:
    try:
        return _usable(load_pem_private_key(block, password.encode() if password else None))
    except TypeError:  # it is encrypted and there is no password, or the other way round
        if password:
            return _private_key(block, "")
        raise KeyPasswordError("is missing: the private key is encrypted") from None
    except (ValueError, UnsupportedAlgorithm):
        if password and b"ENCRYPTED" in block:
            raise KeyPasswordError("does not open the private key") from None
        raise KeyStoreError("holds a private key that cannot be read") from None


def _usable(key: object) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise KeyStoreError("holds a private key of a kind with which TLS does not sign")
    return key


def _pem_certificates(content: bytes) -> Certificates:
    blocks = list(pem_blocks(_text(content)))
    if not blocks:
        raise KeyStoreError("holds nothing in PEM (-----BEGIN ...)")
    try:
        certificates = tuple(
            x509.load_pem_x509_certificate(text.encode()) for label, text in blocks if label == CERTIFICATE
        )
    except ValueError:
        certificates = ()
    if not certificates:
        raise KeyStoreError(f"holds no certificate that can be read (-----BEGIN {CERTIFICATE}-----)")
    return certificates


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _opened(content: bytes, kind: str, password: str, file: str) -> pkcs12.PKCS12KeyAndCertificates:
    if kind not in KINDS:
        raise KeyStoreError(f"is a store of type {kind}, and only PEM and PKCS12 are read")
    if content.lstrip().startswith(b"-----BEGIN "):
        raise KeyStoreError("is in PEM, so that its type must be PEM")
    if content.startswith(JAVAS_OWN):
        way = TO_PKCS12.format(file or "FILE")
        raise KeyStoreError(
            f"is a store of type JKS, and only PEM and PKCS12 are read: convert it by `{way}`, then name {file or 'FILE'}.p12"
        )
    try:
        return pkcs12.load_pkcs12(content, password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyStoreError("is not opened by its password, or is no PKCS12 store") from None


def _in_order(owner: x509.Certificate, others: Sequence[x509.Certificate]) -> Certificates:
    """Return a chain, each certificate before its issuer's. A store has no order."""
    chain, left = [owner], list(others)
    while True:
        issuer = next((each for each in left if each.subject == chain[-1].issuer), None)
        if issuer is None:
            return tuple(chain)
        chain.append(issuer)
        left.remove(issuer)


def pem_blocks(text: str) -> Iterator[tuple[str, str]]:
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


# ------------------------------------------------------------------ into a context


def show(context: ssl.SSLContext, store: KeyStore) -> None:
    """Show the certificate of a store to the other end. Raises KeyStoreError."""
    password = secrets.token_bytes(24).hex()
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    with tempfile.TemporaryDirectory() as folder:  # OpenSSL's functions read a chain from a file alone
        file = Path(folder) / "keystore.pem"
        file.write_bytes(key + b"".join(_encoded(each) for each in store.chain))
        try:
            context.load_cert_chain(file, password=password)
        except (ssl.SSLError, ValueError):
            raise KeyStoreError(
                "holds a certificate that OpenSSL does not use, such as one with too short a key"
            ) from None


def trust(context: ssl.SSLContext, certificates: Certificates) -> None:
    context.load_verify_locations(cadata=b"".join(map(_encoded, certificates)).decode("ascii"))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whatever is in the store is an anchor, as in Java


def _encoded(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


# ------------------------------------------------------------------ files


def load_keystore(context: ssl.SSLContext, file: Path, password: str, kind: str = "") -> None:
    """Show the certificate in a file to the other end. `kind` is the store's type; if it is empty,
    the file's name tells. Raises KeyStoreError.
    """
    with _naming(file):
        show(context, read_key_store(_content(file), _kind(file, kind), password, password, str(file)))


def load_truststore(context: ssl.SSLContext, file: Path, password: str, kind: str = "") -> None:
    """Trust each certificate in a file. Raises KeyStoreError."""
    with _naming(file):
        trust(context, read_trust_store(_content(file), _kind(file, kind), password, str(file)))


@contextlib.contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Let the error about a store name its file."""
    try:
        yield
    except KeyPasswordError as error:
        raise KeyStoreError(f"has a private key whose password {error}: {file}") from None
    except KeyStoreError as error:
        raise KeyStoreError(f"{error}: {file}") from None


def _kind(file: Path, kind: str) -> str:
    return kind.upper() or SUFFIXES.get(file.suffix.lower(), JKS)


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_STORE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise KeyStoreError(f"names a file that cannot be read ({reason})") from None
    if len(content) > MAX_STORE_BYTES:
        raise KeyStoreError(f"names a file of more than {MAX_STORE_BYTES} bytes")
    return content
