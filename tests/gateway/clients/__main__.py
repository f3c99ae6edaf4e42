"""`python -m tests.gateway.clients`: all clients before all Kafkas, in plain text and with TLS and
logins, directly and through the gateway. It prints what was compared, what the clients were told of
a refusal, and the differences; with a difference it ends with 1.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.gateway.clients.comparing import SCRIPTS, compare
from tests.gateway.clients.worlds import GATEWAY, PLAINTEXT, SASL_SSL, World
from tests.support.kafka_kraft import KAFKAS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.clients")
    parser.add_argument("--kafka", choices=[str(each) for each in KAFKAS], help="this Kafka only")
    parser.add_argument("--client", choices=SCRIPTS, help="this client only")
    parser.add_argument("--protocol", choices=[PLAINTEXT, SASL_SSL], help="this protocol only")
    chosen = parser.parse_args()
    differ = 0
    for kafka in KAFKAS:
        for protocol in (PLAINTEXT, SASL_SSL):
            if chosen.kafka in (None, str(kafka)) and chosen.protocol in (None, protocol):
                with tempfile.TemporaryDirectory() as folder, World(kafka, protocol, Path(folder)).running() as world:
                    differ += all_in(world, chosen.client)
    return 1 if differ else 0


def all_in(world: World, chosen: str | None) -> int:
    """Compare in one world, and return how many clients saw a difference."""
    differ = 0
    for client, (_, users) in SCRIPTS.items():
        for user in users if world.protocol == SASL_SSL else users[:1] if "without" not in client else ():
            if chosen not in (None, client):
                continue
            begin = time.monotonic()
            outcome = compare(world, client, user)
            steps, left = len(outcome.seen[GATEWAY]), len(outcome.left[GATEWAY])
            say(f"{world.kafka} {world.protocol} {client} as {user}: {steps} steps, {left} things left")
            say(f"    {time.monotonic() - begin:.1f} s; refused: {outcome.refused[GATEWAY]}")
            for line in outcome.differences:
                say(f"    {line}")
            differ += bool(outcome.differences)
    return differ


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
