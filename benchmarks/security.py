"""`python -m benchmarks.security`: what TLS costs a node, and what TLS, SCRAM and 1,000 ACLs cost
together, beside what they cost a real Kafka.

Rule: two nodes of either program on one ZooKeeper. The open one has a listener without TLS and one
with it; at the secured one a user logs in by SCRAM over TLS and needs ACLs. Rounds at both ends of
a comparison follow each other, and only their ratio is told: the client's own share of the cost is
the same for both programs.
"""

import argparse
import json
import shutil
import signal
import ssl
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from minicontroller.controller.security.credentials import ScramCredentials
from minicontroller.controller.security.scram_credentials import credential_text, derived_credential
from minicontroller.controller.znodes.acls import acl_path, encode_acls
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

from . import messages
from .driver import Connection, numbered, one_by_one
from .kazoo_client import connected
from .peers.base import HOST, Address, Process, free_ports, wait_for_port
from .peers.java import KAFKA_WITH_ZOOKEEPER, ZooKeeper, java

ROUNDS = 9
SECONDS = 1.5
CONNECTIONS = 100
READY_SECONDS = 60.0
TOPIC = "measured"
SYSTEMS = ("minicontroller", "kafka")
ACLS = 1000
USER, PASSWORD, MECHANISM = "alice", "alice-secret", "SCRAM-SHA-256"


@dataclass(frozen=True)
class End:
    """A listener, and how a client reaches it."""

    address: Address
    context: ssl.SSLContext | None = None
    logs_in: bool = False


Measure = Callable[[End], float]


class TlsConnection(Connection):
    """A connection whose bytes are encrypted."""

    def __init__(self, address: Address, context: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname=HOST)


def connect(end: End) -> Connection:
    connection = Connection(end.address) if end.context is None else TlsConnection(end.address, end.context)
    if end.logs_in:
        log_in(connection)
    return connection


def log_in(connection: Connection) -> None:
    handshake = SaslHandshakeRequest(mechanism=MECHANISM)
    connection.call(KAFKA.encode_request(RequestHeader(17, 1, 1, "benchmarks"), handshake))
    exchange = ScramCredentials(USER, PASSWORD, MECHANISM).exchange()
    token = next(exchange)
    while True:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = connection.call(KAFKA.encode_request(RequestHeader(36, 2, 1, "benchmarks"), request))
        _, response = KAFKA.decode_response(36, 2, answer)
        assert isinstance(response, SaslAuthenticateResponse)
        assert response.error_code == 0, response.error_message
        try:
            token = exchange.send(response.auth_bytes)
        except StopIteration:
            return


NAMES = (f"team-1.t-{number}" for number in count())


def create_one(end: End) -> float:
    """Topics a second, one request each."""
    frames = [messages.create_topics([next(NAMES)], correlation_id=number) for number in range(3000)]
    with connect(end) as connection:
        timed = one_by_one(connection, frames, seconds=SECONDS)
    for answer in timed.answers:
        messages.check_created(answer)
    return timed.rate


def metadata_one(end: End) -> float:
    """Answers about one topic a second."""
    frames = numbered(messages.metadata([TOPIC]), 100_000)
    with connect(end) as connection:
        timed = one_by_one(connection, frames, seconds=SECONDS)
    messages.check_led(timed.answers[-1], 1, 1)
    return timed.rate


def new_connections(end: End) -> float:
    """Connections a second, with one request each."""
    frame = messages.metadata([TOPIC])
    begin = perf_counter()
    for _ in range(CONNECTIONS):
        with connect(end) as connection:
            connection.call(frame)
    return CONNECTIONS / (perf_counter() - begin)


LINES: dict[str, Measure] = {
    "metadata-one": metadata_one,
    "create-one": create_one,
    "a new connection": new_connections,
}


def certificates(folder: Path) -> tuple[dict[str, str], ssl.SSLContext]:
    """The keys by which a listener has a certificate, and a client that trusts it."""
    authority = trustme.CA()
    issued = authority.issue_cert(HOST)
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    folder.with_suffix(".keys").mkdir()
    store = folder.with_suffix(".keys") / "node.pem"
    store.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + b"".join(each.bytes() for each in issued.cert_chain_pems)
    )
    authority.cert_pem.write_to_path(str(store.with_name("authority.pem")))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}, context


def started(name: str, folder: Path, zookeeper: str, keys: dict[str, str]) -> tuple[Process, dict[str, Address]]:
    """One node of a program with these keys, and the addresses of its listeners."""
    home = folder / name
    home.mkdir()
    plain, secured, users = free_ports(3)
    properties = {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{secured},SASL_SSL://{HOST}:{users}",
        "zookeeper.connect": f"{zookeeper}/{name}",
        "log.dirs": str(home / "data"),
        "auto.create.topics.enable": "false",
        "sasl.enabled.mechanisms": MECHANISM,
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        **keys,
    }
    file = home / "node.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    command = [sys.executable, "-m", "minicontroller", "serve", "--config", str(file)]
    if name.startswith("kafka"):
        command = java(KAFKA_WITH_ZOOKEEPER, "kafka.Kafka", str(file), heap="512m", folder=home)
    process = Process(command, log=home / "log.txt")
    wait_for_port((HOST, users), process, READY_SECONDS)
    return process, {"plain": (HOST, plain), "tls": (HOST, secured), "users": (HOST, users)}


AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",  # the node itself, at the PLAINTEXT listener
}


def plant(zookeeper: str, chroot: str) -> None:
    """Write a user and 1,000 ACLs, of which four are theirs, as Kafka's tools write them."""
    credential = credential_text(derived_credential(MECHANISM, PASSWORD))
    user = json.dumps({"version": 1, "config": {MECHANISM: credential}}).encode()
    with connected(zookeeper) as client:
        client.create(f"/{chroot}/config/users/{USER}", user, makepath=True)
        for number in range(ACLS // 4):
            pattern = ResourcePattern(AclResourceType.TOPIC, f"team-{number}.", PatternType.PREFIXED)
            if number == 0:
                pattern = ResourcePattern(AclResourceType.TOPIC, TOPIC)
            who = f"User:{USER}" if number < 2 else f"User:team-{number}"
            entries = [
                AccessControlEntry(who, WILDCARD, operation, PermissionType.ALLOW)
                for operation in (
                    AclOperation.READ,
                    AclOperation.CREATE,
                    AclOperation.DESCRIBE,
                    AclOperation.DESCRIBE_CONFIGS,
                )
            ]
            client.create(f"/{chroot}{acl_path(pattern)}", encode_acls(entries), makepath=True)


def measured(one: End, other: End, measure: Measure) -> tuple[float, float, float]:
    """The median rates of both ends, and the median of their ratios."""
    rows = []
    for number in range(ROUNDS + 1):
        rates = {end: measure(end) for end in ((one, other) if number % 2 else (other, one))}
        rows.append((rates[one], rates[other]))
    first, second = (statistics.median(each) for each in zip(*rows[1:], strict=True))
    return first, second, statistics.median(b / a for a, b in rows[1:])


def prepared(end: End) -> None:
    """Make the topic, as soon as the controller knows its broker."""
    deadline = perf_counter() + READY_SECONDS
    with connect(end) as connection:
        while True:
            try:
                messages.check_created(connection.call(messages.create_topics([TOPIC])))
                break
            except messages.RequestError:
                if perf_counter() > deadline:
                    raise
        while not messages.all_led(connection.call(messages.metadata([TOPIC])), 1, 1):
            assert perf_counter() < deadline


def compare(name: str, folder: Path, zookeeper: str, processes: list[Process]) -> None:
    """Run an open and a secured node of a program, and print what security costs it."""
    keys, context = certificates(folder / name)
    chroot = f"{name}-secured"
    plant(zookeeper, chroot)
    addresses = []
    for node, more in ((name, {}), (chroot, AUTHORIZED)):
        process, found = started(node, folder, zookeeper, keys | more)
        processes.append(process)
        addresses.append(found)
    of_open, of_secured = addresses
    plain, tls = End(of_open["plain"]), End(of_open["tls"], context)
    users = End(of_secured["users"], context, logs_in=True)
    prepared(plain)
    prepared(End(of_secured["plain"]))
    for line, measure in LINES.items():
        for what, other in (("TLS", tls), (f"TLS, SCRAM and {ACLS} ACLs", users)):
            without, secured, ratio = measured(plain, other, measure)
            print(
                f"{name:15} {line:17} {without:8.0f}/s  {what:25} {secured:8.0f}/s  {1 - ratio:+.1%} slower", flush=True
            )
    for process in processes[-2:]:
        process.end(signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"{' or '.join(SYSTEMS)}; without any, both")
    asked = parser.parse_args()
    if unknown := set(asked.systems) - set(SYSTEMS):
        parser.error(f"no such system: {', '.join(sorted(unknown))}")
    folder = Path(tempfile.mkdtemp(prefix="security-benchmark-"))
    zookeeper = ZooKeeper(folder)
    processes: list[Process] = []
    try:
        for name in asked.systems or SYSTEMS:
            compare(name, folder, zookeeper.connect, processes)
    finally:
        for process in processes:
            process.end(signal.SIGKILL)
            process.reap()
        zookeeper.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
