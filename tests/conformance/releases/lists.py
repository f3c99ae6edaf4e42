"""What APPEND and SUBTRACT make of lists: the combinations, and how a cluster is asked for them."""

import time
from collections.abc import Mapping, Sequence
from itertools import product

from tests.conformance.releases.kafkas import SETTLING_SECONDS, TOPIC, configs, created, stored_configs
from tests.support.kafka import KafkaProcesses
from tests.support.wire import Wire

SET, APPEND, SUBTRACT = 0, 2, 3
CLEANUP, THROTTLED = "cleanup.policy", "leader.replication.throttled.replicas"
COMBINATIONS: Mapping[str, tuple[Sequence[str | None], Sequence[str]]] = {
    CLEANUP: (
        (
            None,
            "compact",
            "compact,delete",
            "delete,delete",
            "delete, compact",
            "delete,compact,delete",
            " compact",
            "compact,",
            ",compact",
            "",
            ",",
        ),
        (
            "delete",
            "compact",
            "delete,delete",
            "delete, compact",
            " delete",
            "delete,compact",
            "",
            ",",
            "compact,",
            ",delete",
            "delete,,compact",
            "bogus",
        ),
    ),
    THROTTLED: (
        (None, "0:1", "0:1,,1:1", "0:1,0:1", "0:1, 1:1", "*", "", ","),
        ("0:1", "1:1", " 1:1", "0:1,0:1", "0:1,,1:1", ",0:1", "", "*", "bad"),
    ),
}

Row = tuple[str, str | None, int, str]
"""The key, its value before or None, the operation and its operand."""
Result = tuple[int, int, str | None, str | None]
"""The codes of the SET and of the operation, the stored value afterwards, and the described one."""


def cases() -> list[Row]:
    return [
        (key, before, operation, operand)
        for key, (befores, operands) in COMBINATIONS.items()
        for before, operation, operand in product(befores, (APPEND, SUBTRACT), operands)
    ]


def asked(cluster: KafkaProcesses) -> list[Result]:
    """What a cluster makes of each case, in a topic of its own."""
    rows = cases()
    with Wire(cluster.addresses[1]) as wire:
        names = [f"list-{index}" for index in range(len(rows))]
        created(wire, [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names])
        said = [_altered(wire, name, row) for name, row in zip(names, rows, strict=True)]
        time.sleep(SETTLING_SECONDS)
        described, stored = configs(wire, names), stored_configs(cluster)
    return [
        (*each, stored.get(name, {}).get(row[0]), described[name].get(row[0]))
        for name, row, each in zip(names, rows, said, strict=True)
    ]


def _altered(wire: Wire, name: str, row: Row) -> tuple[int, int]:
    key, before, operation, operand = row
    prepared = 0 if before is None else _code(wire, name, key, SET, before)
    return prepared, _code(wire, name, key, operation, operand)


def _code(wire: Wire, name: str, key: str, operation: int, value: str) -> int:
    config = {"name": key, "config_operation": operation, "value": value}
    resource = {"resource_type": TOPIC, "resource_name": name, "configs": [config]}
    answer = wire.ask("IncrementalAlterConfigs", 1, {"resources": [resource], "validate_only": False})
    code: int = answer["responses"][0]["error_code"]
    return code
