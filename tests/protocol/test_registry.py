"""The supported APIs, and a frame's path through header and body."""

import ast
import linecache
import struct
import traceback
from pathlib import Path

import msgspec
import pytest

from minicontroller.protocol import errors
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.error_codes import RETRIABLE, ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin, ResponseHeader
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.metadata import MetadataRequest
from minicontroller.protocol.registry import KAFKA, Api, Registry
from minicontroller.protocol.schema import WireStruct
from tests.protocol.instances import samples, versions
from tests.support.grouped import grouped

# What Kafka 3.9.1's own kafka-clients says of each API: lowest and highest version, first flexible
# one.
SPOKEN = {
    ApiKey.PRODUCE: (0, 11, 9),
    ApiKey.FETCH: (0, 17, 12),
    ApiKey.LIST_OFFSETS: (0, 9, 6),
    ApiKey.METADATA: (0, 12, 9),
    ApiKey.LEADER_AND_ISR: (0, 7, 4),
    ApiKey.STOP_REPLICA: (0, 4, 2),
    ApiKey.UPDATE_METADATA: (0, 8, 6),
    ApiKey.CONTROLLED_SHUTDOWN: (0, 3, 3),
    ApiKey.FIND_COORDINATOR: (0, 6, 3),
    ApiKey.DESCRIBE_GROUPS: (0, 5, 5),
    ApiKey.JOIN_GROUP: (0, 9, 6),
    ApiKey.HEARTBEAT: (0, 4, 4),
    ApiKey.LEAVE_GROUP: (0, 5, 4),
    ApiKey.SYNC_GROUP: (0, 5, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4, 3),
    ApiKey.END_TXN: (0, 4, 3),
    ApiKey.WRITE_TXN_MARKERS: (0, 1, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 4, 3),
    ApiKey.LIST_GROUPS: (0, 5, 3),
    ApiKey.SASL_HANDSHAKE: (0, 1, None),
    ApiKey.API_VERSIONS: (0, 4, 3),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4, 4),
    ApiKey.CREATE_TOPICS: (0, 7, 5),
    ApiKey.DELETE_RECORDS: (0, 2, 2),
    ApiKey.DELETE_TOPICS: (0, 6, 4),
    ApiKey.DESCRIBE_ACLS: (0, 3, 2),
    ApiKey.CREATE_ACLS: (0, 3, 2),
    ApiKey.DELETE_ACLS: (0, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: (0, 4, 4),
    ApiKey.ALTER_CONFIGS: (0, 2, 2),
    ApiKey.SASL_AUTHENTICATE: (0, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 4, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: (0, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: (0, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (0, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (0, 3, 2),
    ApiKey.ELECT_LEADERS: (0, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0, 0),
    ApiKey.ALTER_PARTITION: (0, 3, 0),
    ApiKey.ENVELOPE: (0, 0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 1, 0),
    ApiKey.OFFSET_COMMIT: (0, 9, 8),
    ApiKey.OFFSET_FETCH: (0, 9, 6),
    ApiKey.OFFSET_DELETE: (0, 0, None),
    ApiKey.DELETE_GROUPS: (0, 2, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5, 2),
    ApiKey.UPDATE_FEATURES: (0, 1, 0),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 1, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 0, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 0, 0),
}

every_row = grouped(
    "row, version",
    {row.name: [(row, version) for version in range(row.min_version, row.max_version + 1)] for row in KAFKA.values()},
)


def test_all_versions_of_kafka_3_9() -> None:
    """Every API is spoken in exactly the versions of Kafka 3.9, and gets compact forms and tags
    where Kafka's does.
    """
    assert {key: (row.min_version, row.max_version, row.flexible_from) for key, row in KAFKA.items()} == SPOKEN


@every_row
def test_a_request_goes_and_comes(row: Api, version: int) -> None:
    """A request that went out is read with its header, and nothing is left over."""
    header = RequestHeader(row.key, version, 12345, "me" if row.request_header_version(version) else "")
    for message in samples(row.request, version):
        frame = KAFKA.encode_request(header, message)
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        assert KAFKA.decode_request(frame[4:]) == (header, message, 0)


@every_row
def test_a_response_goes_and_comes(row: Api, version: int) -> None:
    """A response that went out is read with its correlation id."""
    for message in samples(row.response, version):
        frame = KAFKA.encode_response(row.key, version, -5, message)
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        assert KAFKA.decode_response(row.key, version, frame[4:]) == (ResponseHeader(-5), message)


def test_header_versions() -> None:
    """ControlledShutdown v0 has no client id, ApiVersions always the oldest response header,
    flexible versions tags in both.
    """
    assert [KAFKA[7].request_header_version(version) for version in range(4)] == [0, 1, 1, 2]
    assert [KAFKA[7].response_header_version(version) for version in range(4)] == [0, 0, 0, 1]
    assert [KAFKA[18].request_header_version(version) for version in range(5)] == [1, 1, 1, 2, 2]
    assert [KAFKA[18].response_header_version(version) for version in range(5)] == [0, 0, 0, 0, 0]
    assert [KAFKA[17].request_header_version(version) for version in range(2)] == [1, 1]
    assert (KAFKA[56].request_header_version(0), KAFKA[56].response_header_version(0)) == (2, 1)


def test_the_oldest_header_drops_the_client_id() -> None:
    """A client id that the header cannot carry is no reason to fail."""
    frame = KAFKA.encode_request(RequestHeader(7, 0, 1, "me"), ControlledShutdownRequest(3))
    assert frame[4:] == struct.pack(">hhii", 7, 0, 1, 3)


def test_a_forwarded_request_names_its_sender() -> None:
    """The principal, the host and the version of the first sender are tags 0, 1 and 2 of header
    version 2 (K590-2a).
    """
    header = RequestHeader(19, 7, 1, "n", origin=RequestOrigin("User:alice", "10.0.0.1", 2))
    frame = KAFKA.encode_request(header, CreateTopicsRequest())
    assert frame[15:].startswith(b"\x03\x00\x0b\x0bUser:alice\x01\x09\x0910.0.0.1\x02\x02\x00\x02")
    assert KAFKA.decode_request(frame[4:])[0] == header
    with pytest.raises(errors.UnencodableMessage, match="origin"):
        KAFKA.encode_request(RequestHeader(3, 8, 1, "n", origin=RequestOrigin("User:alice")), MetadataRequest())


def test_unknown_header_tags_are_kept() -> None:
    """Unknown tagged fields of a header are kept."""
    frame = struct.pack(">hhih", 3, 12, 1, -1) + b"\x01\x09\x02xy" + b"\x00\x01\x00\x00"
    header, _, left = KAFKA.decode_request(frame)
    assert (header.unknown_tags, header.client_id, left) == ({9: b"xy"}, None, 0)


def test_what_is_not_spoken_has_no_row() -> None:
    """An unsupported API, known to Kafka or not, raises an error with its number."""
    for key in (78, 999, -1):
        with pytest.raises(LookupError, match=f"the API {key} is"):
            KAFKA[key]
        with pytest.raises(LookupError):
            KAFKA.encode_response(key, 0, 1, CreateTopicsResponse())
    with pytest.raises(LookupError, match="versions 0 to 7, not 8"):
        KAFKA.encode_response(19, 8, 1, CreateTopicsResponse())


def test_a_registry_is_a_dialect_of_its_own() -> None:
    """A second registry speaks other APIs in other versions, and Kafka's does not notice."""
    older = Registry([ApiKey.METADATA], lambda key: msgspec.structs.replace(KAFKA[key], max_version=5))
    assert ([*older], older.name(3), older.name(19)) == ([3], "Metadata", "API 19")
    frame = KAFKA.encode_request(RequestHeader(3, 6, 1, "n"), MetadataRequest())[4:]
    with pytest.raises(errors.UnsupportedVersion):
        older.decode_request(frame)
    assert KAFKA.decode_request(frame)[2] == 0
    assert older.decode_request(KAFKA.encode_request(RequestHeader(3, 5, 1, "n"), MetadataRequest())[4:])[2] == 0
    with pytest.raises(errors.UnsupportedApi):
        older.decode_request(KAFKA.encode_request(RequestHeader(19, 7, 1, "n"), CreateTopicsRequest())[4:])


def test_a_topic_may_be_encoded_alone() -> None:
    """A struct inside a message has codecs of its own: that is how elements are encoded before
    their message.
    """
    topic = CreatableTopic("t", 3, 2)
    data = encoder(CreatableTopic, 7)(topic)
    assert decoder(CreatableTopic, 7)(data, 0) == (topic, len(data))


def test_everything_compiles() -> None:
    """Every message has its codecs in every version, with the text that made them."""
    for cls, version in versions([cls for row in KAFKA.values() for cls in (row.request, row.response)]):
        encoder(cls, version)
        decoder(cls, version)
        for kind in ("encoder", "decoder"):
            assert linecache.getlines(f"<minicontroller {cls.__name__} v{version} {kind} strict>")


def test_codecs_are_made_once() -> None:
    """Asking twice for the codec of a message and a version returns one function."""
    assert encoder(CreateTopicsRequest, 7) is encoder(CreateTopicsRequest, 7)
    assert decoder(CreateTopicsRequest, 7) is decoder(CreateTopicsRequest, 7)
    assert decoder(CreateTopicsRequest, 7) is not decoder(CreateTopicsRequest, 6)


def test_tracebacks_show_generated_code() -> None:
    """A bug that surfaces in generated code is shown with the line that raised it."""
    with pytest.raises(errors.UnencodableMessage) as caught:
        encoder(CreateTopicsRequest, 7)(CreateTopicsRequest([CreatableTopic(7)]))  # type: ignore[arg-type]
    cause = caught.value.__cause__
    assert cause is not None
    assert "b = m1.name.encode()" in "".join(traceback.format_exception(cause))


@pytest.mark.parametrize("header", [RequestHeader(1, 2, 3, "c"), ResponseHeader(3)])
def test_headers_are_messages(header: WireStruct) -> None:
    """Headers go through the same codec, and a client id of nothing differs from none."""
    data = encoder(type(header), 1)(header)
    assert decoder(type(header), 1)(data, 0) == (header, len(data))


def test_error_codes() -> None:
    """The codes are Kafka 3.9's: -1 to 127 without a gap, none twice, and the retriable ones are
    among them.
    """
    assert sorted(ErrorCode) == list(range(-1, 128))
    assert ErrorCode(41) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.NOT_CONTROLLER in RETRIABLE
    assert ErrorCode.POLICY_VIOLATION not in RETRIABLE


def test_only_protocol_errors_are_raised_for_bytes() -> None:
    """Every error of the package that bytes or messages can cause is a ProtocolError."""
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert classes
    assert all(issubclass(cls, errors.ProtocolError) for cls in classes)


def test_the_protocol_does_no_input_or_output() -> None:
    """The package imports what turns bytes into structs and back, and nothing that waits, reads a
    clock, or opens a file.
    """
    allowed = {
        "ast",
        "collections",
        "contextlib",
        "difflib",
        "enum",
        "functools",
        "importlib",
        "linecache",
        "msgspec",
        "pkgutil",
        "struct",
        "types",
        "typing",
    }
    folder = Path(errors.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, path
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert str(node.module).split(".")[0] in allowed, path
