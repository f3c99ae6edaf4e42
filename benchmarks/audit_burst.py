"""What the audit log costs: bursts of decisions at one node, without it and with it, in turns. `python -m benchmarks.audit_burst`

Rule: pairs are compared, run one after the other, because the machine is never the same for long; and the median of the pairs is told.
"""

import argparse
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.base import Address, parse_ready_line
from minicontroller.protocol import registry
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

COMMAND = Path(sys.executable).with_name("minicontroller")
VERSION = 7
WINDOW = 32
"""Requests on their way at a time."""


@contextmanager
def node(settings: Sequence[str], store: str) -> Iterator[tuple[Address, int]]:
    arguments = [str(COMMAND), "up", "--brokers", "1", "--port", "0", "--store", store]
    for setting in settings:
        arguments += ["--set", setting]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield parse_ready_line(process.stdout.readline())[0], process.pid
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def requests(count: int, *, refused: bool) -> list[bytes]:
    frames = []
    for number in range(count):
        name = "a/b" if refused else f"topic-{number}"
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=30_000
        )
        header = RequestHeader(
            api_key=ApiKey.CREATE_TOPICS, api_version=VERSION, correlation_id=number, client_id="burst"
        )
        frames.append(registry.encode_request(header, request))
    return frames


def burst(address: tuple[str, int], frames: Sequence[bytes]) -> tuple[float, list[float]]:
    """Seconds in all, and for each answer. A new request goes out for each answer that comes in."""
    sent: list[float] = []
    latencies: list[float] = []
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        began = time.perf_counter()
        while len(latencies) < len(frames):
            while len(sent) < len(frames) and len(sent) - len(latencies) < WINDOW:
                connection.sendall(frames[len(sent)])
                sent.append(time.perf_counter())
            select.select([connection], [], [])
            received += connection.recv(1 << 16)
            while len(received) >= 4 and len(received) >= 4 + (size := struct.unpack_from(">i", received)[0]):
                received = received[4 + size :]
                latencies.append(time.perf_counter() - sent[len(latencies)])
        return time.perf_counter() - began, latencies


def measure(settings: Sequence[str], store: str, frames: Sequence[bytes], warm_up: Sequence[bytes]) -> list[float]:
    with node(settings, store) as (address, pid):
        burst(address, warm_up)
        before = cpu_seconds(pid)
        total, latencies = burst(address, frames)
        cpu = cpu_seconds(pid) - before
    ordered = sorted(latencies)
    p50, p99 = ordered[len(ordered) // 2], ordered[-len(ordered) // 100]
    return [total, cpu, statistics.fmean(latencies) * 1e3, p50 * 1e3, p99 * 1e3]


def cpu_seconds(pid: int) -> float:
    """Of all its threads: what a machine that does other things, too, leaves comparable."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--flush", default="interval", choices=["interval", "always"])
    parser.add_argument("--store", default="memory")
    parser.add_argument("--refused", action="store_true", help="Decisions that write nothing, which are the fastest.")
    options = parser.parse_args()
    frames = requests(options.decisions, refused=options.refused)
    warm_up = requests(200, refused=True)
    ratios = []
    for _ in range(options.pairs):
        without = measure([], options.store, frames, warm_up)
        with tempfile.TemporaryDirectory() as folder:
            audit = [f"audit.dir={folder}", f"audit.flush={options.flush}"]
            with_audit = measure(audit, options.store, frames, warm_up)
            lines = sum(file.read_bytes().count(b"\n") for file in Path(folder).iterdir())
        assert lines >= options.decisions
        ratios.append([with_audit[i] / without[i] for i in range(5)])
        for name, figures in (("without", without), ("with", with_audit)):
            total, cpu, mean, median, slowest = figures
            print(
                f"{name:>8}: {total:6.2f} s, CPU {cpu:5.2f} s, {options.decisions / total:7.0f} decisions/s, "
                f"mean {mean:6.2f} ms, p50 {median:6.2f} ms, p99 {slowest:6.2f} ms"
            )
    for index, name in enumerate(("time", "CPU", "mean", "p50", "p99")):
        values = [ratio[index] for ratio in ratios]
        print(f"{name:>8}: with / without, median of {len(values)} pairs: {statistics.median(values):.3f}")


if __name__ == "__main__":
    main()
