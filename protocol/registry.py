"""All that is spoken here, and the whole way of a frame: header, then the compiled codec of (api key, version).

Rule: frames come without their size and leave with it. Whatever a frame holds, a message or a `ProtocolError` comes out.
"""

import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from .api_keys import ApiKey
from .compiler import Decoder, Encoder, decoder, encoder
from .errors import MalformedMessage, UnencodableMessage, UnsupportedApi, UnsupportedVersion
from .header import RequestHeader, ResponseHeader
from .messages import (
    alter_configs,
    alter_partition,
    api_versions,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_topic_partitions,
    envelope,
    find_coordinator,
    incremental_alter_configs,
    leader_and_isr,
    list_groups,
    metadata,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    update_metadata,
)
from .schema import NEVER, WireStruct, layout_of

__all__ = [
    "APIS",
    "Api",
    "api",
    "decode_request",
    "decode_response",
    "decoder",
    "encode_request",
    "encode_response",
    "encoder",
    "warm",
]


class Api(msgspec.Struct, frozen=True):
    """One row of what is spoken; `flexible_from` is the first version with compact forms and tags, None if there is none."""

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
        """ApiVersions is answered before the peers know of each other which versions they speak: always in 0 (KIP-511)."""
        return int(self.flexible(version) and self.key is not ApiKey.API_VERSIONS)


def _row(request: type[WireStruct], response: type[WireStruct]) -> Api:
    asked, answered = layout_of(request), layout_of(response)
    return Api(
        key=ApiKey(asked.api_key),
        name=request.__name__.removesuffix("Request"),
        request=request,
        response=response,
        min_version=max(asked.min_version, answered.min_version),
        max_version=min(asked.max_version, answered.max_version),
        flexible_from=None if asked.flexible == NEVER else asked.flexible,
    )


APIS: dict[ApiKey, Api] = {
    row.key: row
    for row in (
        _row(metadata.MetadataRequest, metadata.MetadataResponse),
        _row(leader_and_isr.LeaderAndIsrRequest, leader_and_isr.LeaderAndIsrResponse),
        _row(stop_replica.StopReplicaRequest, stop_replica.StopReplicaResponse),
        _row(update_metadata.UpdateMetadataRequest, update_metadata.UpdateMetadataResponse),
        _row(controlled_shutdown.ControlledShutdownRequest, controlled_shutdown.ControlledShutdownResponse),
        _row(find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse),
        _row(describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse),
        _row(list_groups.ListGroupsRequest, list_groups.ListGroupsResponse),
        _row(sasl_handshake.SaslHandshakeRequest, sasl_handshake.SaslHandshakeResponse),
        _row(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse),
        _row(create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse),
        _row(delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse),
        _row(describe_configs.DescribeConfigsRequest, describe_configs.DescribeConfigsResponse),
        _row(alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse),
        _row(sasl_authenticate.SaslAuthenticateRequest, sasl_authenticate.SaslAuthenticateResponse),
        _row(create_partitions.CreatePartitionsRequest, create_partitions.CreatePartitionsResponse),
        _row(
            incremental_alter_configs.IncrementalAlterConfigsRequest,
            incremental_alter_configs.IncrementalAlterConfigsResponse,
        ),
        _row(alter_partition.AlterPartitionRequest, alter_partition.AlterPartitionResponse),
        _row(envelope.EnvelopeRequest, envelope.EnvelopeResponse),
        _row(describe_cluster.DescribeClusterRequest, describe_cluster.DescribeClusterResponse),
        _row(
            describe_topic_partitions.DescribeTopicPartitionsRequest,
            describe_topic_partitions.DescribeTopicPartitionsResponse,
        ),
    )
}

_BY_NUMBER: dict[int, Api] = {int(key): row for key, row in APIS.items()}

_REQUEST_START = struct.Struct(">hhi")
_CLIENT_ID_START = struct.Struct(">h")
_RESPONSE_STARTS = (
    struct.Struct(">ii"),
    struct.Struct(">iix"),
)  # size and correlation id; version 1 has an empty tag count
_HEADER_SIZES = tuple(start.size - 4 for start in _RESPONSE_STARTS)

# The codecs of a request by its first four bytes, key and version: filled with what is spoken only.
_request_codecs: dict[bytes, tuple[Decoder[RequestHeader], Decoder[Any]]] = {}
_response_codecs: dict[tuple[int, int], tuple[int, Encoder[Any], Decoder[ResponseHeader], Decoder[Any]]] = {}


def api(key: int) -> Api:
    """The row of an API.

    Raises:
        LookupError: it is not spoken here.
    """
    try:
        return APIS[ApiKey(key)]
    except (KeyError, ValueError):
        raise LookupError(f"the API {key} is not spoken here") from None


def decode_request(frame: bytes) -> tuple[RequestHeader, WireStruct, int]:
    """Header, message, and how many bytes the frame has left behind them.

    Raises:
        UnsupportedApi, UnsupportedVersion: the header is one of Kafka's, but asks for what is not spoken here.
        MalformedMessage: the bytes are no request.
    """
    codecs = _request_codecs.get(frame[:4]) or _request_codec(frame)
    header, offset = codecs[0](frame, 0)
    message, offset = codecs[1](frame, offset)
    return header, message, len(frame) - offset


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


def encode_response(api_key: int, version: int, correlation_id: int, message: WireStruct) -> bytes:
    """The response as it goes out, with its size.

    Raises:
        UnencodableMessage: the version cannot carry the message.
        LookupError: the API or the version is not spoken here.
    """
    header_version, encode, _, _ = _response_codecs.get((api_key, version)) or _response_codec(api_key, version)
    body = encode(message)
    size = len(body) + _HEADER_SIZES[header_version]
    _size(size)
    return _RESPONSE_STARTS[header_version].pack(size, correlation_id) + body


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, WireStruct]:
    """Correlation id and message. Between nodes bytes that are left over are an error.

    Raises:
        MalformedMessage: the bytes are not this response.
        LookupError: the API or the version is not spoken here.
    """
    _, _, decode_header, decode = _response_codecs.get((api_key, version)) or _response_codec(api_key, version)
    header, offset = decode_header(frame, 0)
    message, offset = decode(frame, offset)
    if offset != len(frame):
        raise MalformedMessage(f"{type(message).__name__} v{version}: {len(frame) - offset} bytes are left over")
    return header.correlation_id, message


def warm(rows: Iterable[Api] | None = None) -> None:
    """Compile all that is spoken, so that no first request waits for it (some 0.2 s; without it each message costs 1 ms once)."""
    for row in APIS.values() if rows is None else rows:
        for version in range(row.min_version, row.max_version + 1):
            encoder(row.request, version)
            encoder(RequestHeader, row.request_header_version(version))
            _request_codec(_REQUEST_START.pack(row.key, version, 0))
            _response_codec(row.key, version)


def _size(size: int) -> bytes:
    if size >= 2**31:
        raise UnencodableMessage(f"a frame of {size} bytes; its size has 31 bits")
    return size.to_bytes(4, "big")


def _request_codec(frame: bytes) -> tuple[Decoder[RequestHeader], Decoder[Any]]:
    if len(frame) < _REQUEST_START.size:
        raise MalformedMessage(f"{len(frame)} bytes are too few for a request's header")
    key, version, correlation_id = _REQUEST_START.unpack_from(frame)
    row = _BY_NUMBER.get(key)
    if row is None:
        raise UnsupportedApi(key, version, correlation_id, _client_id(frame))
    if not row.min_version <= version <= row.max_version:
        raise UnsupportedVersion(key, version, correlation_id, _client_id(frame))
    codecs = (decoder(RequestHeader, row.request_header_version(version)), decoder(row.request, version))
    _request_codecs[frame[:4]] = codecs
    return codecs


def _client_id(frame: bytes) -> str | None:
    """What a log line can say of a client whose request is not understood: every header but the oldest has this at one place."""
    start = _REQUEST_START.size + _CLIENT_ID_START.size
    if len(frame) < start:
        return None
    (length,) = _CLIENT_ID_START.unpack_from(frame, _REQUEST_START.size)
    if length < 0 or length > len(frame) - start:
        return None
    return frame[start : start + length].decode("utf-8", "replace")


def _response_codec(api_key: int, version: int) -> tuple[int, Encoder[Any], Decoder[ResponseHeader], Decoder[Any]]:
    row = api(api_key)
    header_version = row.response_header_version(version)
    codecs = (
        header_version,
        encoder(row.response, version),
        decoder(ResponseHeader, header_version),
        decoder(row.response, version),
    )
    _response_codecs[api_key, version] = codecs
    return codecs
