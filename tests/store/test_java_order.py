"""The order of Kafka's maps, against what a real Kafka wrote."""

import json
from pathlib import Path

import pytest

from minicontroller.cluster.java_hash import hash_table_order, partition_order, spread_hash
from tests.vectors.znodes.record import FEW_CONFIGS, MANY_CONFIGS, PARTITIONS

RECORDED = Path(__file__).parent.parent / "vectors" / "znodes" / "administered.tsv"
ZNODES = dict(line.split("\t") for line in RECORDED.read_text().splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("count", PARTITIONS[1:])
def test_partitions_stand_in_the_order_of_kafka_s_map(count: int) -> None:
    """The order is Kafka's with few and with many partitions, on both sides of each size at which
    the table doubles.
    """
    recorded = json.loads(ZNODES[f"/brokers/topics/wide-{count}"])["partitions"]
    assert [int(partition) for partition in recorded] == list(partition_order(count))


def test_configs_stand_in_the_order_of_kafka_s_map() -> None:
    """In a table of 16 and of 32 places; names in the same place keep the order in which they were
    given.
    """
    recorded = json.loads(ZNODES["/config/topics/many-configs"])["config"]
    assert list(recorded) == hash_table_order(MANY_CONFIGS)
    few = json.loads(ZNODES["/config/topics/orders"])["config"]
    assert list(few) == hash_table_order([*FEW_CONFIGS, "flush.ms"])


def test_hashes_are_java_s() -> None:
    """The hash of a string is Java's, spread as its tables do, also beyond the first 65,536
    characters of Unicode.
    """
    seen = [spread_hash(text) for text in ("", "a", "cleanup.policy", "min.insync.replicas", "\U0001f600")]
    assert seen == [0, 97, 3756928082, 268936202, 1772920]  # OpenJDK 17: h = s.hashCode(); h ^ h >>> 16, unsigned
