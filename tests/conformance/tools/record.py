"""Calls the tools of Kafka 3.9.1 at a real Kafka and writes what they wrote to recordings/: `python
-m tests.conformance.tools.record`. Needs Java and Maven.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conformance.scenario import KAFKA_SETTINGS, login
from tests.conformance.tools import plain, secured
from tests.conformance.tools.call import Call
from tests.conformance.tools.running import by_part, run, write
from tests.support.kafka import KafkaCluster, running_kafka

PAUSE_SECONDS = 0.25
"""A change takes Kafka less to reach its other brokers, whom a tool may ask next."""


def record(cluster: KafkaCluster, parts: Mapping[str, Sequence[Call]], files: Mapping[str, str]) -> None:
    calls = [call for each in parts.values() for call in each]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(calls, files, cluster.addresses, Path(folder), pause_seconds=PAUSE_SECONDS)
    for name, each in by_part(parts, outcomes).items():
        write(name, each)


def main() -> None:
    with running_kafka() as cluster:
        record(cluster, plain.PLAIN, plain.FILES)
    with running_kafka(settings=KAFKA_SETTINGS, login=login("admin")) as cluster:
        record(cluster, secured.SECURED, secured.FILES)


if __name__ == "__main__":
    main()
