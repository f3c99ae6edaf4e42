"""Key stores and trust stores as Java reads them."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from minicontroller.security.key_stores import KeyStoreError, load_keystore, load_truststore
from tests.support.certificates import Authority

PASSWORD = "planted-secret"


@pytest.fixture(name="authority")
def authority_fixture(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def as_pkcs12(pem: Path, password: str = PASSWORD) -> Path:
    """Return the key and chain of a PEM file in PKCS #12; without a key, a trust store as keytool
    writes it.
    """
    text = pem.read_bytes()
    certificates = x509.load_pem_x509_certificates(text)
    lock = BestAvailableEncryption(password.encode())
    if b"PRIVATE KEY" in text:
        key = load_pem_private_key(text, None)
        data = pkcs12.serialize_key_and_certificates(b"node", key, certificates[0], certificates[1:], lock)  # type: ignore[arg-type]
    else:
        data = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(each, b"ca") for each in certificates], lock)
    file = pem.with_suffix(".p12")
    file.write_bytes(data)
    return file


def shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> str | None:
    """Let a client and a server speak TLS; the name of the client's certificate."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in tuple(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    assert not waiting
    certificate = ends[0].getpeercert()
    return None if not certificate else str(certificate["subjectAltName"][0][1])


@pytest.mark.parametrize("form", ["pem", "encrypted pem", "p12"])
def test_a_store_serves_in_each_form(authority: Authority, form: str) -> None:
    """Both ends show what is in their key stores and trust what is in their trust stores."""
    password = PASSWORD if form == "encrypted pem" else None
    keys = [authority.issue(name, host, password=password) for name, host in (("s", "localhost"), ("c", "client"))]
    trusted = authority.file
    if form == "p12":
        keys, trusted = [as_pkcs12(key) for key in keys], as_pkcs12(trusted)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.verify_mode = ssl.CERT_REQUIRED
    for context, key in ((server, keys[0]), (client, keys[1])):
        load_keystore(context, key, PASSWORD)
        load_truststore(context, trusted, PASSWORD)
    assert shaken(client, server) == "client"


def test_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    """A trust store holds whom to trust, and nobody else."""
    (tmp_path / "other").mkdir()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_keystore(server, authority.issue("s", "localhost"), "")
    load_truststore(client, Authority(tmp_path / "other").file, "")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client, server)


def test_what_cannot_be_used_is_told_without_secrets(authority: Authority, tmp_path: Path) -> None:
    """Each mistake has its sentence; no password is in it."""
    key, locked = authority.issue("s", "localhost"), authority.issue("l", "localhost", password="other")
    without_key, empty = tmp_path / "w.pem", tmp_path / "empty.pem"
    without_key.write_bytes(authority.file.read_bytes())
    empty.write_text("nothing")
    javas_own = tmp_path / "s.jks"
    javas_own.write_bytes(b"\xfe\xed\xfe\xed\x00")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    cases = [
        (load_keystore, locked, "", "does not open"),
        (load_keystore, without_key, "", "must hold a certificate and the private key"),
        (load_keystore, as_pkcs12(key, "other"), "", "is not opened by its password"),
        (load_keystore, as_pkcs12(authority.file), "", "holds no private key"),
        (load_keystore, tmp_path / "missing.pem", "", r"cannot be read \(No such file .*missing\.pem"),
        (load_keystore, javas_own, "", "convert it by `keytool -importkeystore"),
        (load_keystore, key, "BCFKS", "type BCFKS, and only PEM and PKCS12"),
        (load_truststore, empty, "", "holds nothing in PEM"),
        (load_truststore, empty, "PKCS12", "is no PKCS12 store"),
    ]
    for load, file, kind, sentence in cases:
        with pytest.raises(KeyStoreError, match=sentence) as caught:
            load(context, file, PASSWORD, kind)
        assert PASSWORD not in str(caught.value)
