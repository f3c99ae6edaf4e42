"""The APIs that this program speaks, and how their frames are encoded and decoded.

A `Registry` is one dialect of the protocol; `KAFKA` is Kafka's. Frames come in without their size
and go out with it. Decoding any bytes gives a message or raises `ProtocolError`, never another
exception.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec

from . import messages
from .api_keys import ApiKey
from .compiler import Decoder, Encoder, counting_decoder, decoder, encoder
from .errors import MalformedMessage, UnencodableMessage, UnsupportedApi, UnsupportedVersion
from .header import REQUEST_START, RequestHeader, ResponseHeader, client_id_of
from .schema import NEVER, WireStruct, layout_of
from .wire import MAX_ELEMENTS


class Api(msgspec.Struct, frozen=True):
    """One API of a registry: its messages, and the versions in which they are spoken."""

    key: ApiKey
    name: str
    """As Kafka writes it: `CreateTopics`."""
    request: type[WireStruct]
    response: type[WireStruct]
    min_version: int
    max_version: int
    flexible_from: int | None
    """The first version with compact forms and tags; None if there is none."""
    grows_with_cluster: bool = False
    """Whether a request of a node may have as many elements as the cluster has partitions."""

    def flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        if self.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0  # brokers before Kafka 0.8.2 send no client id
        return 2 if self.flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Return the version of the response's header. ApiVersions always has 0, because the client
        does not know yet which versions are spoken (KIP-511).
        """
        return int(self.flexible(version) and self.key is not ApiKey.API_VERSIONS)


_RESPONSE_STARTS = (
    struct.Struct(">ii"),
    struct.Struct(">iix"),
)  # size and correlation id; version 1 has an empty tag count
_HEADER_SIZES = tuple(start.size - 4 for start in _RESPONSE_STARTS)

_RequestCodecs = tuple[Decoder[RequestHeader], Decoder[Any]]


class Registry(Mapping[int, Api]):
    """The APIs of one dialect by key, with the codecs of the versions that were used so far.

    An API is loaded when it is first asked for, and a codec compiled when it is first used: a
    command that needs one API does not wait for all.
    """

    def __init__(self, keys: Iterable[ApiKey], load: Callable[[ApiKey], Api]) -> None:
        """Make a registry of these APIs; `load` returns the row of one of them."""
        self._keys = {int(key): key for key in keys}
        self._load = load
        self._apis: dict[int, Api] = {}
        # By the first four bytes of a request, which are its API key and version. Only what is
        # spoken is ever added.
        self._request_codecs: dict[bytes, _RequestCodecs] = {}
        self._response_encoders: dict[tuple[int, int], tuple[int, Encoder[Any]]] = {}
        self._response_decoders: dict[tuple[int, int], tuple[Decoder[ResponseHeader], Decoder[Any]]] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._apis.get(key)
        if api is None:
            if key not in self._keys:
                raise KeyError(f"the API {key} is not supported")
            api = self._apis[key] = self._load(self._keys[key])
        return api

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def name(self, key: int) -> str:
        """Return the name of an API, or `API 99` for one that is not spoken here."""
        return self[key].name if key in self._keys else f"API {key}"

    def decode_request(self, frame: bytes, of_a_node: bool = False) -> tuple[RequestHeader, WireStruct, int]:
        """Return the header, the message, and how many bytes of the frame follow them. `of_a_node`
        says that a node of this cluster sent it.

        Raises:
            UnsupportedApi, UnsupportedVersion: the API or its version is not spoken here.
            MalformedMessage: the bytes are no request.
        """
        codecs = self._request_codecs.get(frame[:4]) or self._request_codec(frame)
        if len(frame) > MAX_ELEMENTS:  # an element takes a byte at least
            codecs = self._counting(frame, codecs, of_a_node=of_a_node)
        header, offset = codecs[0](frame, 0)
        message, offset = codecs[1](frame, offset)
        return header, message, len(frame) - offset

    def encode_request(self, header: RequestHeader, message: WireStruct) -> bytes:
        """Return the frame of a request, its size included.

        Raises:
            UnencodableMessage: the version in the header cannot carry the message.
            LookupError: the API or the version is not spoken here.
        """
        header_version = self[header.api_key].request_header_version(header.api_version)
        head = encoder(RequestHeader, header_version)(header)
        body = encoder(type(message), header.api_version)(message)
        return b"".join((_size(len(head) + len(body)), head, body))

    def encode_response(
        self, api_key: int, version: int, correlation_id: int, message: WireStruct, update_number: int = -1
    ) -> bytes:
        """Return the frame of a response, its size included. `update_number` goes into its header.

        Raises:
            UnencodableMessage: the version cannot carry the message.
            LookupError: the API or the version is not spoken here.
        """
        header_version, encode = self._response_encoders.get((api_key, version)) or self._response_encoder(
            api_key, version
        )
        body = encode(message)
        if update_number >= 0:
            head = encoder(ResponseHeader, header_version)(ResponseHeader(correlation_id, update_number))
            return b"".join((_size(len(head) + len(body)), head, body))
        size = len(body) + _HEADER_SIZES[header_version]
        _size(size)
        return _RESPONSE_STARTS[header_version].pack(size, correlation_id) + body

    def decode_response(self, api_key: int, version: int, frame: bytes) -> tuple[ResponseHeader, WireStruct]:
        """Return the header and the message of a response.

        Raises:
            MalformedMessage: the bytes are not this response, or more than it.
            LookupError: the API or the version is not spoken here.
        """
        decode_header, decode = self._response_decoders.get((api_key, version)) or self._response_decoder(
            api_key, version
        )
        header, offset = decode_header(frame, 0)
        message, offset = decode(frame, offset)
        if offset != len(frame):
            raise MalformedMessage(f"{type(message).__name__} v{version}: {len(frame) - offset} bytes are left over")
        return header, message

    def _request_codec(self, frame: bytes) -> _RequestCodecs:
        if len(frame) < REQUEST_START.size:
            raise MalformedMessage(f"{len(frame)} bytes are too few for a request's header")
        key, version, correlation_id = REQUEST_START.unpack_from(frame)
        try:
            api = self[key]
        except LookupError:
            raise UnsupportedApi(key, version, correlation_id, client_id_of(frame)) from None
        if not api.min_version <= version <= api.max_version:
            raise UnsupportedVersion(key, version, correlation_id, client_id_of(frame))
        codecs = (decoder(RequestHeader, api.request_header_version(version)), decoder(api.request, version))
        self._request_codecs[frame[:4]] = codecs
        return codecs

    def _counting(self, frame: bytes, codecs: _RequestCodecs, *, of_a_node: bool) -> _RequestCodecs:
        """Return the codecs for a request that is large enough to have too many elements: those
        that count them, unless it may grow with the cluster.
        """
        key, version, _ = REQUEST_START.unpack_from(frame)
        api = self[key]
        if of_a_node and api.grows_with_cluster:
            return codecs
        header_version = api.request_header_version(version)
        return counting_decoder(RequestHeader, header_version), counting_decoder(api.request, version)

    def _response_encoder(self, api_key: int, version: int) -> tuple[int, Encoder[Any]]:
        api = self[api_key]
        codec = self._response_encoders[api_key, version] = (
            api.response_header_version(version),
            encoder(api.response, version),
        )
        return codec

    def _response_decoder(self, api_key: int, version: int) -> tuple[Decoder[ResponseHeader], Decoder[Any]]:
        api = self[api_key]
        codec = self._response_decoders[api_key, version] = (
            decoder(ResponseHeader, api.response_header_version(version)),
            decoder(api.response, version),
        )
        return codec


def _size(size: int) -> bytes:
    if size >= 2**31:
        raise UnencodableMessage(f"a frame of {size} bytes; its size has 31 bits")
    return size.to_bytes(4, "big")


_MODULES = {module.name for module in iter_modules(messages.__path__)}
SPOKEN = tuple(key for key in ApiKey if key.name.lower() in _MODULES)
"""The APIs that have a module of their name in `messages/`: CREATE_TOPICS has `CreateTopicsRequest`
and `CreateTopicsResponse` in `messages/create_topics.py`.
"""
GROWING = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.ALTER_PARTITION})
"""APIs between nodes whose requests have an element for each partition of the cluster."""


def _kafka_api(key: ApiKey) -> Api:
    name = key.name.title().replace("_", "")
    module = import_module(f".messages.{key.name.lower()}", __package__)
    request, response = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
    asked, answered = layout_of(request), layout_of(response)
    return Api(
        key=key,
        name=name,
        request=request,
        response=response,
        min_version=max(asked.min_version, answered.min_version),
        max_version=min(asked.max_version, answered.max_version),
        flexible_from=None if asked.flexible == NEVER else asked.flexible,
        grows_with_cluster=key in GROWING,
    )


KAFKA = Registry(SPOKEN, _kafka_api)
"""Kafka's own dialect, as Kafka 3.9 speaks it."""
