"""Asks real Kafkas of three releases what this folder has cases of, and writes what they do to
recordings/: `python -m tests.conformance.releases.record [lists|repeated|policies ...]`.

Needs Java with its compiler, and Maven for Kafka's jars.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance.releases import lists, policies, repeated, repeated_cases
from tests.conformance.releases.kafkas import NODES, RELEASES, running, write
from tests.support.kafka import KafkaProcesses

RECORDED: Mapping[str, Callable[[KafkaProcesses], list[Any]]] = {
    "lists": lists.asked,
    "policies": policies.asked,
    "repeated": repeated.asked,
}
NAMES: Mapping[str, Callable[[], list[Any]]] = {
    "lists": lists.cases,
    "policies": lambda: [case.name for case in policies.CASES],
    "repeated": lambda: [case.name for case in repeated_cases.CASES],
}


def main() -> None:
    names = sys.argv[1:] or list(RECORDED)
    found: dict[str, list[list[Any]]] = {name: [] for name in names}
    for kafka in RELEASES:
        with running(kafka) as cluster:
            for name in names:
                found[name].append(RECORDED[name](cluster))
    if "policies" in found:  # the release that nodes follow has a second way
        with running(NODES, {policies.SHOWS_RESULTS: "true"}) as cluster:
            found["policies"].append(policies.asked(cluster))
    for name, columns in found.items():
        write(name, [list(row) for row in zip(NAMES[name](), *columns, strict=True)])


if __name__ == "__main__":
    main()
