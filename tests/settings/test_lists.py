"""APPEND and SUBTRACT make of a list what a real Kafka 3.9 made of it, to the blank."""

import pytest

from minicontroller.admin.configs.alterations import altered_topic
from minicontroller.cluster.errors import Refusal
from minicontroller.policies.configs.canonical import canonical
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.config_resources import ConfigOperation
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsResource,
)
from tests.conformance.releases.kafkas import read
from tests.conformance.releases.lists import CLEANUP, Result, Row
from tests.support.grouped import grouped

NODE = NodeConfig({})
RECORDED: list[tuple[Row, Result, Result, Result]] = read("lists")
BY_KEY = {key: [row for row in RECORDED if row[0][0] == key] for key in sorted({row[0][0] for row in RECORDED})}


def altered(overrides: dict[str, str], key: str, operation: int, value: str) -> tuple[int, dict[str, str]]:
    """The code of a change of a topic, and what the topic has afterwards."""
    resource = IncrementalAlterConfigsResource(2, "t", [IncrementalAlterableConfig(key, operation, value)])
    try:
        return 0, altered_topic("t", overrides, resource, NODE)
    except Refusal as refusal:
        return int(refusal.code), overrides


def steps(row: Row) -> tuple[int, int, str | None]:
    """What a node answers to the SET before and to the operation, and the value that it stores."""
    key, before, operation, operand = row
    prepared, overrides = (0, {}) if before is None else altered({}, key, ConfigOperation.SET, before)
    code, after = altered(overrides, key, operation, operand)
    return prepared, code, after.get(key)


@grouped("row, of_3_9, of_4_1, of_4_4", BY_KEY)
def test_results_are_kafka_s(row: Row, of_3_9: Result, of_4_1: Result, of_4_4: Result) -> None:
    """A node answers and stores what Kafka 3.9.2 does."""
    assert steps(row) == tuple(of_3_9[:3])


@grouped("row, of_3_9, of_4_1, of_4_4", BY_KEY)
def test_releases_differ_in_form_alone(row: Row, of_3_9: Result, of_4_1: Result, of_4_4: Result) -> None:
    """What a policy judges is the same with every release, though elements may be repeated or
    empty: the gateway reckons as nodes do.
    """
    meanings = {_meaning(row[0], described) for *_, described in (of_3_9, of_4_1, of_4_4)}
    assert len(meanings) == 1 and of_3_9[:2] == of_4_1[:2] == of_4_4[:2]


def _meaning(key: str, described: str | None) -> str | frozenset[str] | None:
    if described is None:
        return None
    shown = canonical(key, described)
    return shown if key == CLEANUP else frozenset(shown.split(",")) - {""}


def test_the_recording_is_of_these_cases() -> None:
    """Each case of the recorder is recorded."""
    from tests.conformance.releases.lists import cases

    assert [tuple(row[0]) for row in RECORDED] == cases()


@pytest.mark.parametrize("operation", [ConfigOperation.APPEND, ConfigOperation.SUBTRACT])
def test_long_lists_are_quick(operation: ConfigOperation) -> None:
    """The work grows with the length of the lists, not with its square."""
    elements = ",".join(f"{number}:1" for number in range(20_000))
    code, after = altered(
        {"leader.replication.throttled.replicas": elements},
        "leader.replication.throttled.replicas",
        operation,
        elements,
    )
    assert code == 0 and after["leader.replication.throttled.replicas"] in ("", elements)
