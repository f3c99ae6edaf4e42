"""Agreement with the classes of Kafka's own kafka-clients 3.9.1, the only other codec that has
every message and version.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.errors import MalformedMessage
from minicontroller.protocol.header import RequestHeader, ResponseHeader
from minicontroller.protocol.schema import WireStruct
from tests.protocol.instances import cases, plain, samples, with_unknown_tags
from tests.protocol.java_oracle import JavaOracle, Reading, RefusedError
from tests.protocol.mutations import mutated
from tests.support.maven import needs_maven, time_to_download

pytestmark = [needs_maven, time_to_download]

MUTATIONS = 20  # of each message and version


@pytest.fixture(name="java", scope="module")
def java_oracle() -> Iterator[JavaOracle]:
    with JavaOracle() as oracle:
        yield oracle


@cases()
def test_kafka_reads_and_writes_the_same(cls: type[WireStruct], version: int, java: JavaOracle) -> None:
    """Kafka finds in our bytes the values that we put there, under the same names, and writes the
    same bytes again.
    """
    for message in samples(cls, version):
        data = encoder(cls, version)(message)
        reading = java.read(cls.__name__, version, data)
        assert (reading.left, reading.written_again) == (0, data)
        if cls not in (RequestHeader, ResponseHeader):  # their tags are ours
            assert reading.plain == as_kafka_prints(plain(message, version))


@cases()
def test_kafka_keeps_the_same_unknown_tags(cls: type[WireStruct], version: int, java: JavaOracle) -> None:
    """Unknown tagged fields pass unchanged through both codecs."""
    for message in deepcopy(samples(cls, version)):
        if with_unknown_tags(message, version, {9: b"", 200: b"x" * 130, 2**30: b"yz"}):
            data = encoder(cls, version)(message)
            assert java.read(cls.__name__, version, data)[:2] == (0, data)


@cases(of=lambda cls, _: cls not in (RequestHeader, ResponseHeader))
def test_kafka_takes_and_refuses_the_same_bytes(cls: type[WireStruct], version: int, java: JavaOracle) -> None:
    """Malformed bytes are decoded as by Kafka, or refused where Kafka would never have written
    them.
    """
    random = Random(f"{cls.__name__} {version}")
    valid = [encoder(cls, version)(message) for message in samples(cls, version)]
    for _ in range(MUTATIONS):
        data = mutated(random.choice(valid), random)
        ours, theirs = our_reading(cls, version, data), their_reading(java, cls, version, data)
        if ours is None and theirs is not None:
            assert theirs.written_again != data[: len(data) - theirs.left], data.hex()
        else:
            assert same_reading(ours, theirs), data.hex()


def our_reading(cls: type[WireStruct], version: int, data: bytes) -> Reading | None:
    try:
        message, end = decoder(cls, version)(data, 0)
    except MalformedMessage:
        return None
    return Reading(len(data) - end, encoder(cls, version)(message), as_kafka_prints(plain(message, version)))


def their_reading(java: JavaOracle, cls: type[WireStruct], version: int, data: bytes) -> Reading | None:
    try:
        return java.read(cls.__name__, version, data)
    except RefusedError as refusal:
        if "as an undefined tag" in str(refusal):  # the greatest tag there is: Kafka reads it and does not write it
            return our_reading(cls, version, data)
        return None


def as_kafka_prints(value: Any) -> Any:
    """Kafka's JSON leaves record batches empty; their bytes are compared as written."""
    if isinstance(value, list):
        return [as_kafka_prints(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "" if name == "records" and item is not None else as_kafka_prints(item) for name, item in value.items()
    }


def same_reading(ours: Reading | None, theirs: Reading | None) -> bool:
    """Java puts one replacement character for an encoded surrogate, Python one for each of its
    bytes.
    """
    if ours is None or theirs is None:
        return ours is theirs
    return (ours.left, one_replacement(ours.plain)) == (theirs.left, one_replacement(theirs.plain))


def one_replacement(value: Any) -> Any:
    return re.sub("�+", "�", repr(value))
