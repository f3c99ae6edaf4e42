"""Certificates for tests: an authority, and what it issues, in PEM files as Kafka and its clients
read them (KIP-651).
"""

import ssl
from datetime import datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


class Authority:
    """Its own certificate is in `file`."""

    def __init__(self, folder: Path, name: str = "authority", *, parent: "Authority | None" = None) -> None:
        self.folder = folder
        self._ca: trustme.CA = trustme.CA() if parent is None else parent._ca.create_child_ca()
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._ca.cert_pem.bytes())

    def issue(self, name: str, *hosts: str, password: str | None = None, until: datetime | None = None) -> Path:
        """A file with the private key (PKCS #8) and the chain of a certificate for these hosts. Its
        subject is `OU=<name>,O=tests`.
        """
        leaf = self._ca.issue_cert(*hosts, not_after=until, organization_name="tests", organization_unit_name=name)
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        lock: KeySerializationEncryption = NoEncryption()
        if password is not None:
            lock = BestAvailableEncryption(password.encode())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
        file = self.folder / f"{name}.pem"
        file.write_bytes(pem + b"".join(each.bytes() for each in leaf.cert_chain_pems))
        return file


def server_context(keystore: Path, clients: Authority | None = None) -> ssl.SSLContext:
    """For a server that shows this certificate; of its clients it wants one that
    `clients` issued.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keystore)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.file)
    return context
