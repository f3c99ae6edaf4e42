"""`python -m benchmarks.audit_burst`: what a burst of decisions costs without the audit log and
with it, flushed in intervals and always.

Rule: a machine is never the same for long, so bursts are compared that ran one after the other, in
an order that turns round each time; what is told is the median of these ratios and the half of them
around it. Processor time stands beside wall time: what else happens on the machine disturbs it
less. Every burst has a node of its own, and every answer is checked.
"""

import argparse
import os
import re
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from benchmarks.peers.base import Address, parse_ready_line
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.registry import KAFKA

COMMAND = Path(sys.executable).with_name("minicontroller")
VERSION = 7
WINDOW = 32
"""Requests on their way at a time."""
MODES = ("off", "interval", "always")
SYNCS = re.compile(r"^minicontroller_audit_syncs_total{.*} (\S+)$", re.MULTILINE)


class Node(NamedTuple):
    """One that serves."""

    address: Address
    page: str
    """host:port of its metrics."""
    pid: int

    def syncs(self) -> float:
        """How often it has forced its audit log to the disk."""
        with urlopen(f"http://{self.page}/metrics") as answer:
            return sum(map(float, SYNCS.findall(answer.read().decode())))

    def cpu_seconds(self) -> tuple[float, float]:
        """Return the processor time of the event loop's thread, and of all other threads."""
        used = {
            int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9
            for task in Path(f"/proc/{self.pid}/task").iterdir()
        }
        return used.pop(self.pid), sum(used.values())


@contextmanager
def node(settings: Sequence[str], store: str) -> Iterator[Node]:
    arguments = [str(COMMAND), "up", "--brokers", "1", "--port", "0", "--store", store]
    for setting in settings:
        arguments += ["--set", setting]
    same_hashes = os.environ | {"PYTHONHASHSEED": "0"}
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=same_hashes)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield Node(parse_ready_line(line)[0], line.rpartition("http=")[2].strip(), process.pid)
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
        frames.append(KAFKA.encode_request(header, request))
    return frames


def send(address: Address, frames: Sequence[bytes]) -> tuple[list[bytes], list[float]]:
    """The answers, and the seconds that each took. A new request goes out for each answer that
    comes in.
    """
    sent: list[float] = []
    answers: list[bytes] = []
    latencies: list[float] = []
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        while len(answers) < len(frames):
            while len(sent) < len(frames) and len(sent) - len(answers) < WINDOW:
                connection.sendall(frames[len(sent)])
                sent.append(time.perf_counter())
            select.select([connection], [], [])
            received += connection.recv(1 << 16)
            while len(received) >= 4 and len(received) >= 4 + (size := struct.unpack_from(">i", received)[0]):
                answers.append(received[4 : 4 + size])
                received = received[4 + size :]
                latencies.append(time.perf_counter() - sent[len(latencies)])
    return answers, latencies


def check(answers: Sequence[bytes], *, refused: bool) -> None:
    expected = ErrorCode.INVALID_TOPIC_EXCEPTION if refused else ErrorCode.NONE
    for answer in answers:
        response = KAFKA.decode_response(ApiKey.CREATE_TOPICS, VERSION, answer)[1]
        assert isinstance(response, CreateTopicsResponse)
        assert [topic.error_code for topic in response.topics] == [expected], response


Figures = Mapping[str, float]


def burst(mode: str, frames: Sequence[bytes], options: argparse.Namespace) -> Figures:
    """One burst at a node of its own."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        settings = ["http.listen=127.0.0.1:0"]
        if mode != "off":
            settings += [f"audit.dir={folder}", f"audit.flush={mode}"]
        with node(settings, options.store) as running:
            send(running.address, requests(200, refused=True))
            loop, others = running.cpu_seconds()
            began = time.perf_counter()
            answers, latencies = send(running.address, frames)
            total = time.perf_counter() - began
            loop_after, others_after = running.cpu_seconds()
            syncs = running.syncs()
        check(answers, refused=options.refused)
        lines = sum(file.read_bytes().count(b"\n") for file in Path(folder).iterdir())
        assert mode == "off" or lines >= len(frames), lines
    ordered = sorted(latencies)
    count = len(frames)
    return {
        "wall time": total / count * 1e6,
        "mean latency": statistics.fmean(latencies) * 1e6,
        "median latency": ordered[count // 2] * 1e6,
        "99th percentile": ordered[-count // 100] * 1e6,
        "CPU, event loop": (loop_after - loop) / count * 1e6,
        "CPU, all threads": (loop_after + others_after - loop - others) / count * 1e6,
        "decisions for each fsync": count / syncs if syncs else 0.0,
    }


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def report(rounds: Sequence[Mapping[str, Figures]]) -> str:
    """A table: medians for each decision, and of the ratios of each round's bursts to its own
    without the log.
    """
    modes = [mode for mode in MODES[1:] if mode in rounds[0]]
    lines = ["", "| | without | " + " | ".join(f"`{mode}` | with / without" for mode in modes) + " |"]
    lines.append("|---|---:|" + "---:|---:|" * len(modes))
    for name in rounds[0]["off"]:
        cells = [f"{statistics.median(each['off'][name] for each in rounds):,.0f}"]
        for mode in modes:
            cells.append(f"{statistics.median(each[mode][name] for each in rounds):,.0f}")
            if not any(each["off"][name] for each in rounds):
                cells[0] = "-"
                cells.append("-")
                continue
            low, middle, high = quartiles([each[mode][name] / each["off"][name] for each in rounds])
            cells.append(f"{middle:.3f} ({low:.3f} - {high:.3f})")
        unit = "" if name.startswith("decisions") else ", us"
        lines.append(f"| {name}{unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10, help="Of three bursts each.")
    parser.add_argument("--store", default="memory")
    parser.add_argument("--folder", help="Where the audit files go: the disk that is measured.")
    parser.add_argument("--refused", action="store_true", help="Decisions that write nothing, which are the fastest.")
    parser.add_argument("--flush", choices=MODES[1:], action="append", help="Only this; may be given again.")
    options = parser.parse_args()
    modes = [mode for mode in MODES if mode == "off" or mode in (options.flush or MODES)]
    frames = requests(options.decisions, refused=options.refused)
    rounds = []
    for number in range(options.rounds):
        order = modes if number % 2 == 0 else modes[::-1]
        rounds.append({mode: burst(mode, frames, options) for mode in order})
        each = rounds[-1]
        print(
            f"round {number + 1}:",
            ", ".join(
                f"{mode} {each[mode]['wall time']:.0f} us wall, {each[mode]['CPU, all threads']:.0f} us CPU"
                for mode in modes
            ),
            flush=True,
        )
    print(report(rounds))


if __name__ == "__main__":
    main()
