"""Reads key stores and trust stores, in PEM and in PKCS #12, into a context of TLS.

Rule: a file means the same as to Java: every certificate in a trust store is trusted as it is, and
a chain begins with the owner's certificate. No error shows a password or any part of a key. Java's
own format, JKS, is refused with the command that converts it.
"""

import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
SUFFIXES = {".pem": PEM, ".jks": JKS, ".p12": PKCS12, ".pfx": PKCS12}
MAX_STORE_BYTES = 10 * 1024 * 1024
CERTIFICATE, END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
TO_PKCS12 = "keytool -importkeystore -srckeystore {0} -destkeystore {0}.p12 -deststoretype PKCS12"


class KeyStoreError(Exception):
    """A store cannot be used. The text continues a sentence that begins with the store's key."""


def load_keystore(context: ssl.SSLContext, file: Path, password: str, kind: str = "") -> None:
    """Show the certificate in a key store to the other end. `kind` is the store's type; if it is
    empty, the file's name tells. Raises KeyStoreError.
    """
    if _kind(file, kind) == PEM:
        _content(file)
        _load_chain(context, file, password, file)
        return
    chain = _pem_of(_opened(file, password))
    if chain is None:
        raise KeyStoreError(f"holds no private key with its certificate: {file}")
    with tempfile.TemporaryDirectory() as folder:  # only this user may enter it; OpenSSL reads a chain from a file
        pem = Path(folder) / "keystore.pem"
        pem.write_bytes(chain)
        _load_chain(context, pem, "", file)


def load_truststore(context: ssl.SSLContext, file: Path, password: str, kind: str = "") -> None:
    """Trust each certificate in a trust store. Raises KeyStoreError."""
    if _kind(file, kind) == PEM:
        blocks = _content(file).split(CERTIFICATE)[1:]
        trusted = b"".join(CERTIFICATE + block.partition(END)[0] + END + b"\n" for block in blocks)
    else:
        store = _opened(file, password)
        entries = [store.cert, *store.additional_certs]
        trusted = b"".join(_encoded(entry.certificate) for entry in entries if entry is not None)
    try:
        context.load_verify_locations(cadata=trusted.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise KeyStoreError(f"holds no certificate that can be read: {file}") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whatever is in the store is an anchor, as in Java


def _kind(file: Path, kind: str) -> str:
    known = kind.upper() or SUFFIXES.get(file.suffix.lower(), JKS)
    if known == JKS:
        raise KeyStoreError(
            f"is a store of type JKS, and only PEM and PKCS12 are read: convert it by `{TO_PKCS12.format(file)}`"
        )
    if known not in (PEM, PKCS12):
        raise KeyStoreError(f"is a store of type {kind}, and only PEM and PKCS12 are read")
    return known


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_STORE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise KeyStoreError(f"names a file that cannot be read: {file}: {reason}") from None
    if len(content) > MAX_STORE_BYTES:
        raise KeyStoreError(f"names a file of more than {MAX_STORE_BYTES} bytes: {file}")
    return content


def _opened(file: Path, password: str) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(_content(file), password.encode() if password else None)
    except ValueError:
        raise KeyStoreError(f"is not opened by its password, or is no PKCS12 store: {file}") from None


def _pem_of(store: pkcs12.PKCS12KeyAndCertificates) -> bytes | None:
    """Return the private key and its chain."""
    if store.key is None or store.cert is None:
        return None
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key + b"".join(_encoded(each.certificate) for each in (store.cert, *store.additional_certs))


def _encoded(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _load_chain(context: ssl.SSLContext, file: Path, password: str, store: Path) -> None:
    was_asked = False

    def tell() -> str:
        nonlocal was_asked
        was_asked = True
        return password  # without this function OpenSSL would ask on the terminal

    try:
        context.load_cert_chain(file, password=tell)
    except (ssl.SSLError, ValueError):
        if was_asked:
            raise KeyStoreError(f"has a private key that its password does not open: {store}") from None
        raise KeyStoreError(f"must hold a certificate and the private key that belongs to it: {store}") from None
