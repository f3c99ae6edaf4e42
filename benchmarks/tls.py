"""`python -m benchmarks.tls`: what TLS costs a node, beside what it costs a real Kafka.

Rule: one node of either program, each with a listener without TLS and one with it, on one
ZooKeeper. Rounds at both listeners of one node follow each other, and only their ratio is told: the
client's own share of the cost is the same for both programs.
"""

import shutil
import signal
import ssl
import statistics
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from . import messages
from .driver import Connection, numbered, one_by_one
from .peers.base import HOST, Address, Process, free_ports, wait_for_port
from .peers.java import KAFKA_WITH_ZOOKEEPER, ZooKeeper, java

ROUNDS = 9
SECONDS = 1.5
CONNECTIONS = 150
READY_SECONDS = 60.0
TOPIC = "measured"

Measure = Callable[[Address, ssl.SSLContext | None], float]


class TlsConnection(Connection):
    """A connection whose bytes are encrypted."""

    def __init__(self, address: Address, context: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname=HOST)


def connect(address: Address, context: ssl.SSLContext | None) -> Connection:
    return Connection(address) if context is None else TlsConnection(address, context)


NAMES = (f"t-{number}" for number in count())


def create_one(address: Address, context: ssl.SSLContext | None) -> float:
    """Topics a second, one request each."""
    frames = [messages.create_topics([next(NAMES)], correlation_id=number) for number in range(3000)]
    with connect(address, context) as connection:
        timed = one_by_one(connection, frames, seconds=SECONDS)
    for answer in timed.answers:
        messages.check_created(answer)
    return timed.rate


def metadata_one(address: Address, context: ssl.SSLContext | None) -> float:
    """Answers about one topic a second."""
    frames = numbered(messages.metadata([TOPIC]), 100_000)
    with connect(address, context) as connection:
        timed = one_by_one(connection, frames, seconds=SECONDS)
    messages.check_led(timed.answers[-1], 1, 1)
    return timed.rate


def new_connections(address: Address, context: ssl.SSLContext | None) -> float:
    """Connections a second, with one request each."""
    frame = messages.metadata([TOPIC])
    begin = perf_counter()
    for _ in range(CONNECTIONS):
        with connect(address, context) as connection:
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
    store = folder / "node.pem"
    store.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + b"".join(each.bytes() for each in issued.cert_chain_pems)
    )
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}, context


def started(name: str, folder: Path, zookeeper: str, keys: dict[str, str]) -> tuple[Process, Address, Address]:
    """One node of a program, and its two addresses: without TLS and with it."""
    home = folder / name
    home.mkdir()
    plain, secured = free_ports(2)
    properties = {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{secured}",
        "zookeeper.connect": f"{zookeeper}/{name}",
        "log.dirs": str(home / "data"),
        "auto.create.topics.enable": "false",
        **keys,
    }
    file = home / "node.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    command = [sys.executable, "-m", "minicontroller", "serve", "--config", str(file)]
    if name == "kafka":
        command = java(KAFKA_WITH_ZOOKEEPER, "kafka.Kafka", str(file), heap="512m", folder=home)
    process = Process(command, log=home / "log.txt")
    wait_for_port((HOST, secured), process, READY_SECONDS)
    return process, (HOST, plain), (HOST, secured)


def measured(plain: Address, secured: Address, context: ssl.SSLContext, measure: Measure) -> tuple[float, float, float]:
    """The median rates of both listeners, and the median of their ratios."""
    rows = []
    for number in range(ROUNDS + 1):
        ends = [(plain, None), (secured, context)]
        rates = {end: measure(*end) for end in (ends if number % 2 else reversed(ends))}
        rows.append([rates[end] for end in ends])
    pairs = rows[1:]
    without, with_tls = (statistics.median(each) for each in zip(*pairs, strict=True))
    return without, with_tls, statistics.median(secure / open_ for open_, secure in pairs)


def prepared(address: Address) -> None:
    """Make the topic, as soon as the controller knows its broker."""
    deadline = perf_counter() + READY_SECONDS
    with Connection(address) as connection:
        while True:
            try:
                messages.check_created(connection.call(messages.create_topics([TOPIC])))
                break
            except messages.RequestError:
                if perf_counter() > deadline:
                    raise
        while not messages.all_led(connection.call(messages.metadata([TOPIC])), 1, 1):
            assert perf_counter() < deadline


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tls-benchmark-"))
    zookeeper = ZooKeeper(folder)
    processes: list[Process] = []
    try:
        keys, context = certificates(folder)
        for name in sys.argv[1:] or ("minicontroller", "kafka"):
            process, plain, secured = started(name, folder, zookeeper.connect, keys)
            processes.append(process)
            prepared(plain)
            for line, measure in LINES.items():
                without, with_tls, ratio = measured(plain, secured, context, measure)
                print(f"{name:15} {line:17} {without:8.0f}/s  TLS {with_tls:8.0f}/s  {1 - ratio:+.1%} slower")
            process.end(signal.SIGTERM)
    finally:
        for process in processes:
            process.end(signal.SIGKILL)
            process.reap()
        zookeeper.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
