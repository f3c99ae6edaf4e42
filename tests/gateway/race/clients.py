"""Clients that race: each asks for good and bad changes, immediately after each other, of topics
that the others change, too.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tests.support.wire import Wire

MOST_PARTITIONS, LEAST_RETENTION, MOST_RETENTION = 12, 60_000, 86_400_000
RULES = f"""
[[name_pattern]]
pattern = '[a-z0-9.-]+|__.*'

[[partitions]]
max = {MOST_PARTITIONS}

[[replication]]
max = 2
operations = ["create", "alter", "reassign"]

[[config_bounds]]
configs = {{ "retention.ms" = {{ min = {LEAST_RETENTION}, max = {MOST_RETENTION}, absent = "allow" }} }}

[[config_bounds]]
configs = {{ "cleanup.policy" = {{ allowed = ["delete", "compact,delete", "delete,compact"] }} }}
"""
TOPIC, SET, DELETE, APPEND, SUBTRACT = 2, 0, 1, 2, 3
NO_ID = str(UUID(int=0))
POLICY_VIOLATION, NONE = 44, 0
SHARED = 6
"""How many topics all clients change."""
Answer = tuple[str, str, int]
"""An API, the name of a topic, and the error code."""


class Racer:
    """One client, which asks one gateway after the other."""

    def __init__(self, number: int, gateways: list[str], seed: int) -> None:
        self.number = number
        self.answers: list[Answer] = []
        self.broken: list[str] = []
        self._gateways = gateways
        self._random = random.Random(seed)
        self._fresh = 0
        self._wires: dict[str, Wire] = {}

    def run(self, is_over: threading.Event) -> None:
        """Ask until it is over. A gateway that ends the connection is asked again."""
        while not is_over.is_set():
            try:
                self._random.choice(self._games)()
            except OSError as error:
                self.broken.append(repr(error))
                self.close()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    @property
    def codes(self) -> Counter[tuple[str, int]]:
        return Counter((api, code) for api, _, code in self.answers)

    # ------------------------------------------------------------------ games

    @property
    def _games(self) -> list[Callable[[], None]]:
        change = [self._grow, self._set, self._set, self._edit_list, self._replace, self._move, self._delete]
        return [self._create_and_break, self._create_and_break, self._create, self._touch, *change]

    def _create_and_break(self) -> None:
        """Make a good topic and at once ask for what the rules forbid, at any gateway."""
        self._fresh += 1
        name = f"fresh-{self.number}-{self._fresh}"
        self._created(name, self._random.randint(1, 3), {})
        bad: list[Callable[[], None]] = [
            lambda: self._grown(name, 100),
            lambda: self._altered(name, SET, "retention.ms", "-1"),
        ]
        bad += [lambda: self._replaced(name, {"retention.ms": "-1"}), lambda: self._moved(name, [1, 2, 3])]
        bad += [lambda: self._altered(name, SET, "cleanup.policy", "compact")]
        for ask in self._random.sample(bad, 3):
            ask()
        if self._random.random() < 0.7:
            self._deleted(name)

    def _create(self) -> None:
        retention = str(self._random.choice([-1, 1000, LEAST_RETENTION, MOST_RETENTION, MOST_RETENTION + 1]))
        configs = {} if self._random.random() < 0.5 else {"retention.ms": retention}
        self._created(self._shared(), self._random.choice([1, 2, 4, 12, 13, 50]), configs)

    def _touch(self) -> None:
        """Ask for topics as a producer does, which has them created."""
        names = [self._shared(), f"BAD-{self._random.randint(1, 5)}", f"auto-{self._random.randint(1, 5)}"]
        asked = {
            "topics": [{"name": name} for name in self._random.sample(names, 2)],
            "allow_auto_topic_creation": True,
        }
        self._wire().ask("Metadata", 9, asked)

    def _grow(self) -> None:
        self._grown(self._shared(), self._random.randint(2, 16))

    def _set(self) -> None:
        value = self._random.choice([LEAST_RETENTION, MOST_RETENTION, -1, 5, MOST_RETENTION * 2])
        operation = self._random.choice([SET, SET, DELETE])
        self._altered(self._shared(), operation, "retention.ms", str(value) if operation == SET else None)

    def _edit_list(self) -> None:
        operation = self._random.choice([APPEND, SUBTRACT, SET])
        value = self._random.choice(["compact", "delete", "compact,delete"])
        self._altered(self._shared(), operation, "cleanup.policy", value)

    def _replace(self) -> None:
        retention = str(self._random.choice([LEAST_RETENTION, MOST_RETENTION, -1]))
        self._replaced(self._shared(), {"retention.ms": retention})

    def _move(self) -> None:
        self._moved(self._shared(), self._random.choice([[1], [2], [1, 2], [3, 1], [1, 2, 3]]))

    def _delete(self) -> None:
        self._deleted(self._shared())

    # ------------------------------------------------------------------ requests

    def _shared(self) -> str:
        return f"shared-{self._random.randrange(SHARED)}"

    def _wire(self) -> Wire:
        address = self._random.choice(self._gateways)
        if address not in self._wires:
            self._wires[address] = Wire(address)
        return self._wires[address]

    def _asked(self, api: str, version: int, name: str, request: dict[str, Any], rows: str) -> dict[str, Any]:
        answer = self._wire().ask(api, version, request)
        (row,) = answer[rows]
        if api == "AlterPartitionReassignments":
            (row,) = row["partitions"]
        self.answers.append((api, name, row["error_code"]))
        return dict(row)

    def _created(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        rows = [{"name": key, "value": value} for key, value in configs.items()]
        wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": []}
        request = {"topics": [{**wanted, "configs": rows}], "timeout_ms": 10_000, "validate_only": False}
        self._asked("CreateTopics", 7, name, request, "topics")

    def _grown(self, name: str, count: int) -> None:
        wanted = {"name": name, "count": count, "assignments": None}
        request = {"topics": [wanted], "timeout_ms": 10_000, "validate_only": False}
        self._asked("CreatePartitions", 3, name, request, "results")

    def _altered(self, name: str, operation: int, key: str, value: str | None) -> None:
        config = {"name": key, "config_operation": operation, "value": value}
        wanted = {"resource_type": TOPIC, "resource_name": name, "configs": [config]}
        request = {"resources": [wanted], "validate_only": False}
        self._asked("IncrementalAlterConfigs", 1, name, request, "responses")

    def _replaced(self, name: str, configs: dict[str, str]) -> None:
        rows = [{"name": key, "value": value} for key, value in configs.items()]
        wanted = {"resource_type": TOPIC, "resource_name": name, "configs": rows}
        self._asked("AlterConfigs", 2, name, {"resources": [wanted], "validate_only": False}, "responses")

    def _moved(self, name: str, replicas: list[int]) -> None:
        partition = {"partition_index": 0, "replicas": replicas}
        request = {"timeout_ms": 10_000, "topics": [{"name": name, "partitions": [partition]}]}
        answer = self._wire().ask("AlterPartitionReassignments", 0, request)
        rows = [row for topic in answer["responses"] for row in topic["partitions"]]
        code = rows[0]["error_code"] if rows else answer["error_code"]
        self.answers.append(("AlterPartitionReassignments", name, code))

    def _deleted(self, name: str) -> None:
        request = {"topics": [{"name": name, "topic_id": NO_ID}], "timeout_ms": 10_000}
        self._asked("DeleteTopics", 6, name, request, "responses")
