"""Endpoints at the end of responses are replaced in place. A foreign codec writes and reads the
responses.
"""

import struct
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceResponse

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.client.network import Network
from minicontroller.gateway.apis import APIS
from minicontroller.gateway.cluster import UpstreamCluster
from minicontroller.gateway.frames import FrameReader, FrameWriter
from minicontroller.gateway.node_endpoints import pass_readdressed
from minicontroller.protocol.errors import MalformedMessage
from tests.gateway.test_frames import Pipe, cut, framed
from tests.support.wire import build, plain

PRODUCE, FETCH = 0, 1
CLASSES = {PRODUCE: ProduceResponse, FETCH: FetchResponse}
VERSIONS = [*((PRODUCE, version) for version in range(10, 14)), *((FETCH, version) for version in range(16, 19))]
HEADER = struct.pack(">i", 7) + b"\0"
NOWHERE = ClientConfig((Address("nowhere", 1),))

hosts = st.text("abcdefghijklmnop.-", min_size=1, max_size=60)
endpoints = st.lists(
    st.fixed_dictionaries(
        {
            "node_id": st.integers(0, 2**31 - 1),
            "host": hosts,
            "port": st.integers(1, 65_535),
            "rack": st.none() | st.text(max_size=10),
        }
    ),
    max_size=4,
    unique_by=lambda each: each["node_id"],
)
leaders = st.none() | st.fixed_dictionaries({"leader_id": st.integers(0, 9), "leader_epoch": st.integers(0, 9)})
numbers = st.integers(-1, 2**40)
records = st.none() | st.binary(max_size=400)


def optional(field: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return values.map(lambda value: {} if value is None else {field: value})


def merged(parts: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


produced = st.tuples(
    st.fixed_dictionaries(
        {
            "index": st.integers(0, 99),
            "error_code": st.integers(0, 90),
            "base_offset": numbers,
            "record_errors": st.lists(
                st.fixed_dictionaries(
                    {"batch_index": st.integers(0, 9), "batch_index_error_message": st.none() | st.text(max_size=20)}
                ),
                max_size=2,
            ),
            "error_message": st.none() | st.text(max_size=200),
        }
    ),
    optional("current_leader", leaders),
).map(merged)
fetched = st.tuples(
    st.fixed_dictionaries(
        {
            "partition_index": st.integers(0, 99),
            "error_code": st.integers(0, 90),
            "high_watermark": numbers,
            "aborted_transactions": st.none()
            | st.lists(st.fixed_dictionaries({"producer_id": numbers, "first_offset": numbers}), max_size=2),
            "records": records,
        }
    ),
    optional("current_leader", leaders),
).map(merged)
BODIES: Mapping[int, st.SearchStrategy[dict[str, Any]]] = {
    PRODUCE: st.fixed_dictionaries(
        {
            "responses": st.lists(st.fixed_dictionaries({"partition_responses": st.lists(produced, max_size=3)})),
            "throttle_time_ms": st.integers(0, 9),
        }
    ),
    FETCH: st.fixed_dictionaries(
        {
            "throttle_time_ms": st.integers(0, 9),
            "session_id": st.integers(0, 9),
            "responses": st.lists(st.fixed_dictionaries({"partitions": st.lists(fetched, max_size=3)})),
        }
    ),
}


class Places:
    """Where a gateway stands for brokers: the same host for all, the port by id."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.learned: dict[int, Address | None] = {}
        """The brokers' own addresses."""

    async def of_broker(self, broker_id: int) -> Address:
        await trio.lowlevel.checkpoint()
        self.learned[broker_id] = None
        return Address(self.host, broker_id % 60_000)


def encoded(key: int, version: int, body: Mapping[str, Any]) -> bytes:
    cls: Any = CLASSES[key]
    message: bytes = build(cls, cls._struct, body, version).encode(version=version)
    return HEADER + message


def decoded(key: int, version: int, frame: bytes) -> dict[str, Any]:
    cls: Any = CLASSES[key]
    return plain(cls.decode(frame[len(HEADER) :], version=version), cls._struct, version)


def moved(key: int, version: int, data: bytes, gateway: Places, places: list[int]) -> bytes:
    """Return what comes out of the gateway when these bytes come in, cut at these places."""
    sink = Pipe([])

    async def move() -> None:
        async with trio.open_nursery() as nursery:
            cluster = UpstreamCluster(Network(nursery, NOWHERE), gateway.of_broker)
        frames = FrameReader(Pipe(cut(data, places)), 1 << 20)
        await frames.begin()
        await pass_readdressed(APIS[key].tails[version], cluster, frames, FrameWriter(sink))
        assert frames.left == 0
        for broker_id in gateway.learned:
            gateway.learned[broker_id] = await cluster.address_of(broker_id)

    trio.run(move)
    return b"".join(sink.sent)


@given(st.data(), st.sampled_from(VERSIONS), endpoints, hosts, st.lists(st.integers(0, 900), max_size=6))
def test_endpoints_are_the_gateways(
    data: st.DataObject, api: tuple[int, int], named: list[dict[str, Any]], host: str, places: list[int]
) -> None:
    """The response keeps its length and everything but the addresses. If those of the gateway are
    too long for it, the endpoints are left out.
    """
    body = {**data.draw(BODIES[api[0]]), "node_endpoints": named}
    frame = encoded(*api, body)
    gateway = Places(host)
    out = moved(*api, framed(frame), gateway, places)
    assert len(out) == 4 + len(frame)
    before, after = decoded(*api, frame), decoded(*api, out[4:])
    found = after.pop("node_endpoints")
    assert before.pop("node_endpoints") == named
    assert after == before
    assert gateway.learned == {each["node_id"]: Address(each["host"], each["port"]) for each in named}
    wanted = [{**each, "host": host, "port": each["node_id"] % 60_000} for each in named]
    fits = len(host) * len(named) <= sum(len(each["host"]) for each in named)
    assert found == (wanted if fits else [])


@given(st.sampled_from(VERSIONS), st.binary(min_size=1, max_size=300), st.lists(st.integers(0, 300), max_size=3))
def test_any_bytes(api: tuple[int, int], data: bytes, places: list[int]) -> None:
    """Bytes that are no such response pass or are refused; nothing else comes of them, and what
    passes has its length.
    """
    try:
        out = moved(*api, framed(data), Places("gateway"), places)
    except MalformedMessage:
        return
    assert len(out) == 4 + len(data)


@pytest.mark.parametrize("api", [(PRODUCE, 9), (FETCH, 15), (3, 12)])
def test_versions_without_endpoints(api: tuple[int, int]) -> None:
    """A response that has no endpoints is not looked into."""
    assert api[1] not in APIS[api[0]].tails
