"""Requests given to the dispatcher of a controller's node, which has every API and keeps its
cluster in memory.

An input is some requests, one after the other: API, version, size and body of each. They are sent
by an ordinary client to a new cluster, whose clock is virtual, so that an answer that never comes
is seen at once.
"""

import logging
import struct
from collections.abc import Iterator
from typing import Any

import trio
import trio.testing

from minicontroller.controller.handlers import SPECS
from minicontroller.controller.routing.dispatcher import Dispatcher
from minicontroller.controller.routing.routes import routed
from minicontroller.controller.security.caller import Caller, Listener
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.compiler import encoder
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import Array, Field, Kind, Nested, Text, WireStruct, layout_of
from tests.handlers.ruling import ruling
from tests.protocol.instances import samples

START = struct.Struct(">BBH")
MOST_REQUESTS = 8
LONGEST_WAIT_SECONDS = 2**31 / 1000 + 60
"""A request may ask for 2^31 milliseconds."""
BROKERS_ONLY = frozenset({ApiKey.CONTROLLED_SHUTDOWN, ApiKey.ENVELOPE})


class Errors(logging.Handler):
    """Keeps what a node logs as a defect of the program."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def requests_in(data: bytes) -> Iterator[bytes]:
    """Yield the frames of an input; those of unknown APIs and versions too."""
    for number in range(MOST_REQUESTS):
        if len(data) < START.size:
            return
        key, version, size = START.unpack_from(data)
        body, data = data[START.size : START.size + size], data[START.size + size :]
        if key not in KAFKA or not KAFKA[ApiKey(key)].min_version <= version <= KAFKA[ApiKey(key)].max_version:
            continue
        header = encoder(RequestHeader, KAFKA[ApiKey(key)].request_header_version(version))
        yield header(RequestHeader(key, version, number, "fuzz")) + body


def serve(data: bytes) -> None:
    """Each request gets an answer or ends the connection, and none finds a defect."""
    frames = list(requests_in(data))
    if not frames:
        return
    errors = Errors()
    logger = logging.getLogger("minicontroller")
    logger.addHandler(errors)
    try:
        trio.run(_answers, frames, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        logger.removeHandler(errors)
    assert not errors.texts, errors.texts[0]


async def _answers(frames: list[bytes]) -> None:
    async with ruling() as cluster:
        dispatcher = Dispatcher(cluster.node, routed(SPECS.values()), cluster.node.decisions.refused)
        caller = Caller(Listener(name="PLAINTEXT"), "10.0.0.9", 50_000)
        with trio.fail_after(LONGEST_WAIT_SECONDS):
            for frame in frames:
                try:
                    answer = dispatcher.answer(caller, frame)
                    answered = answer if isinstance(answer, bytes) else await answer
                except ProtocolError:
                    continue
                key, version = struct.unpack_from(">hh", frame)
                KAFKA.decode_response(key, version, answered[4:])
        assert not dispatcher.counters.unexpected_errors


def packed(message: WireStruct, version: int) -> bytes:
    """Return one request as an input has it."""
    (key,) = (api.key for api in KAFKA.values() if api.request is type(message))
    body = encoder(type(message), version)(message)
    return START.pack(key, version, len(body)) + body


def server_seeds() -> list[bytes]:
    """Return a request of each API that is about a topic that the request before it made."""
    made = packed(CreateTopicsRequest(topics=[CreatableTopic("a", 2, 2)], timeout_ms=1000), 7)
    return [
        made + packed(_about_a(message), version)
        for api in KAFKA.values()
        if api.key in SPECS and api.key not in BROKERS_ONLY
        for version in {api.min_version, api.max_version}
        for message in samples(api.request, version, 3)
    ]


def _about_a(message: Any) -> Any:
    """Let every topic of a message be `a`, and every partition be 0."""
    for field in layout_of(type(message)).fields:
        value = getattr(message, field.name)
        if value is not None:
            setattr(message, field.name, _value_about_a(field, field.kind, value))
    return message


def _value_about_a(field: Field, kind: Kind, value: Any) -> Any:
    match kind:
        case Text() if field.name in ("name", "topic", "topic_name", "resource_name"):
            return "a"
        case Nested():
            return _about_a(value)
        case Array(element=element):
            return [_value_about_a(field, element, each) for each in value]
    return 0 if field.name in ("partition_index", "partition") else value
