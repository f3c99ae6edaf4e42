"""`python -m tests.gateway.clients`: all clients before all Kafkas, in plain text and with TLS and
logins, directly and through gateways of each identity. It prints what was compared, what the
clients were told of a refusal, and the differences, and then a table; with a difference it ends
with 1. A run with nothing chosen and without differences writes the table to docs/gateway.md.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import KafkaException

from tests.gateway.clients.comparing import CLIENTS, Client, compare
from tests.gateway.clients.tools_of_conformance import tools_of_conformance
from tests.gateway.clients.worlds import ENVELOPE, GATEWAY, MAP, NEWEST, PASS, PLAINTEXT, SASL_SSL, World
from tests.support.kafka_kraft import KAFKAS, Kafka

Place = tuple[Kafka, str, str]
"""A Kafka, the protocol of its clients, and the identity of the gateway."""
OLDEST, OLD = KAFKAS[:2]
PLACES: tuple[Place, ...] = (
    *((kafka, protocol, PASS) for kafka in KAFKAS for protocol in (PLAINTEXT, SASL_SSL)),
    (OLD, SASL_SSL, ENVELOPE),
    (NEWEST, SASL_SSL, ENVELOPE),
    (OLDEST, SASL_SSL, MAP),
    (NEWEST, SASL_SSL, MAP),
)
PAGE = Path(__file__).parents[3] / "docs" / "gateway.md"
BEGIN, END = "<!-- clients -->\n", "<!-- end of clients -->\n"
Cells = dict[tuple[str, Place], str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.clients")
    parser.add_argument("--kafka", choices=[str(each) for each in KAFKAS], help="this Kafka only")
    parser.add_argument("--client", action="append", choices=CLIENTS, help="these clients only")
    parser.add_argument("--protocol", choices=[PLAINTEXT, SASL_SSL], help="this protocol only")
    parser.add_argument("--identity", choices=[PASS, ENVELOPE, MAP], help="this identity only")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends, too
    clients = {name: client for name, client in CLIENTS.items() if name in (chosen.client or CLIENTS)}
    cells: Cells = {}
    for place in PLACES:
        wanted = (chosen.kafka, chosen.protocol, chosen.identity)
        if all(want in (None, str(each)) for want, each in zip(wanted, place, strict=True)):
            kafka, protocol, identity = place
            with (
                tempfile.TemporaryDirectory() as folder,
                World(kafka, protocol, Path(folder), identity).running() as world,
            ):
                cells |= {(name, place): cell for name, cell in all_in(world, clients).items()}
    is_whole = not any(vars(chosen).values())
    differs = any(cell.isdigit() for cell in cells.values()) or (is_whole and tools_of_conformance(say))
    table = table_of(cells)
    say(table)
    if is_whole and not differs:
        before, begin, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{begin}{table}{END}{rest.partition(END)[2]}")
    return 1 if differs else 0


def all_in(world: World, clients: Mapping[str, Client]) -> dict[str, str]:
    """Compare in one world. Return by client as whom it did the same on both ways, or the number of
    differences.
    """
    cells = {}
    for name, client in clients.items():
        logs_in = world.protocol != PLAINTEXT
        users = client.users if logs_in else client.users[:1] if "without" not in name else ()
        if world.kafka not in client.kafkas or world.identity not in client.identities or not users:
            continue
        found = sum(differences(world, name, user) for user in users)
        cells[name] = str(found) if found else ", ".join(users) if logs_in else "nobody"
    return cells


def differences(world: World, client: str, user: str) -> int:
    begin = time.monotonic()
    try:
        outcome = compare(world, client, user)
    except (AssertionError, KafkaException, OSError, subprocess.SubprocessError) as error:
        say(f"{world.kafka} {world.protocol} {world.identity} {client} as {user}: {error!r}")
        return 1
    steps, left = len(outcome.seen[GATEWAY]), len(outcome.left[GATEWAY])
    say(f"{world.kafka} {world.protocol} {world.identity} {client} as {user}: {steps} steps, {left} things left")
    say(f"    {time.monotonic() - begin:.1f} s; refused: {outcome.refused[GATEWAY]}")
    for line in outcome.differences:
        say(f"    {line}")
    return len(outcome.differences)


def table_of(cells: Cells) -> str:
    """Return a table with a row for each client and a column for each place."""
    places = list(dict.fromkeys(place for _, place in cells))
    rows = [["client", *(" ".join(map(str, place)) for place in places)], ["---"] * (len(places) + 1)]
    rows += [
        [name, *(cells.get((name, place), "") for place in places)] for name in dict.fromkeys(name for name, _ in cells)
    ]
    return "".join(_row(each) for each in rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
