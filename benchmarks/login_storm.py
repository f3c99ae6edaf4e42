"""`python -m benchmarks.login_storm`: how long creations take while 1,000 clients log in at once by
SCRAM over TLS.

Rule: the clients are a process of their own, so that only the node and the machine's cores are
shared with what is measured.
"""

import argparse
import contextlib
import ssl
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import trio

from . import messages
from .driver import SIZE, Connection
from .peers.base import HOST, Address
from .secured import login_frames, world
from .security import NAMES

CLIENTS = 1000
QUIET_CREATIONS = 1000


async def ask(stream: trio.SSLStream[trio.SocketStream], frame: bytes) -> bytes:
    await stream.send_all(frame)
    data = bytearray()
    while len(data) < SIZE.size or len(data) < SIZE.size + SIZE.unpack_from(data)[0]:
        part = await stream.receive_some()
        assert part, "the node closed the connection"
        data += part
    return bytes(data[SIZE.size :])


async def log_in(port: int, context: ssl.SSLContext) -> None:
    stream = trio.SSLStream(await trio.open_tcp_stream(HOST, port), context, server_hostname=HOST)
    login = login_frames()
    with contextlib.suppress(StopIteration):
        frame = next(login)
        while True:
            frame = login.send(await ask(stream, frame))


async def storm(port: int, authority: str) -> None:
    context = ssl.create_default_context(cafile=authority)
    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS):
            nursery.start_soon(log_in, port, context)


def create(connection: Connection) -> float:
    """Create a topic, and return the seconds that it took."""
    frame = messages.create_topics([next(NAMES)])
    begin = perf_counter()
    answer = connection.call(frame)
    took = perf_counter() - begin
    messages.check_created(answer)
    return took


def told(what: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    middle, nearly, most = statistics.median(ordered), ordered[int(len(ordered) * 0.99)], ordered[-1]
    return f"{what}: {len(ordered)} creations, median {middle * 1e3:.1f} ms, 99 % {nearly * 1e3:.1f} ms, longest {most * 1e3:.1f} ms"


def measure(plain: Address, users_port: int, authority: Path) -> None:
    with Connection(plain) as connection:
        quiet = [create(connection) for _ in range(QUIET_CREATIONS)]
        print(told("quiet", quiet))
        clients = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.login_storm", "--port", str(users_port), "--authority", str(authority)]
        )
        begin, amid = perf_counter(), list[float]()
        while clients.poll() is None:
            amid.append(create(connection))
        print(told(f"while {CLIENTS} clients log in ({perf_counter() - begin:.1f} s with their own start)", amid))
        assert clients.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, help="be the clients of this port")
    parser.add_argument("--authority", help="the certificates that the clients trust")
    asked = parser.parse_args()
    if asked.port is not None:
        trio.run(storm, asked.port, asked.authority)
        return
    with world() as created:
        node = created.start("minicontroller", authorizes=True)
        measure(node.plain, node.users[1], created.authority)


if __name__ == "__main__":
    main()
