"""Any bytes give a message or `ProtocolError`, quickly and in bounded memory."""

import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.errors import MalformedMessage, ProtocolError, UnsupportedApi, UnsupportedVersion
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from minicontroller.protocol.messages.metadata import MetadataRequest
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minicontroller.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from minicontroller.protocol.wire import MAX_ELEMENTS, MAX_TAGS, uvarint
from tests.protocol.instances import cases, samples
from tests.protocol.mutations import mutated

MUTATIONS = 40  # of each message and version
BIG = 100_000  # bytes of hostile input where only its length could hurt


def metadata_frame(version: int, body: bytes, *, header_tags: bytes = b"\x00") -> bytes:
    return struct.pack(">hhih", 3, version, 1, -1) + (header_tags if version >= 9 else b"") + body


def create_topics_frame(body: bytes) -> bytes:
    return struct.pack(">hhih", 19, 7, 1, -1) + b"\x00" + body


@cases()
def test_mutations_give_a_message_or_protocol_error(cls: type[WireStruct], version: int) -> None:
    """No broken message escapes as another error, and what is read can be written
    and read again.
    """
    random = Random(f"{cls.__name__} {version}")
    valid = [encoder(cls, version)(message) for message in samples(cls, version)]
    for _ in range(MUTATIONS):
        data = mutated(random.choice(valid), random)
        try:
            message, end = decoder(cls, version)(data, 0)
        except MalformedMessage:
            continue
        assert 0 <= end <= len(data)
        again = encoder(cls, version)(message)
        assert decoder(cls, version)(again, 0) == (message, len(again))


@cases()
def test_every_truncation_is_refused(cls: type[WireStruct], version: int) -> None:
    """A message that misses its end is no message, wherever it was cut."""
    data = max((encoder(cls, version)(message) for message in samples(cls, version)), key=len)
    for size in range(len(data)):
        with pytest.raises(MalformedMessage):
            decoder(cls, version)(data[:size], 0)


def test_random_bytes_in_a_right_frame() -> None:
    """Noise gives a request or ProtocolError, from the header on."""
    random = Random(590)
    for size in range(400):
        noise = random.randbytes(size)
        for frame in (noise, b"\x00" + noise, metadata_frame(12, noise), create_topics_frame(noise)):
            try:
                KAFKA.decode_request(frame)
            except ProtocolError:
                continue


@pytest.mark.parametrize(
    "frame",
    [
        b"\x00\x12\x00",
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303") + bytes(190),
        metadata_frame(12, b"\x00" * 40, header_tags=b"\x80\x80\x80\x80\x01"),
        metadata_frame(1, b"\x7f\xff\xff\xff"),
        create_topics_frame(b"\xff\xff\xff\xff\x0f"),
        create_topics_frame(b"\x02\x81\x80\x80\x80\x08" + bytes(40)),
        create_topics_frame(b"\xff" * 10),
        create_topics_frame(b"\x02\x00" + bytes(40)),
        struct.pack(">hhih", 18, 3, 1, -1) + b"\x00",
    ],
    ids=[
        "three bytes",
        "HTTP",
        "TLS hello",
        "2^28 header tags",
        "array count 2^31-1",
        "compact count 2^32-1 where null is not allowed",
        "name length 2^31",
        "varint of ten ff",
        "null name",
        "ApiVersions with an empty body",
    ],
)
def test_what_kafka_closes_is_refused(frame: bytes) -> None:
    """The hostile requests on which a real Kafka closes the connection give ProtocolError."""
    with pytest.raises(ProtocolError):
        KAFKA.decode_request(frame)


@pytest.mark.parametrize(
    ("frame", "topics"),
    [
        (metadata_frame(1, struct.pack(">i", -5)), None),
        (metadata_frame(12, b"\xff\xff\xff\xff\x0f\x01\x00\x00"), None),
        (metadata_frame(12, b"\x00\x01\x00\x00"), None),
        (metadata_frame(12, b"\x01\x01\x00\x00"), []),
    ],
    ids=["count -5", "compact count 2^32-1", "compact null", "empty"],
)
def test_null_in_disguise(frame: bytes, topics: list[object] | None) -> None:
    """A negative count is null where null is allowed, in whichever form it comes, as Kafka takes
    it.
    """
    _, message, left = KAFKA.decode_request(frame)
    assert isinstance(message, MetadataRequest)
    assert (message.topics, left) == (topics, 0)


def test_a_negative_client_id_length_is_null() -> None:
    """A client id of length -7 is none at all."""
    header, _, _ = KAFKA.decode_request(struct.pack(">hhihi", 3, 1, 1, -7, -1))
    assert header.client_id is None


def test_trailing_bytes_are_counted() -> None:
    """Trailing bytes of a request are counted, and the server decides about them."""
    _, _, left = KAFKA.decode_request(metadata_frame(12, b"\x00\x01\x00\x00" + bytes(20)))
    assert left == 20


def test_trailing_bytes_of_a_response_are_an_error() -> None:
    """Between nodes nothing may be left over."""
    frame = struct.pack(">ihii", 7, 0, 0, 0)
    assert KAFKA.decode_response(18, 1, frame)[0].correlation_id == 7
    with pytest.raises(MalformedMessage, match="1 bytes are left over"):
        KAFKA.decode_response(18, 1, frame + b"\x00")


def test_a_name_that_is_not_utf8() -> None:
    """Invalid UTF-8 is read with U+FFFD in its place, in the message, in its tags and in the
    header, and costs no second error.
    """
    body = b"\x02\x04a\xffb" + struct.pack(">ih", 1, 1) + b"\x01\x01\x00" + struct.pack(">i?", 1000, False) + b"\x00"
    header, message, left = KAFKA.decode_request(struct.pack(">hhih", 19, 7, 1, 1) + b"\xfe\x00" + body)
    assert isinstance(message, CreateTopicsRequest)
    assert (header.client_id, message.topics[0].name, left) == ("�", "a�b", 0)
    features = b"\x02\x02\xff" + bytes(4) + b"\x00"
    data = struct.pack(">hBi", 0, 1, 0) + b"\x01\x00" + bytes([len(features)]) + features
    response, _ = decoder(ApiVersionsResponse, 3)(data, 0)
    assert response.supported_features[0].name == "�"


@pytest.mark.parametrize("name", [b"\xff" * 10_923, b"a" * 32_000 + b"\xff" * 300], ids=["all of it", "its end"])
@pytest.mark.parametrize("version", [1, 12])
def test_a_name_that_is_too_long_once_it_is_utf8_is_malformed(version: int, name: bytes) -> None:
    """What replaces bytes is longer than they are, and what was read can always be written again:
    else it is refused where it is read.
    """
    form = struct.pack(">ih", 1, len(name)) if version == 1 else b"\x02" + bytes(16) + uvarint(len(name) + 1)
    frame = metadata_frame(version, form + name + (b"" if version == 1 else bytes(4)))
    with pytest.raises(MalformedMessage, match="that are no UTF-8"):
        KAFKA.decode_request(frame)


def test_the_longest_name_that_is_not_utf8_can_be_written_again() -> None:
    """10,922 replacements of three bytes fit a string of 32,767."""
    _, message, _ = KAFKA.decode_request(metadata_frame(1, struct.pack(">ih", 1, 10_922) + b"\xff" * 10_922))
    assert isinstance(message, MetadataRequest)
    KAFKA.encode_request(RequestHeader(3, 1, 1, "c"), message)


def test_any_boolean_but_zero_is_true() -> None:
    """Kafka takes 2 for true."""
    _, message, _ = KAFKA.decode_request(metadata_frame(12, b"\x00\x02\x00\x00"))
    assert isinstance(message, MetadataRequest)
    assert message.allow_auto_topic_creation is True


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02\x05\x00\x05\x00",
        b"\x02\x05\x00\x04\x00",
        b"\x01\x05\x09abc",
        b"\xff\xff\xff\xff\x0f",
        b"\x01\xff\xff\xff\xff\xff\x0f",
    ],
    ids=["twice", "descending", "longer than the frame", "2^32-1 of them", "tag of six bytes"],
)
def test_broken_tags_are_refused(tags: bytes) -> None:
    """Tagged fields that are out of order, too long or too many are no message."""
    with pytest.raises(MalformedMessage):
        KAFKA.decode_request(metadata_frame(12, b"\x00\x01\x00" + tags))


@pytest.mark.parametrize("size", [0, 7, 9], ids=["empty", "short", "long"])
def test_a_tagged_value_fills_its_size(size: int) -> None:
    """A known tagged field whose value is shorter or longer than its size is refused, because later
    fields would be read from the wrong place.
    """
    data = struct.pack(">hBi", 0, 1, 0) + bytes([1, 1, size]) + bytes(size) + bytes(8)
    with pytest.raises(MalformedMessage):
        decoder(ApiVersionsResponse, 3)(data, 0)


def test_an_unknown_api_names_its_client() -> None:
    """The error of an unknown API has key, version, correlation id and client id."""
    with pytest.raises(UnsupportedApi) as caught:
        KAFKA.decode_request(struct.pack(">hhih", 999, 4, 77, 3) + b"abc" + b"rest")
    error = caught.value
    assert (error.api_key, error.api_version, error.correlation_id, error.client_id) == (999, 4, 77, "abc")
    assert str(error) == "client 'abc' asks for the unknown API 999 in version 4"


@pytest.mark.parametrize("version", [99, -1, 5])
def test_an_unknown_version_names_its_client(version: int) -> None:
    """An unknown version is told apart from an unknown key: ApiVersions is answered
    then (KIP-511).
    """
    frame = struct.pack(">hhih", 18, version, 77, 3) + b"abc" + b"\x00whatever"
    with pytest.raises(UnsupportedVersion) as caught:
        KAFKA.decode_request(frame)
    assert (caught.value.api_version, caught.value.correlation_id, caught.value.client_id) == (version, 77, "abc")
    assert "'abc'" in str(caught.value)


@pytest.mark.parametrize("tail", [b"", b"\x00", b"\x00\x09abc", b"\xff\xff"])
def test_an_unknown_version_without_a_client(tail: bytes) -> None:
    """Where the client's name cannot be read there is none; the rest is told all the same."""
    with pytest.raises(UnsupportedVersion) as caught:
        KAFKA.decode_request(struct.pack(">hhi", 3, 99, 5) + tail)
    assert (caught.value.correlation_id, caught.value.client_id) == (5, None)


def peak_bytes(function: Callable[[], object]) -> int:
    """The most memory that was allocated at one time while the function ran."""
    tracemalloc.start()
    try:
        function()
    except ProtocolError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    "frame",
    [
        metadata_frame(1, b"\x7f\xff\xff\xff" + bytes(50)),
        metadata_frame(12, b"\xff\xff\xff\xff\x07" + bytes(50)),
        create_topics_frame(b"\xff\xff\xff\xff\x07" + bytes(50)),
        create_topics_frame(b"\x02\x02a" + bytes(6) + b"\x02\x00\x00\x00\x00\xff\xff\xff\xff\x07" + bytes(50)),
        metadata_frame(12, b"\x00\x01\x00" + b"\xff\xff\xff\xff\x07" + bytes(50)),
    ],
    ids=["classic count", "compact count", "compact count, no null", "count of numbers", "count of tags"],
)
def test_a_count_allocates_nothing(frame: bytes) -> None:
    """An array that announces two thousand million elements in a small frame costs no more than the
    frame.
    """
    with pytest.raises(ProtocolError):
        KAFKA.decode_request(frame)
    assert peak_bytes(lambda: KAFKA.decode_request(frame)) < 20_000


@pytest.mark.parametrize(
    ("frame", "times"),
    [
        (create_topics_frame(b"\x80" * BIG), 1),
        (metadata_frame(12, b"\x00\x01\x00\x01\x00" + b"\x80" * BIG), 2),
        (metadata_frame(1, struct.pack(">i", BIG // 2) + bytes(BIG)), 60),
        (metadata_frame(0, struct.pack(">ih", 1, -1) + bytes(BIG)), 1),
    ],
    ids=["one endless varint", "an endless tag", "as many empty names as fit", "null name"],
)
def test_memory_stays_a_small_multiple_of_the_frame(frame: bytes, times: int) -> None:
    """Decoding keeps memory proportional to the frame: at worst one struct for the two bytes of an
    empty name.
    """
    with suppress(ProtocolError):  # what is compiled at first use is no part of it
        KAFKA.decode_request(frame)
    assert peak_bytes(lambda: KAFKA.decode_request(frame)) < times * BIG + 50_000


class Counting(bytes):
    """Bytes that count how often they are looked at: time by counting, not by the clock."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        Counting.looks += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("size", [1_000, 10_000])
@pytest.mark.parametrize(
    "make",
    [
        lambda size: create_topics_frame(b"\x80" * size),
        lambda size: create_topics_frame(b"\x02\x02a" + bytes(6) + b"\xff\x7f" * size),
        lambda size: metadata_frame(1, struct.pack(">i", size) + bytes(2 * size)),
        lambda size: metadata_frame(1, struct.pack(">i", size) + b"\x00\x01\xff" * size),
    ],
    ids=["endless varint", "long counts", "empty names", "names without UTF-8"],
)
def test_work_is_linear_in_the_length(make: Callable[[int], bytes], size: int) -> None:
    """Each byte is looked at a few times at most, twice that where text has to be
    read leniently.
    """
    frame = Counting(make(size))
    decode_request_quietly(frame)
    Counting.looks = 0
    decode_request_quietly(frame)
    assert Counting.looks <= 6 * size + 100


def decode_request_quietly(frame: bytes) -> None:
    try:
        KAFKA.decode_request(frame)
    except ProtocolError:
        return


def test_a_long_body_of_bytes_is_copied_once() -> None:
    """Bytes as long as a frame allows cost one copy."""
    frame = KAFKA.encode_request(RequestHeader(36, 2, 1, "c"), SaslAuthenticateRequest(bytes(10 * BIG)))[4:]
    assert peak_bytes(lambda: KAFKA.decode_request(frame)) < 11 * BIG


def test_the_shortest_apiversions_request() -> None:
    """Versions 0 to 2 have no body, and nothing is missing."""
    _, message, left = KAFKA.decode_request(struct.pack(">hhih", 18, 0, 1, -1))
    assert (message, left) == (ApiVersionsRequest(), 0)


@pytest.mark.parametrize(
    "frame",
    [
        metadata_frame(1, struct.pack(">i", MAX_ELEMENTS + 1) + bytes(2 * MAX_ELEMENTS + 2)),
        KAFKA.encode_request(
            RequestHeader(19, 4, 1, "c"),
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(assignments=[CreatableReplicaAssignment(partition_index=0)] * 300)
                    for _ in range(700)
                ]
            ),
        )[4:],
        KAFKA.encode_request(
            RequestHeader(19, 4, 1, "c"),
            CreateTopicsRequest(
                topics=[CreatableTopic(assignments=[CreatableReplicaAssignment(broker_ids=[1] * MAX_ELEMENTS)] * 17)]
            ),
        )[4:],
        metadata_frame(
            12, b"\x01\x00\x00" + uvarint(MAX_TAGS + 1) + b"".join(uvarint(n) + b"\0" for n in range(MAX_TAGS + 1))
        ),
    ],
    ids=["names", "elements of elements", "numbers", "tags"],
)
def test_a_request_has_so_many_elements_and_no_more(frame: bytes) -> None:
    """All arrays of a request together are bounded: a hundred megabytes of empty names would be
    tens of seconds and gigabytes.
    """
    with pytest.raises(MalformedMessage, match=r"elements|tagged fields"):
        KAFKA.decode_request(frame)


def test_what_controllers_tell_grows_with_the_cluster() -> None:
    """Requests between nodes have no limit of elements, because they grow with the cluster; the
    same requests from clients have one.
    """
    states = [UpdateMetadataPartitionState() for _ in range(MAX_ELEMENTS + 1)]
    request = UpdateMetadataRequest(topic_states=[UpdateMetadataTopicState(partition_states=states)])
    frame = KAFKA.encode_request(RequestHeader(6, 7, 1, "c"), request)[4:]
    _, message, _ = KAFKA.decode_request(frame, of_a_node=True)
    assert message == request
    with pytest.raises(MalformedMessage, match="elements"):
        KAFKA.decode_request(frame)


def test_what_a_node_forwards_is_bounded_as_its_client_was() -> None:
    """A node forwards no more elements than a client may send."""
    frame = metadata_frame(1, struct.pack(">i", MAX_ELEMENTS + 1) + bytes(2 * MAX_ELEMENTS + 2))
    with pytest.raises(MalformedMessage, match="elements"):
        KAFKA.decode_request(frame, of_a_node=True)
