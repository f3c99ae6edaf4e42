"""Puts the same requests of records, groups and transactions to a real Kafka and to `up --records`,
and prints where the answers differ.

    python -m tests.records.beside_kafka                       # starts both, runs every sequence
    python -m tests.records.beside_kafka --only produce,fetch  # those whose names begin so
    python -m tests.records.beside_kafka --kafka HOST:PORT     # beside a Kafka that runs already

What no two clusters have in common (ids, times, addresses) is replaced before it is compared. It
exits with 1 if any answer differs.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from difflib import unified_diff
from pathlib import Path
from typing import IO

from tests.records.sequences import SEQUENCES, Sequence
from tests.records.side import Side
from tests.support.kafka import KafkaCluster

SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "3600000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
READY = re.compile(r"bootstrap\.servers=(\S+)")


@contextmanager
def a_kafka() -> Iterator[str]:
    cluster = KafkaCluster(Path(tempfile.mkdtemp(prefix="kafka-")), 1, SETTINGS)
    try:
        cluster.start()
        yield cluster.bootstrap
    finally:
        cluster.stop()


@contextmanager
def ours(log: IO[str] | None) -> Iterator[str]:
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "minicontroller", "up", "--records", "--brokers", "1", "--port", "0", *settings]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        ready = READY.search(process.stdout.readline())
        assert ready is not None
        yield ready[1]
    finally:
        process.terminate()
        process.wait()


def lines_of(sequence: Sequence, address: str, run: str) -> list[str]:
    """Run a sequence at one cluster, and return what it saw."""
    with Side(address, run) as side:
        try:
            sequence(side)
        except Exception as error:  # noqa: BLE001 - that one cluster ends a sequence early is a difference, too
            side.note(f"ended by {type(error).__name__}: {error}")
        return side.lines


def compare(name: str, kafka: str, mine: str) -> int:
    """Print the differences of one sequence, and return their number."""
    run = f"{name}-{time.time_ns() // 1_000_000}"
    begun = time.monotonic()
    theirs, own = (lines_of(SEQUENCES[name], address, run) for address in (kafka, mine))
    different = [line for line in unified_diff(theirs, own, "Kafka", "ours", lineterm="", n=0) if line[0] in "+-"][2:]
    head = f"{name}: {len(theirs)} answers, {len(different)} lines differ, {time.monotonic() - begun:.1f} s"
    sys.stdout.write("\n    ".join((head, *different)) + "\n")
    sys.stdout.flush()
    return len(different)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the first letters of the sequences to run, with commas")
    parser.add_argument("--kafka", help="the address of a Kafka that runs already")
    parser.add_argument("--log", type=argparse.FileType("w"), help="where the log of `up` goes, instead of here")
    given = parser.parse_args()
    wanted = tuple(given.only.split(","))
    with nullcontext(given.kafka) if given.kafka else a_kafka() as kafka, ours(given.log) as mine:
        return int(sum(compare(name, kafka, mine) for name in SEQUENCES if name.startswith(wanted)) > 0)


if __name__ == "__main__":
    sys.exit(main())
