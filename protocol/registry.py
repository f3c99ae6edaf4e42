"""All that is spoken here, and the whole way of a frame: header, then the compiled codec of (api
key, version).

Rule: frames come without their size and leave with it. Whatever a frame holds, a message or a
`ProtocolError` comes out.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import msgspec

from .api_keys import ApiKey
from .compiler import Decoder, Encoder, counting_decoder, decoder, encoder
from .errors import MalformedMessage, UnencodableMessage, UnsupportedApi, UnsupportedVersion
from .header import RequestHeader, ResponseHeader
from .schema import NEVER, WireStruct, layout_of
from .wire import MAX_ELEMENTS

__all__ = [
    "APIS",
    "START",
    "Api",
    "api",
    "client_id",
    "decode_request",
    "decode_response",
    "decoder",
    "encode_request",
    "encode_response",
    "encoder",
    "warm",
]


class Api(msgspec.Struct, frozen=True):
    """One row of what is spoken; `flexible_from` is the first version with compact forms and tags,
    None if there is none.
    """

    key: ApiKey
    name: str
    request: type[WireStruct]
    response: type[WireStruct]
    min_version: int
    max_version: int
    flexible_from: int | None

    def flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        if self.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0  # Kafka 0.8 sent no client id here
        return 2 if self.flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """ApiVersions is answered before the peers know of each other which versions they speak:
        always in 0 (KIP-511).
        """
        return int(self.flexible(version) and self.key is not ApiKey.API_VERSIONS)


SPOKEN = (
    ApiKey.METADATA,
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)
"""The messages of CREATE_TOPICS are `CreateTopicsRequest` and `CreateTopicsResponse` in
`messages/create_topics.py`.
"""

BETWEEN_NODES = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.ALTER_PARTITION})
"""What has as many elements as the cluster has partitions."""

_rows: dict[int, Api] = {}


class _Apis(Mapping[ApiKey, Api]):
    """Made row by row, as they are asked for: who needs a few of them, a command for one, does not
    wait for all.
    """

    def __getitem__(self, key: ApiKey) -> Api:
        if key not in SPOKEN:
            raise KeyError(key)
        return _rows.get(key) or _load(key)

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(SPOKEN)

    def __len__(self) -> int:
        return len(SPOKEN)


APIS = _Apis()


def _load(key: ApiKey) -> Api:
    name = key.name.title().replace("_", "")
    module = import_module(f".messages.{key.name.lower()}", __package__)
    request, response = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
    asked, answered = layout_of(request), layout_of(response)
    _rows[key] = Api(
        key=key,
        name=name,
        request=request,
        response=response,
        min_version=max(asked.min_version, answered.min_version),
        max_version=min(asked.max_version, answered.max_version),
        flexible_from=None if asked.flexible == NEVER else asked.flexible,
    )
    return _rows[key]


START = struct.Struct(">hhi")
"""Of a request: API key, version, correlation id."""
MAX_CLIENT_ID_BYTES = 255
"""Of what is told of a stranger whose request is not understood."""
_RESPONSE_STARTS = (
    struct.Struct(">ii"),
    struct.Struct(">iix"),
)  # size and correlation id; version 1 has an empty tag count
_HEADER_SIZES = tuple(start.size - 4 for start in _RESPONSE_STARTS)

_Codecs = tuple[Decoder[RequestHeader], Decoder[Any]]
# Of a request, by its first four bytes, key and version: filled with what is spoken only.
_request_codecs: dict[bytes, _Codecs] = {}
_response_encoders: dict[tuple[int, int], tuple[int, Encoder[Any]]] = {}
_response_decoders: dict[tuple[int, int], tuple[Decoder[ResponseHeader], Decoder[Any]]] = {}


def api(key: int) -> Api:
    """The row of an API.

    Raises:
        LookupError: it is not spoken here.
    """
    row = _rows.get(key)
    if row is not None:
        return row
    try:
        return APIS[ApiKey(key)]
    except (KeyError, ValueError):
        raise LookupError(f"the API {key} is not spoken here") from None


def decode_request(frame: bytes, of_a_node: bool = False) -> tuple[RequestHeader, WireStruct, int]:
    """Header, message, and how many bytes the frame has left behind them. `of_a_node`: a node of
    this cluster sends it.

    Raises:
        UnsupportedApi, UnsupportedVersion: the header is one of Kafka's, but asks for what is not
        spoken here. MalformedMessage: the bytes are no request.
    """
    codecs = _request_codecs.get(frame[:4]) or _request_codec(frame)
    if len(frame) > MAX_ELEMENTS:  # an element has a byte at least: smaller ones need no counting
        codecs = _bounded(frame, codecs, of_a_node=of_a_node)
    header, offset = codecs[0](frame, 0)
    message, offset = codecs[1](frame, offset)
    return header, message, len(frame) - offset


def client_id(frame: bytes) -> str | None:
    """Return the client id of a request that is not understood. It stands at one place in every
    header that has one; its beginning tells whose it is.
    """
    begin = START.size + 2
    size = int.from_bytes(frame[START.size : begin], signed=True)
    if not 0 <= size <= len(frame) - begin:
        return None
    return frame[begin : begin + min(size, MAX_CLIENT_ID_BYTES)].decode("utf-8", "replace")


def encode_request(header: RequestHeader, message: WireStruct) -> bytes:
    """The request as it goes out, with its size.

    Raises:
        UnencodableMessage: the version in the header cannot carry the message.
        LookupError: the API or the version is not spoken here.
    """
    header_version = api(header.api_key).request_header_version(header.api_version)
    head = encoder(RequestHeader, header_version)(header)
    body = encoder(type(message), header.api_version)(message)
    return b"".join((_size(len(head) + len(body)), head, body))


def encode_response(
    api_key: int, version: int, correlation_id: int, message: WireStruct, update_number: int = -1
) -> bytes:
    """The response as it goes out, with its size. `update_number`: see `ResponseHeader`.

    Raises:
        UnencodableMessage: the version cannot carry the message.
        LookupError: the API or the version is not spoken here.
    """
    header_version, encode = _response_encoders.get((api_key, version)) or _response_encoder(api_key, version)
    body = encode(message)
    if update_number >= 0:
        head = encoder(ResponseHeader, header_version)(ResponseHeader(correlation_id, update_number))
        return b"".join((_size(len(head) + len(body)), head, body))
    size = len(body) + _HEADER_SIZES[header_version]
    _size(size)
    return _RESPONSE_STARTS[header_version].pack(size, correlation_id) + body


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[ResponseHeader, WireStruct]:
    """Header and message. Between nodes bytes that are left over are an error.

    Raises:
        MalformedMessage: the bytes are not this response.
        LookupError: the API or the version is not spoken here.
    """
    decode_header, decode = _response_decoders.get((api_key, version)) or _response_decoder(api_key, version)
    header, offset = decode_header(frame, 0)
    message, offset = decode(frame, offset)
    if offset != len(frame):
        raise MalformedMessage(f"{type(message).__name__} v{version}: {len(frame) - offset} bytes are left over")
    return header, message


def warm(rows: Iterable[Api] | None = None) -> None:
    """Compile all that is spoken, so that no first request waits for it (some 0.2 s; without it
    each message costs 1 ms once).
    """
    for row in APIS.values() if rows is None else rows:
        for version in range(row.min_version, row.max_version + 1):
            encoder(row.request, version)
            encoder(RequestHeader, row.request_header_version(version))
            _request_codec(START.pack(row.key, version, 0))
            _response_encoder(row.key, version)
            _response_decoder(row.key, version)


def _size(size: int) -> bytes:
    if size >= 2**31:
        raise UnencodableMessage(f"a frame of {size} bytes; its size has 31 bits")
    return size.to_bytes(4, "big")


def _request_codec(frame: bytes) -> _Codecs:
    if len(frame) < START.size:
        raise MalformedMessage(f"{len(frame)} bytes are too few for a request's header")
    key, version, correlation_id = START.unpack_from(frame)
    try:
        row = api(key)
    except LookupError:
        raise UnsupportedApi(key, version, correlation_id, client_id(frame)) from None
    if not row.min_version <= version <= row.max_version:
        raise UnsupportedVersion(key, version, correlation_id, client_id(frame))
    codecs = (decoder(RequestHeader, row.request_header_version(version)), decoder(row.request, version))
    _request_codecs[frame[:4]] = codecs
    return codecs


def _bounded(frame: bytes, codecs: _Codecs, *, of_a_node: bool) -> _Codecs:
    """How many elements there are is up to strangers. What controllers and nodes tell each other
    grows with the cluster.
    """
    key, version, _ = START.unpack_from(frame)
    if of_a_node and key in BETWEEN_NODES:
        return codecs
    row = api(key)
    header_version = row.request_header_version(version)
    return counting_decoder(RequestHeader, header_version), counting_decoder(row.request, version)


def _response_encoder(api_key: int, version: int) -> tuple[int, Encoder[Any]]:
    row = api(api_key)
    codec = _response_encoders[api_key, version] = row.response_header_version(version), encoder(row.response, version)
    return codec


def _response_decoder(api_key: int, version: int) -> tuple[Decoder[ResponseHeader], Decoder[Any]]:
    row = api(api_key)
    codec = _response_decoders[api_key, version] = (
        decoder(ResponseHeader, row.response_header_version(version)),
        decoder(row.response, version),
    )
    return codec
