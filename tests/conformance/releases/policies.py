"""What Kafka's older AlterConfigPolicy is asked: the requests, and how a cluster is asked for it.

A policy that allows everything writes what it is asked. Each case has a topic of its own with the
configs of PRESENT.
"""

from typing import Any

import msgspec

from tests.conformance.releases.kafkas import BROKER, TOPIC, asked_of_policy, created
from tests.support.kafka import KafkaProcesses
from tests.support.wire import Body, Wire

SET, DELETE, APPEND, SUBTRACT = range(4)
RETENTION, CLEANUP, SEGMENT, THREADS = "retention.ms", "cleanup.policy", "segment.bytes", "log.cleaner.threads"
PRESENT = {RETENTION: "5000", CLEANUP: "compact"}
SHOWS_RESULTS = "alter.config.policy.kraft.compatibility.enable"
LOGGER, METRICS, GROUP = 8, 16, 32


class Asked(msgspec.Struct, frozen=True):
    """A change of the configs of one resource. AlterConfigs has entries of two."""

    name: str
    entries: tuple[tuple[Any, ...], ...]
    kind: int = TOPIC
    resource: str = "policy-{0}"
    validate_only: bool = False

    @property
    def api(self) -> str:
        return "AlterConfigs" if self.name.startswith("all") else "IncrementalAlterConfigs"

    def body(self, number: int) -> Body:
        configs = [
            {"name": each[0], "value": each[-1]} | ({"config_operation": each[1]} if len(each) == 3 else {})
            for each in self.entries
        ]
        resource = {"resource_type": self.kind, "resource_name": self.resource.format(number), "configs": configs}
        return {"resources": [resource], "validate_only": self.validate_only}


CASES = [
    Asked("nothing", ()),
    Asked("SET", ((RETENTION, SET, "6000"),)),
    Asked("SET to the same", ((RETENTION, SET, "5000"),)),
    Asked("SET to the same in another form", ((RETENTION, SET, " 05000"),)),
    Asked("SET of what is not set to its default", ((SEGMENT, SET, "1073741824"),)),
    Asked("SET to an invalid value", ((RETENTION, SET, "x"),)),
    Asked("SET of an unknown key", (("unknown.key", SET, "x"),)),
    Asked("SET, only asked", ((RETENTION, SET, "6000"),), validate_only=True),
    Asked("SET to the same, only asked", ((RETENTION, SET, "5000"),), validate_only=True),
    Asked("SET of two, one to the same", ((RETENTION, SET, "5000"), (SEGMENT, SET, "2000000"))),
    Asked("DELETE", ((RETENTION, DELETE, None),)),
    Asked("DELETE with a value", ((RETENTION, DELETE, "5000"),)),
    Asked("DELETE of what is not set", ((SEGMENT, DELETE, None),)),
    Asked("DELETE of an unknown key", (("unknown.key", DELETE, None),)),
    Asked("DELETE and SET", ((RETENTION, DELETE, None), (SEGMENT, SET, "2000000"))),
    Asked("APPEND", ((CLEANUP, APPEND, "delete"),)),
    Asked("APPEND of what is there", ((CLEANUP, APPEND, "compact"),)),
    Asked("APPEND of both", ((CLEANUP, APPEND, "compact,delete"),)),
    Asked("APPEND to what is not set", (("follower.replication.throttled.replicas", APPEND, "0:1"),)),
    Asked("APPEND to no list", ((RETENTION, APPEND, "1"),)),
    Asked("SUBTRACT", ((CLEANUP, SUBTRACT, "compact"),)),
    Asked("SUBTRACT of what is not there", ((CLEANUP, SUBTRACT, "delete"),)),
    Asked("SUBTRACT from what is not set", (("follower.replication.throttled.replicas", SUBTRACT, "0:1"),)),
    Asked("an unknown operation", ((RETENTION, 9, "5000"),)),
    Asked("a key twice", ((RETENTION, SET, "5000"), (RETENTION, SET, "6000"))),
    Asked("no such topic", ((RETENTION, SET, "6000"),), resource="unknown"),
    Asked("all: the present ones", ((RETENTION, "5000"), (CLEANUP, "compact"))),
    Asked("all: the present ones, only asked", ((RETENTION, "5000"), (CLEANUP, "compact")), validate_only=True),
    Asked("all: none", ()),
    Asked("all: one of them", ((RETENTION, "5000"),)),
    Asked("all: others", ((SEGMENT, "2000000"),)),
    Asked("all: an invalid value", ((RETENTION, "x"),)),
    Asked("all: no such topic", ((RETENTION, "6000"),), resource="unknown"),
    Asked("broker: nothing", (), BROKER, "1"),
    Asked("broker: DELETE of what is not set", ((THREADS, DELETE, None),), BROKER, "1"),
    Asked("broker: SET", ((THREADS, SET, "2"),), BROKER, "1"),
    Asked("broker: SET to the same", ((THREADS, SET, "2"),), BROKER, "1"),
    Asked("broker: SET in another form of the id", ((THREADS, SET, "2"),), BROKER, "+1"),
    Asked("broker: SET, only asked", ((THREADS, SET, "1"),), BROKER, "1", validate_only=True),
    Asked("broker: DELETE", ((THREADS, DELETE, None),), BROKER, "1"),
    Asked("broker: APPEND", (("log.cleanup.policy", APPEND, "compact"),), BROKER, ""),
    Asked("broker: APPEND of what is there", (("log.cleanup.policy", APPEND, "compact"),), BROKER, ""),
    Asked("broker: SUBTRACT", (("log.cleanup.policy", SUBTRACT, "compact"),), BROKER, ""),
    Asked("all: broker, none", (), BROKER, "1"),
    Asked("all: broker, one", ((THREADS, "2"),), BROKER, "1"),
    Asked("all: broker, the present one", ((THREADS, "2"),), BROKER, "1"),
    Asked("all: default of brokers", ((THREADS, "2"),), BROKER, ""),
    Asked("all: default of brokers, none", (), BROKER, ""),
    Asked("logger: SET", (("kafka.server.KafkaApis", SET, "INFO"),), LOGGER, "1"),
    Asked("metrics: SET", (("interval.ms", SET, "5000"),), METRICS, "m"),
    Asked("group: SET", (("consumer.session.timeout.ms", SET, "46000"),), GROUP, "g"),
]


def asked(cluster: KafkaProcesses) -> list[Any]:
    """The code of each case, and what the policy was asked for it."""
    own = [{"name": key, "value": value} for key, value in PRESENT.items()]
    names = [f"policy-{number}" for number in range(len(CASES))]
    with Wire(cluster.addresses[1]) as wire:
        created(wire, [{"name": n, "num_partitions": 1, "replication_factor": 1, "configs": own} for n in names])
        rows = []
        for number, case in enumerate(CASES):
            before = len(asked_of_policy(cluster, since=0))
            version = 1 if case.api == "IncrementalAlterConfigs" else 2
            answer = wire.ask(case.api, version, case.body(number))
            rows.append([answer["responses"][0]["error_code"], asked_of_policy(cluster, since=before)])
    return rows
