"""One node of ours or of Kafka with three listeners: without TLS, with it, and with users who log
in by SCRAM over TLS; and the user, the ACLs and the certificates that its clients need.

Rule: both programs are configured with the same keys, and what is in ZooKeeper for them is the
same.
"""

import contextlib
import json
import shutil
import signal
import ssl
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from minicontroller.cluster.znodes.acls import acl_path, encode_acls
from minicontroller.protocol.acls import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.credentials import ScramCredentials
from minicontroller.security.scram_credentials import credential_text, derived_credential

from . import messages
from .driver import Connection
from .kazoo_client import connected
from .peers.base import HOST, Address, Process, free_ports, wait_for_port
from .peers.java import KAFKA_WITH_ZOOKEEPER, ZooKeeper, java

READY_SECONDS = 60.0
POLL_SECONDS = 0.05
TOPIC, PREFIX = "measured", "team-1."
ACLS = 1000
OPERATIONS = (AclOperation.READ, AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
USER, PASSWORD, MECHANISM = "alice", "alice-secret", "SCRAM-SHA-256"
AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",  # the node itself, at the PLAINTEXT listener
}


@dataclass(frozen=True)
class End:
    """A listener, and how a client reaches it."""

    address: Address
    context: ssl.SSLContext | None = None
    logs_in: bool = False


class TlsConnection(Connection):
    """A connection whose bytes are encrypted."""

    def __init__(self, address: Address, context: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname=HOST)


def connect(end: End) -> Connection:
    connection = Connection(end.address) if end.context is None else TlsConnection(end.address, end.context)
    if end.logs_in:
        login = login_frames()
        with contextlib.suppress(StopIteration):
            frame = next(login)
            while True:
                frame = login.send(connection.call(frame))
    return connection


def login_frames() -> Generator[bytes, bytes, None]:
    """Yield the requests of a login, each of which wants its answer sent in."""
    yield KAFKA.encode_request(RequestHeader(17, 1, 1, "benchmarks"), SaslHandshakeRequest(mechanism=MECHANISM))
    exchange = ScramCredentials(USER, PASSWORD, MECHANISM).exchange()
    token = next(exchange)
    while True:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = yield KAFKA.encode_request(RequestHeader(36, 2, 1, "benchmarks"), request)
        _, response = KAFKA.decode_response(36, 2, answer)
        assert isinstance(response, SaslAuthenticateResponse)
        assert response.error_code == 0, response.error_message
        try:
            token = exchange.send(response.auth_bytes)
        except StopIteration:
            return


@dataclass(frozen=True)
class Node:
    """One node that runs."""

    process: Process
    plain: Address
    tls: Address
    users: Address


class World:
    """A ZooKeeper, a certificate, and the nodes that were started with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = folder / "authority.pem"
        self.context = ssl.create_default_context()
        self._keys = self._certificates()
        self._zookeeper = ZooKeeper(folder)
        self._nodes: list[Node] = []

    def start(self, program: str, *, authorizes: bool) -> Node:
        """Start one node with a chroot of its own, and return it when it has the topic."""
        name = f"{program}-{'secured' if authorizes else 'open'}"
        home = self.folder / name
        home.mkdir()
        if authorizes:
            plant(self._zookeeper.connect, name)
        node = self._started(program, home, f"{self._zookeeper.connect}/{name}", AUTHORIZED if authorizes else {})
        prepare(End(node.plain))
        return node

    def stop(self) -> None:
        for node in self._nodes:
            node.process.end(signal.SIGKILL)
            node.process.reap()
        self._zookeeper.stop()

    def _started(self, program: str, home: Path, zookeeper: str, keys: Mapping[str, str]) -> Node:
        plain, tls, users = free_ports(3)
        properties = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{tls},SASL_SSL://{HOST}:{users}",
            "zookeeper.connect": zookeeper,
            "log.dirs": str(home / "data"),
            "auto.create.topics.enable": "false",
            "sasl.enabled.mechanisms": MECHANISM,
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            **self._keys,
            **keys,
        }
        file = home / "node.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        process = Process(command(program, file), log=home / "log.txt")
        node = Node(process, (HOST, plain), (HOST, tls), (HOST, users))
        self._nodes.append(node)
        for each in (node.plain, node.tls, node.users):
            wait_for_port(each, process, READY_SECONDS)
        return node

    def _certificates(self) -> Mapping[str, str]:
        """Return the keys by which a listener has a certificate, which the context trusts."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.authority))
        authority.configure_trust(self.context)
        issued = authority.issue_cert(HOST)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        store = self.folder / "node.pem"
        store.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + b"".join(each.bytes() for each in issued.cert_chain_pems)
        )
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Have a world as long as the block lasts."""
    folder = Path(tempfile.mkdtemp(prefix="security-benchmark-"))
    made = World(folder)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def command(program: str, file: Path) -> Sequence[str]:
    """Return the command line of a node."""
    if program == "kafka":
        return java(KAFKA_WITH_ZOOKEEPER, "kafka.Kafka", str(file), heap="512m", folder=file.parent)
    return [sys.executable, "-m", "minicontroller", "serve", "--config", str(file)]


def plant(zookeeper: str, chroot: str) -> None:
    """Write a user and 1,000 ACLs, of which eight are theirs, as Kafka's tools write them."""
    credential = credential_text(derived_credential(MECHANISM, PASSWORD))
    user = json.dumps({"version": 1, "config": {MECHANISM: credential}}).encode()
    with connected(zookeeper) as client:
        client.create(f"/{chroot}/config/users/{USER}", user, makepath=True)
        for number in range(ACLS // len(OPERATIONS)):
            pattern = ResourcePattern(AclResourceType.TOPIC, f"team-{number}.", PatternType.PREFIXED)
            if number == 0:
                pattern = ResourcePattern(AclResourceType.TOPIC, TOPIC)
            who = f"User:{USER}" if number < 2 else f"User:team-{number}"
            entries = [AccessControlEntry(who, WILDCARD, each, PermissionType.ALLOW) for each in OPERATIONS]
            client.create(f"/{chroot}{acl_path(pattern)}", encode_acls(entries), makepath=True)


def prepare(end: End) -> None:
    """Make the topic as soon as the controller knows its broker, and wait until it is led."""
    deadline = perf_counter() + READY_SECONDS
    with connect(end) as connection:
        while True:
            try:
                messages.check_created(connection.call(messages.create_topics([TOPIC])))
                break
            except messages.RequestError:
                if perf_counter() > deadline:
                    raise
                sleep(POLL_SECONDS)
        while not messages.all_led(connection.call(messages.metadata([TOPIC])), 1, 1):
            assert perf_counter() < deadline
            sleep(POLL_SECONDS)
