"""Requests given to the dispatcher of a controller's node, which has every API and keeps its
cluster in memory.

An input is some requests, one after the other: API, version and sender in one byte, size and body
of each. They are sent to a new cluster, whose clock is virtual, so that an answer that never comes
is seen at once. `SENDERS` says who sends: an ordinary client, one with few permissions, one that
logs in, a node that forwards the requests of others, and one that only claims to be a node.
"""

import logging
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any

import trio
import trio.testing
from msgspec import Struct

from minicontroller.controller.apis import apis_of
from minicontroller.controller.handlers.unauthorized_requests import RefusedRequests
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.routes import routed
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.compiler import encoder
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.header import DecidedConfig, DecidedElement, RequestHeader, RequestOrigin
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.metadata import MetadataRequest
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import Array, Field, Kind, Nested, Text, WireStruct, layout_of
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization
from minicontroller.security.caller import Caller, Listener
from minicontroller.security.sasl import PlainExchange
from minicontroller.security.scram_credentials import ScramCredential, derived_credential
from minicontroller.security.scram_server import scram_mechanism
from tests.handlers.ruling import ruling
from tests.protocol.instances import samples
from tests.support.specs import APIS

START = struct.Struct(">BBH")
VERSION_BITS = 5
"""The bits of the second byte that are the version; those above are the sender."""
MOST_REQUESTS = 8
LONGEST_WAIT_SECONDS = 2**31 / 1000 + 60
"""A request may ask for 2^31 milliseconds."""
BROKERS_ONLY = frozenset({ApiKey.CONTROLLED_SHUTDOWN, ApiKey.ENVELOPE})


ADMIN, ALICE, HOST = "User:admin", "User:alice", "10.0.0.9"
PASSWORD = "secret"


class Users:
    """One user with credentials of SCRAM."""

    def __init__(self) -> None:
        self._credential = derived_credential("SCRAM-SHA-256", PASSWORD, salt=b"salt", iterations=4096)

    def scram_credential(self, user: str, _mechanism: str) -> ScramCredential | None:
        return self._credential if user == "alice" else None

    def token_credential(self, _token_id: str, _mechanism: str) -> None:
        return None


LOGIN = Listener(
    name="SASL",
    sasl=True,
    mechanisms={
        "PLAIN": partial(PlainExchange, {"alice": PASSWORD, "admin": PASSWORD}),
        "SCRAM-SHA-256": scram_mechanism("SCRAM-SHA-256", Users(), lambda: b"key"),
    },
    reauthenticate_ms={"PLAIN": 60_000},
)


class Sender(Struct, frozen=True):
    """One of those who send requests."""

    principal: str | None = None
    has_rights: bool = True
    """Whether no ACLs are asked; else the ACLs of `rights` are."""
    listener: Listener = Listener(name="PLAINTEXT", inter_broker=True)
    is_node: bool = False
    origin: RequestOrigin | None = None
    """Whom the sender claims to forward a request for."""

    def caller(self) -> Caller:
        caller = Caller(self.listener, HOST, 50_000)
        caller.from_peer = caller.is_ours = self.is_node
        if self.principal is not None:
            caller.principal = self.principal
        return caller


DECIDED = DecidedElement(2, "a", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "decided", [DecidedConfig("retention.ms", "1")])
SENDERS = (
    Sender(),
    Sender(ALICE, has_rights=False),
    Sender(has_rights=False, listener=LOGIN),
    Sender(is_node=True, has_rights=False, origin=RequestOrigin(ADMIN, "10.0.0.7", 1, 5, received_node=2)),
    Sender(is_node=True, has_rights=False, origin=RequestOrigin(ALICE, "10.0.0.7", 1, 5, received_node=3)),
    Sender(is_node=True, origin=RequestOrigin(None, "", -1, received_node=2, decided=[DECIDED])),
    Sender(has_rights=False, origin=RequestOrigin(ADMIN, "10.0.0.7", 1, 5, received_node=2)),
    Sender(is_node=True),
)
ORDINARY, WITH_FEW_RIGHTS, LOGGING_IN, FORWARDING, FORWARDING_FOR_ALICE, DECIDING, FORGING, NODE = range(8)


def rights() -> Authorization:
    """Let admin do everything, and alice a little with topic `a` and group `g`."""
    index = AclIndex()
    for kind, name, operations in (
        (AclResourceType.TOPIC, "a", (AclOperation.DESCRIBE, AclOperation.ALTER, AclOperation.READ)),
        (AclResourceType.GROUP, "g", (AclOperation.READ,)),
    ):
        entries = [AccessControlEntry(ALICE, "*", operation, PermissionType.ALLOW) for operation in operations]
        index.set_resource(ResourcePattern(kind, name), entries)
    return Authorization(AclRules(index), frozenset({ADMIN}))


class Errors(logging.Handler):
    """Keeps what a node logs as a defect of the program."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def requests_in(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the frames of an input, each with its sender's number."""
    for number in range(MOST_REQUESTS):
        if len(data) < START.size:
            return
        key, byte, size = START.unpack_from(data)
        sender, version = byte >> VERSION_BITS, byte & (1 << VERSION_BITS) - 1
        body, data = data[START.size : START.size + size], data[START.size + size :]
        if key not in KAFKA or not KAFKA[ApiKey(key)].min_version <= version <= KAFKA[ApiKey(key)].max_version:
            continue
        header_version = KAFKA[ApiKey(key)].request_header_version(version)
        origin = SENDERS[sender].origin if header_version >= 2 else None  # older ones have no room for it
        header = encoder(RequestHeader, header_version)
        yield sender, header(RequestHeader(key, version, number, "fuzz", origin)) + body


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


async def _answers(frames: list[tuple[int, bytes]]) -> None:
    async with ruling() as cluster:
        node, observers = cluster.node, [RefusedRequests(cluster.node.port)]
        routes = routed(apis_of(node), node.cache, node.place.is_active)
        open_to_all = Dispatcher(routes, observers)
        guarded = Dispatcher(routes, observers, authorization=rights())
        callers: dict[int, Caller] = {}
        with trio.fail_after(LONGEST_WAIT_SECONDS):
            for number, frame in frames:
                caller = callers.setdefault(number, SENDERS[number].caller())
                dispatcher = open_to_all if SENDERS[number].has_rights else guarded
                try:
                    answer = dispatcher.answer(caller, frame)
                    answered = answer if isinstance(answer, bytes) else await answer
                except ProtocolError:
                    del callers[number]  # its connection has ended
                    continue
                if caller.must_leave:
                    del callers[number]
                key, version = struct.unpack_from(">hh", frame)
                KAFKA.decode_response(key, version, answered[4:])
        assert not open_to_all.counters.unexpected_errors + guarded.counters.unexpected_errors


def packed(message: WireStruct, version: int, sender: int = ORDINARY) -> bytes:
    """Return one request as an input has it."""
    (key,) = (api.key for api in KAFKA.values() if api.request is type(message))
    body = encoder(type(message), version)(message)
    return START.pack(key, sender << VERSION_BITS | version, len(body)) + body


def server_seeds() -> list[bytes]:
    """Return a request of each API that is about a topic that the request before it made."""
    made = packed(CreateTopicsRequest(topics=[CreatableTopic("a", 2, 2)], timeout_ms=1000), 7)
    inputs = [
        made + packed(_about_a(message), version, sender)
        for api in KAFKA.values()
        if api.key in APIS
        for version, senders in ((api.min_version, _SPEAKERS[:2]), (api.max_version, _SPEAKERS))
        for sender in senders
        for message in samples(api.request, version, 3 if sender == ORDINARY else 1)
        if sender in _NODES or api.key not in BROKERS_ONLY
    ]
    return inputs + list(_logins())


_SPEAKERS = (ORDINARY, WITH_FEW_RIGHTS, FORWARDING, FORWARDING_FOR_ALICE, DECIDING, FORGING, NODE)
_NODES = (FORWARDING, FORWARDING_FOR_ALICE, DECIDING, NODE)


def _logins() -> Iterator[bytes]:
    """Yield logins that succeed, fail, and come at the wrong time, with a question after most."""
    question = packed(MetadataRequest(topics=None), 9, LOGGING_IN)
    plain = packed(SaslHandshakeRequest("PLAIN"), 1, LOGGING_IN)
    scram = packed(SaslHandshakeRequest("SCRAM-SHA-256"), 1, LOGGING_IN)
    first = packed(SaslAuthenticateRequest(b"n,,n=alice,r=abc"), 2, LOGGING_IN)
    final = packed(SaslAuthenticateRequest(b"c=biws,r=abc,p=" + b"A" * 44), 2, LOGGING_IN)
    for password in (b"secret", b"wrong"):
        proof = packed(SaslAuthenticateRequest(b"\0alice\0" + password), 2, LOGGING_IN)
        yield from (plain + proof + question, proof + question, plain + proof + plain + proof + question)
    yield from (question, plain + question, scram + first + final + question, scram + first + first)


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
