"""Every message in every version decodes to what was encoded."""

import contextlib
from copy import deepcopy
from typing import Any

import pytest

from minicontroller.protocol.compiler import decoder, encoder
from minicontroller.protocol.errors import UnencodableMessage
from minicontroller.protocol.messages.consumer_group_heartbeat import (
    AssignedPartitions,
    ConsumerGroupHeartbeatResponse,
    MemberAssignment,
)
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minicontroller.protocol.messages.update_metadata import UpdateMetadataRequest
from minicontroller.protocol.schema import WireStruct
from tests.protocol.instances import cases, samples, with_unknown_tags

EDGES = (0, 1, 15, 16, 17, 126, 127, 128, 4094, 4095, 4096, 16382, 16383, 16384)  # where a length changes its form


@cases()
def test_every_version_round_trips(cls: type[WireStruct], version: int) -> None:
    """A message of any version comes back as it was, with the end of its bytes, from whatever
    offset it stands at.
    """
    for message in samples(cls, version):
        data = encoder(cls, version)(message)
        assert decoder(cls, version)(data, 0) == (message, len(data))
        assert decoder(cls, version)(b"abc" + data + b"tail", 3) == (message, len(data) + 3)


@cases()
def test_unknown_tags_survive(cls: type[WireStruct], version: int) -> None:
    """Tagged fields nobody declared are kept at every level and written again, in ascending order
    whatever order they came in.
    """
    for number, message in enumerate(deepcopy(samples(cls, version))):
        values = [b"", b"x" * 127, b"\0\xff" * (20 * number)][number % 3 :]
        tags = {(77, 300, 2**31)[index]: value for index, value in reversed(list(enumerate(values)))}
        if with_unknown_tags(message, version, tags):
            data = encoder(cls, version)(message)
            back, end = decoder(cls, version)(data, 0)
            assert (back, end) == (message, len(data))
            assert encoder(cls, version)(back) == data


@pytest.mark.parametrize("version", [4, 7])
@pytest.mark.parametrize("size", EDGES)
def test_lengths_at_their_edges(size: int, version: int) -> None:
    """Strings, arrays of structs and arrays of numbers round-trip at every length where the form
    changes.
    """
    message = CreateTopicsRequest(
        topics=[
            CreatableTopic("n" * size, 1, 1, [CreatableReplicaAssignment(3, list(range(size)))]),
            CreatableTopic("é", 1, 1, [], [CreatableTopicConfig("c", "v" * size)] * 2),
            *[CreatableTopic("t")] * size,
        ]
    )
    data = encoder(CreateTopicsRequest, version)(message)
    assert decoder(CreateTopicsRequest, version)(data, 0) == (message, len(data))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", [*EDGES, 2**21 - 2, 2**21 - 1, 2**21])
def test_bytes_at_their_edges(size: int, version: int) -> None:
    """Bytes round-trip at every length where the form changes, far beyond what a
    string may have.
    """
    message = SaslAuthenticateRequest(b"\xff" * size)
    data = encoder(SaslAuthenticateRequest, version)(message)
    assert decoder(SaslAuthenticateRequest, version)(data, 0) == (message, len(data))


@pytest.mark.parametrize("version", [4, 7])
def test_a_string_may_have_32767_bytes(version: int) -> None:
    """Kafka's limit on strings holds in the compact form as in the classic one: 32,767 bytes go,
    one more does not.
    """
    encode = encoder(CreateTopicsRequest, version)
    longest = CreateTopicsRequest([CreatableTopic("n" * 32767)])
    assert decoder(CreateTopicsRequest, version)(encode(longest), 0)[0] == longest
    with pytest.raises(UnencodableMessage):
        encode(CreateTopicsRequest([CreatableTopic("n" * 32768)]))


@pytest.mark.parametrize("assignment", [None, MemberAssignment([AssignedPartitions(b"t" * 16, [3])])])
def test_nullable_structs(assignment: MemberAssignment | None) -> None:
    """A struct that may be null is there or not, as it was sent."""
    message = ConsumerGroupHeartbeatResponse(assignment=assignment)
    data = encoder(ConsumerGroupHeartbeatResponse, 0)(message)
    assert decoder(ConsumerGroupHeartbeatResponse, 0)(data, 0) == (message, len(data))


def test_known_tags_stay_away_while_they_have_their_default() -> None:
    """A tagged field costs nothing until it has something to say, and then stands among the unknown
    ones by its number.
    """
    encode = encoder(UpdateMetadataRequest, 8)
    plain = encode(UpdateMetadataRequest())
    told = encode(UpdateMetadataRequest(type=1))
    assert plain.endswith(b"\x00")
    assert told == plain[:-1] + b"\x01\x00\x01\x01"
    both = encode(UpdateMetadataRequest(type=2, unknown_tags={5: b"xy"}))
    assert both == plain[:-1] + b"\x02\x00\x01\x02\x05\x02xy"
    back, _ = decoder(UpdateMetadataRequest, 8)(both, 0)
    assert (back.type, back.unknown_tags) == (2, {5: b"xy"})


def test_an_element_may_be_bytes() -> None:
    """Elements that were encoded before stand among the others as if they had been encoded with
    them.
    """
    topics = [MetadataResponseTopic(0, f"topic-{number}") for number in range(3)]
    encode_topic = encoder(MetadataResponseTopic, 12)
    mixed: list[Any] = [encode_topic(topics[0]), topics[1], encode_topic(topics[2])]
    encode = encoder(MetadataResponse, 12)
    assert encode(MetadataResponse(topics=mixed)) == encode(MetadataResponse(topics=topics))


def test_ignorable_fields_are_dropped_where_the_version_lacks_them() -> None:
    """Ignorable fields are left out in versions that lack them."""
    full = CreateTopicsResponse(5, [CreatableTopicResult("t", b"\1" * 16, 3, "why", 29, 4, 2, [])])
    bare = CreateTopicsResponse(topics=[CreatableTopicResult("t", error_code=3)])
    assert encoder(CreateTopicsResponse, 0)(full) == encoder(CreateTopicsResponse, 0)(bare)


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(allow_auto_topic_creation=False), 3),  # not ignorable, and not its default
        (DeleteTopicsRequest(topics=[DeleteTopicState("t")]), 5),
        (CreateTopicsRequest(validate_only=True), 0),
        (MetadataRequest(topics=None), 0),  # null before null was allowed
        (CreateTopicsRequest([CreatableTopic(None)]), 7),  # type: ignore[arg-type]
        (CreateTopicsRequest(timeout_ms=2**31), 7),
        (CreateTopicsRequest(timeout_ms="1"), 7),  # type: ignore[arg-type]
        (DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=b"short")]), 6),
        (DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=b"x" * 17)]), 6),
    ],
)
def test_what_a_version_cannot_carry_is_refused(message: WireStruct, version: int) -> None:
    """A value that would be lost, a null, a number out of range, a wrong type or id: an error that
    names message and version.
    """
    with pytest.raises(UnencodableMessage, match=rf"{type(message).__name__} v{version}"):
        encoder(type(message), version)(message)


def test_text_without_utf8_is_written_with_question_marks() -> None:
    """A lone surrogate, as JSON may hold it, does not stop an answer: it becomes
    "?", as in Java.
    """
    data = encoder(CreateTopicsRequest, 7)(CreateTopicsRequest([CreatableTopic("a\ud800b")]))
    back, _ = decoder(CreateTopicsRequest, 7)(data, 0)
    assert back.topics[0].name == "a?b"


@pytest.mark.parametrize("version", [-1, 8])
def test_versions_that_do_not_exist_have_no_codec(version: int) -> None:
    """Asking for a codec outside a message's versions is an error of the caller, said at once."""
    for make in (encoder, decoder):
        with contextlib.suppress(LookupError):
            make(CreateTopicsRequest, version)
            pytest.fail("no error")
