"""Agreement with the classes of Kafka's own kafka-clients 3.9.1, the only other codec that has every message and version."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.errors import MalformedMessage
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.schema import WireStruct, layout_of

from tests.protocol.instances import cases, few, instances, plain, with_unknown_tags
from tests.protocol.java_oracle import JavaOracle, RefusedError, missing_tools

pytestmark = pytest.mark.skipif(
    bool(missing_tools()), reason=f"Kafka's own classes are fetched and run with {', '.join(missing_tools())}: not installed"
)


@pytest.fixture(name="java", scope="module")
def java_oracle() -> Iterator[JavaOracle]:
    with JavaOracle() as oracle:
        yield oracle


@cases()
def test_kafka_reads_and_writes_the_same(cls: type[WireStruct], version: int, java: JavaOracle) -> None:
    """Kafka finds in our bytes the values that we put there, under the same names, and writes the same bytes again."""

    @few
    @given(message=instances(cls, version))
    def check(message: WireStruct) -> None:
        data = encoder(cls, version)(message)
        reading = java.read(cls.__name__, version, data)
        assert (reading.left, reading.written_again) == (0, data)
        if cls is not RequestHeader:  # its tags are ours
            assert reading.plain == plain(message, version)

    check()

