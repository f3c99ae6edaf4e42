"""What clients of others see of `up --records`: the scripts of tests/gateway/clients, whose steps
were recorded at a real Kafka.

`python -m tests.records.clients` has all of them go to a fresh Kafka 3.9.2, writes what they saw to
`recorded.json`, goes to ours, and prints the differences; it ends with 1 if there are any.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.gateway.clients.comparing import CLIENTS, KNOWN, REFUSED, REQUEST, left_behind
from tests.gateway.clients.worlds import ADMIN, BROKERS, NAMES, PLAINTEXT, Access, SecuredKafkaCluster, World
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.kafka_kraft import KAFKAS, started

RECORDED = Path(__file__).parent / "recorded.json"
WORKING = [
    name
    for name in CLIENTS
    if not name.startswith(("kafka-*", "requests")) and "share" not in name and "rights" not in name
]
"""The clients that produce and consume."""
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
"""Those of the Kafka that was recorded."""


def seen_by(client: str, bootstrap: str, internal: str, ca: Path) -> list[str]:
    """Return what a client saw and left behind at a cluster, its names made plain. The client goes
    to `bootstrap`, and what it leaves is read at `internal`.
    """
    script = CLIENTS[client]
    purpose = "".join(letter if letter.isalnum() else "-" for letter in client).lower()
    access = Access("direct", bootstrap, PLAINTEXT, ADMIN, ca, f"direct-{script.users[0]}-{purpose}-")
    (lines,) = script.script([access])
    plain = [REQUEST.sub("Request(...)", line.replace(access.prefix, NAMES)) for line in lines]
    seen = [line for line in plain if not line.startswith((REFUSED, *KNOWN))]
    world = cast("World", SimpleNamespace(internal=internal))
    left = left_behind(world, access.prefix, script.records_count)
    return [*seen, *(f"left: {line.replace(access.prefix, NAMES)}" for line in left)]


@contextmanager
def with_records() -> Iterator[MiniCluster]:
    with running_cluster(brokers=BROKERS, settings=SETTINGS, options=["--records"]) as cluster:
        yield cluster


def at_kafka(clients: Sequence[str], folder: Path) -> Mapping[str, list[str]]:
    world = World(KAFKAS[0], PLAINTEXT, folder)
    settings: dict[str, Any] = {**world.settings_of_kafka(), **SETTINGS}
    cluster = SecuredKafkaCluster(folder, BROKERS, settings, PLAINTEXT)
    with started(cluster):
        return {each: seen_by(each, cluster.addresses[1], cluster.internal[1], world.ca) for each in clients}


def differences(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    return [
        *(f"Kafka: {line}" for line in expected if line not in actual),
        *(f"ours: {line}" for line in actual if line not in expected),
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, with_records() as ours:
        recorded = at_kafka(WORKING, Path(folder))
        RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
        address = ours.bootstrap.split(",")[0]
        found = [
            f"{client}: {line}"
            for client, expected in recorded.items()
            for line in differences(expected, seen_by(client, address, address, Path(folder)))
        ]
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"{len(recorded)} clients, {len(found)} differences\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
