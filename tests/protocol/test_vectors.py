"""Golden vectors: bytes that Kafka's own classes and kafka-python made, fed whole, byte by byte,
and with a tail.
"""

import struct

from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.frame import FrameBuffer
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from tests.protocol.instances import MESSAGES, plain, versions
from tests.protocol.vectors import Vector, api_folder, load
from tests.support.grouped import grouped

VECTORS = list(load())
CLASSES = {cls.__name__: cls for cls in MESSAGES}

every_vector = grouped(
    "vector", {name: [(vector,) for vector in VECTORS if vector.message == name] for name in CLASSES}
)


def framed(vector: Vector) -> bytes:
    """The vector as it goes over the wire, behind a header that was put together by hand."""
    cls = CLASSES[vector.message]
    row = next(row for row in KAFKA.values() if cls in (row.request, row.response))
    flexible = row.flexible(vector.version)
    if cls is row.request:
        header = struct.pack(">hhi", row.key, vector.version, 77)
        if not (row.name == "ControlledShutdown" and vector.version == 0):
            header += b"\x00\x06client" + b"\x00" * flexible
    else:
        header = struct.pack(">i", 77) + b"\x00" * (flexible and row.name != "ApiVersions")
    body = header + vector.data
    return struct.pack(">i", len(body)) + body


@every_vector
def test_values(vector: Vector) -> None:
    """The bytes hold the recorded values, and the values give the bytes again."""
    cls: type[WireStruct] = CLASSES[vector.message]
    message, end = decoder(cls, vector.version)(vector.data, 0)
    assert (plain(message, vector.version), end) == (vector.values, len(vector.data))
    assert encoder(cls, vector.version)(message) == vector.data


@every_vector
def test_on_the_wire(vector: Vector) -> None:
    """Whole, byte by byte, and with a second frame behind it: the same message comes out of the
    stream.
    """
    cls: type[WireStruct] = CLASSES[vector.message]
    data = framed(vector)
    row = next(row for row in KAFKA.values() if cls in (row.request, row.response))
    message, _ = decoder(cls, vector.version)(vector.data, 0)
    frames = []
    for pieces in ([data], [data[i : i + 1] for i in range(len(data))], [data + data[:-1], data[-1:]]):
        buffer = FrameBuffer(10_000)
        for piece in pieces:
            buffer.feed(piece)
            while (frame := buffer.next_frame()) is not None:
                frames.append(frame)
        assert buffer.buffered_bytes == 0
    assert frames == [data[4:]] * 4
    if cls is row.request:
        header, request, left = KAFKA.decode_request(frames[0])
        assert (header.correlation_id, request, left) == (77, message, 0)
    else:
        assert KAFKA.encode_response(row.key, vector.version, 77, message) == data


def test_every_message_and_version_has_a_vector() -> None:
    """Every supported message and version has a golden vector, in a folder with the API's name."""
    assert {(v.message, v.version) for v in VECTORS} == {(cls.__name__, version) for cls, version in versions(MESSAGES)}
    assert all(v.made_by[0].startswith("kafka-clients") for v in VECTORS)
    for cls in MESSAGES:
        assert cls.__module__.endswith(f".messages.{api_folder(cls.__name__)}")
