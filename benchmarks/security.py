"""`python -m benchmarks.security`: what TLS costs a node, and what TLS, SCRAM and 1,000 ACLs cost
together, beside what they cost a real Kafka.

Rule: two nodes of either program run side by side, one without an authorizer and one with it. Every
way in is warmed up in the same way, and a round asks at all of them one after the other, so that
another load of the machine meets all alike. Three figures are told of each: requests a second, the
processor time of the node for each request, and that of the client, which speaks TLS, too, and so
has its share in the rate.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter

from . import messages
from .driver import numbered, one_by_one
from .secured import ACLS, PREFIX, TOPIC, End, Node, World, connect, world

PROGRAMS = ("minicontroller", "kafka")
ROUNDS = 9
MOST_FRAMES = 200_000
NAMES = (f"{PREFIX}t-{number}" for number in count())


@dataclass(frozen=True)
class Way:
    """One way into a node, and the node's process."""

    program: str
    security: str
    """Its security in words; empty for none."""
    end: End
    pid: int


@dataclass(frozen=True)
class Round:
    """The figures of one round at one way in."""

    rate: float
    microseconds: float
    """The processor time of the node for each request."""
    client_microseconds: float


Ask = Callable[[End, float], tuple[int, float]]
"""Asks for so many seconds, and returns the number of requests and the seconds that they took."""


def create_one(end: End, seconds: float) -> tuple[int, float]:
    """Create topics, one in each request."""
    frames = [messages.create_topics([next(NAMES)], correlation_id=number) for number in range(int(4000 * seconds))]
    with connect(end) as connection:
        timed = one_by_one(connection, frames, seconds=seconds)
    for answer in timed.answers:
        messages.check_created(answer)
    return len(timed.answers), timed.seconds


def metadata_one(end: End, seconds: float) -> tuple[int, float]:
    """Ask about one topic."""
    with connect(end) as connection:
        timed = one_by_one(connection, QUESTIONS, seconds=seconds)
    messages.check_led(timed.answers[-1], 1, 1)
    return len(timed.answers), timed.seconds


def new_connections(end: End, seconds: float) -> tuple[int, float]:
    """Connect, and ask once."""
    begin, done = perf_counter(), 0
    while (took := perf_counter() - begin) < seconds:
        with connect(end) as connection:
            connection.call(QUESTIONS[0])
        done += 1
    return done, took


QUESTIONS = numbered(messages.metadata([TOPIC]), MOST_FRAMES)


@dataclass(frozen=True)
class Line:
    """What is asked, for how long in a round, and for how long to warm up (a JVM compiles what was
    called thousands of times).
    """

    name: str
    ask: Ask
    seconds: float
    warm_seconds: float


LINES = (
    Line("Metadata of one topic", metadata_one, 1.5, 6.0),
    Line("one creation", create_one, 2.0, 6.0),
    Line("a new connection", new_connections, 1.5, 6.0),
)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far, of all its threads, by Linux' clock for it."""
    return time.clock_gettime(~pid << 3 | 2)


def measured(line: Line, way: Way) -> Round:
    pids = way.pid, os.getpid()
    before = [processor_seconds(pid) for pid in pids]
    requests, seconds = line.ask(way.end, line.seconds)
    used = [processor_seconds(pid) - earlier for pid, earlier in zip(pids, before, strict=True)]
    return Round(requests / seconds, *(each / requests * 1e6 for each in used))


def ways_into(program: str, created: World) -> Sequence[Way]:
    """Start the nodes of a program, and return the ways in, the one without security first."""

    def way(node: Node, security: str, end: End) -> Way:
        return Way(program, security, end, node.process.pid)

    first, second = (created.start(program, authorizes=each) for each in (False, True))
    return (
        way(first, "", End(first.plain)),
        way(first, "TLS", End(first.tls, created.context)),
        way(second, f"TLS, SCRAM and {ACLS} ACLs", End(second.users, created.context, logs_in=True)),
    )


def rounds_of(line: Line, ways: Sequence[Way], rounds: int) -> Mapping[Way, Sequence[Round]]:
    """Ask at all ways in, in each round from another one on."""
    for way in ways:
        line.ask(way.end, line.warm_seconds)
    found: dict[Way, list[Round]] = {way: [] for way in ways}
    for number in range(rounds):
        start = number % len(ways)
        for way in (*ways[start:], *ways[:start]):
            found[way].append(measured(line, way))
    return found


def told(line: Line, ways: Sequence[Way], found: Mapping[Way, Sequence[Round]]) -> Iterable[str]:
    """Yield a row for each way in: its median figures, and the medians of what it costs compared
    with the same round without security, with the middle half of the rounds.
    """
    without = found[ways[0]]
    for way in ways:
        rounds = found[way]
        rate = statistics.median(each.rate for each in rounds)
        used = statistics.median(each.microseconds for each in rounds)
        client = statistics.median(each.client_microseconds for each in rounds)
        row = f"{line.name:22} {way.program:15} {way.security or 'open':26} {rate:8,.0f}/s "
        row += f"{used:9,.1f} us of the node {client:9,.1f} us of the client"
        if way.security:
            slower = [1 - each.rate / plain.rate for each, plain in zip(rounds, without, strict=True)]
            dearer = [each.microseconds / plain.microseconds - 1 for each, plain in zip(rounds, without, strict=True)]
            row += f"   {spread(slower)} of the rate, {spread(dearer)} processor time"
        yield row


def spread(values: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:+.1%} ({low:+.1%} to {high:+.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"{' or '.join(PROGRAMS)}; without any, both")
    parser.add_argument("--lines", nargs="+", choices=[line.name for line in LINES], help="all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    if unknown := set(asked.systems) - set(PROGRAMS):
        parser.error(f"no such system: {', '.join(sorted(unknown))}")
    with world() as created:
        ways = {program: ways_into(program, created) for program in asked.systems or PROGRAMS}
        for line in LINES:
            if asked.lines and line.name not in asked.lines:
                continue
            found = rounds_of(line, [way for each in ways.values() for way in each], asked.rounds)
            for each in ways.values():
                print(*told(line, each, found), sep="\n", flush=True)


if __name__ == "__main__":
    main()
