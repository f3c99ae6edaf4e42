"""Messages and request frames made of any bytes: read, written, and read again."""

import struct

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.errors import MalformedMessage, ProtocolError
from minicontroller.protocol.header import RequestHeader, ResponseHeader
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct, layout_of
from tests.protocol.instances import samples

START = struct.Struct(">bBB")
"""API (-1 for a header), version, and whether it is a response."""
HEADER = -1


def message_kind(key: int, version: int, is_response: int) -> tuple[type[WireStruct], int] | None:
    """Return the message that the first bytes of an input choose."""
    if key == HEADER:
        cls: type[WireStruct] = ResponseHeader if is_response else RequestHeader
    elif key in KAFKA:
        api = KAFKA[ApiKey(key)]
        cls = api.response if is_response else api.request
    else:
        return None
    layout = layout_of(cls)
    return (cls, version) if layout.min_version <= version <= layout.max_version else None


def read_and_write(data: bytes) -> None:
    """Bytes are a message or malformed, and a message that was read is the same after it was
    written.
    """
    if len(data) < START.size or (kind := message_kind(*START.unpack_from(data))) is None:
        return
    decode = decoder(*kind)
    try:
        message, end = decode(data, START.size)
    except MalformedMessage:
        return
    assert START.size <= end <= len(data), f"{end} of {len(data)} bytes were read"
    written = encoder(*kind)(message)
    again, end = decode(written, 0)
    assert end == len(written), "what was written is longer than what is read of it"
    assert encoder(*kind)(again) == written, "a message changes when it is written and read"


def read_frame(data: bytes) -> None:
    """A frame is a request or no protocol of ours."""
    try:
        header, request, _ = KAFKA.decode_request(data)
    except ProtocolError:
        return
    KAFKA.encode_request(header, request)


def message_seeds() -> list[bytes]:
    """Return a message of each kind, as small as samples are."""
    kinds: list[tuple[int, int, type[WireStruct]]] = [(HEADER, 0, RequestHeader), (HEADER, 1, ResponseHeader)]
    kinds += [(int(api.key), 0, api.request) for api in KAFKA.values()]
    kinds += [(int(api.key), 1, api.response) for api in KAFKA.values()]
    seeds = []
    for key, is_response, cls in kinds:
        layout = layout_of(cls)
        for version in {layout.min_version, layout.max_version}:
            written = (encoder(cls, version)(message) for message in samples(cls, version))
            seeds += [START.pack(key, version, is_response) + each for each in written]
    return seeds


def frame_seeds() -> list[bytes]:
    """Return a request of each API in its newest version."""
    return [
        KAFKA.encode_request(RequestHeader(int(api.key), api.max_version, 1, "c"), message)[4:]
        for api in KAFKA.values()
        for message in samples(api.request, api.max_version, 2)
    ]
