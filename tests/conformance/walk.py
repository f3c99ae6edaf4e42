"""A random walk over all APIs: the same requests, right and wrong, to a real Kafka and to ours,
with what earlier steps left behind: `python -m tests.conformance.walk --seed 7 --steps 500`.

It prints each step in which an answer or the state differs, and fails if there is one. A difference
that it finds becomes a scenario or a name in `differences.py`.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.conformance.beside import Both, Compared, running_both
from tests.conformance.case import Case, TopicIdOf, creation
from tests.conformance.cases.acl_requests import ADMIN
from tests.conformance.cases.groups import OFFSETS
from tests.conformance.scenario import KAFKA_SETTINGS, SECURED_SETTINGS, login
from tests.conformance.walk_requests import a_case

SEED, STEPS = 1, 300
SETUP = [
    Case("the coordinators' topic", "CreateTopics", 7, creation(OFFSETS), user=ADMIN),
    Case(
        "coordinators", "Metadata", 12, {"topics": [{"name": "__consumer_offsets"}], "allow_auto_topic_creation": False},
        once_led=("__consumer_offsets",), user=ADMIN,
    ),
]  # fmt: skip
"""Node 1 coordinates every group."""
MOST_STEPS = 1_000_000


def positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number") from None
    if not 0 < number <= MOST_STEPS:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {MOST_STEPS:,}")
    return number


STILL = {"auto.leader.rebalance.enable": "false"}
"""Nothing moves on either side but what a step asks for."""


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.walk", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--seed", type=positive, default=SEED, help=f"which walk (default: {SEED})")
    parser.add_argument("--steps", type=positive, default=STEPS, help=f"how many requests (default: {STEPS})")
    return parser.parse_args(given)


def walk(both: Both, seed: int, steps: int) -> Iterator[Compared]:
    """Take the steps, and yield those in which something differs."""
    random = Random(seed)
    both.begin()
    for case in SETUP:
        both.put(case)
    for step in range(steps):
        case = a_case(random, step, both.tokens)
        if any(topic not in both.topic_ids for topic in ids_in(case.body)):
            continue
        compared = both.put(case)
        if compared.unnamed:
            yield compared


def ids_in(part: Any) -> Iterator[str]:
    """The topics whose ids are in a body."""
    if isinstance(part, TopicIdOf):
        yield part.topic
    elif isinstance(part, dict):
        for value in part.values():
            yield from ids_in(value)
    elif isinstance(part, list):
        for value in part:
            yield from ids_in(value)


def shown(compared: Compared) -> str:
    case = compared.case
    body = json.dumps(case.body, default=str)
    return "\n    ".join([f"{case.key} by {case.user}: {body}", *compared.unnamed])


def main() -> int:
    asked = arguments()
    found = 0
    with running_both({**KAFKA_SETTINGS, **STILL}, {**SECURED_SETTINGS, **STILL}, login(ADMIN)) as both:
        for compared in walk(both, asked.seed, asked.steps):
            found += 1
            sys.stdout.write(f"{shown(compared)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"Seed {asked.seed}: {asked.steps} steps, {found} of them with a difference that has no name.\n")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
