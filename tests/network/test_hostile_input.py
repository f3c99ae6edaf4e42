"""Malformed input on a fresh connection: each row of a table tried on a real Kafka, and more. After
each, the next client is answered.
"""

import struct
from random import Random

import pytest
import trio

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.api_versions import ApiVersionsResponse
from minicontroller.protocol.messages.create_topics import CreateTopicsResponse
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.small_server import Client, TinyNode, serving

pytestmark = pytest.mark.usefixtures("each_transport")

CLIENT_ID = struct.pack(">h", 4) + b"test"


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request(key: int, version: int, body: bytes, *, client_id: bytes = CLIENT_ID, tags: bytes = b"") -> bytes:
    return framed(struct.pack(">hhi", key, version, 7) + client_id + tags + body)


RANDOM = Random(4)

CLOSED = {
    "a size of 2^31-1": struct.pack(">i", 2**31 - 1),
    "a size of -1": struct.pack(">i", -1),
    "a size of -2^31": struct.pack(">i", -(2**31)),
    "a size of 0": struct.pack(">i", 0),
    "a size of 100 MiB + 1": struct.pack(">i", 100 * 1024 * 1024 + 1),
    "3 bytes in a frame of 3": framed(b"abc"),
    "no bytes but a header's half": framed(struct.pack(">hhh", 3, 1, 0)),
    "random bytes in a right frame": framed(RANDOM.randbytes(100)),
    "random 64 KiB": RANDOM.randbytes(64 * 1024),
    "an HTTP GET": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + RANDOM.randbytes(200),
    "the unknown api key 999": request(999, 0, b""),
    "the negative api key -1": request(-1, 0, b""),
    "an API that has no handler": request(1, 12, b""),
    "Metadata v99": request(3, 99, b""),
    "Metadata v-1": request(3, -1, b""),
    "ApiVersions v3 with an empty body": request(18, 3, b""),
    "Metadata v1 with an array count of 2^31-1": request(3, 1, struct.pack(">i", 2**31 - 1)),
    "CreateTopics v7 with a compact count of 2^32-1": request(19, 7, b"\xff\xff\xff\xff\x0f", tags=b"\0"),
    "CreateTopics v7 with a name of 2^31 bytes": request(19, 7, b"\x02\x81\x80\x80\x80\x08", tags=b"\0"),
    "CreateTopics v7 with a varint of ten ff": request(19, 7, b"\xff" * 10, tags=b"\0"),
    "Metadata v12 with 2^28 header tags": request(3, 12, b"\x01\x01\0\0", tags=b"\x80\x80\x80\x80\x01"),
    "a client id longer than its frame": request(3, 1, b"", client_id=struct.pack(">h", 30_000)),
    "CreateTopics v7 with a negative array length where v4 has one": request(19, 4, struct.pack(">i", -5)),
    "a name whose bytes are no UTF-8, too long once they are replaced": request(
        3, 1, struct.pack(">ih", 1, 11_000) + b"\xff" * 11_000
    ),
    "such a client id": request(3, 1, struct.pack(">i", -1), client_id=struct.pack(">h", 11_000) + b"\xff" * 11_000),
    "what only nodes send, with a million elements": request(
        5, 0, struct.pack(">iibi", 1, 1, 0, 10**6) + bytes(6 * 10**6)
    ),
}


@pytest.mark.parametrize("sent", CLOSED.values(), ids=CLOSED)
async def test_what_is_not_kafka_ends_its_connection_only(sent: bytes) -> None:
    """Bytes that are no request of an API served here end the connection without an answer, and the
    next client is answered.
    """
    async with serving() as served:
        async with await served.connect() as client:
            await client.send(sent)
            assert await client.ended()
        assert await served.alive()
        assert served.dispatcher.counters.unexpected_errors == 0


async def metadata_v(version: int, sent: bytes) -> MetadataResponse:
    async with serving() as served, await served.connect() as client:
        await client.send(sent)
        _, answer = await client.answer(MetadataResponse, version)
        return answer


@pytest.mark.parametrize(
    ("version", "sent"),
    [
        (1, request(3, 1, struct.pack(">i", -5))),
        (12, request(3, 12, b"\xff\xff\xff\xff\x0f" + b"\1\0\0\0"[1:], tags=b"\0")),
        (1, request(3, 1, struct.pack(">i", -1), client_id=struct.pack(">h", -7))),
        (12, request(3, 12, b"\0" + b"\1\0\0" + bytes(20), tags=b"\0")),
        (12, framed(bytes.fromhex("0003000c00000005000772646b61666b610000000000010000"))),
    ],
    ids=[
        "count -5 is null",
        "compact count 2^32-1 is null",
        "client id of length -7 is null",
        "20 trailing bytes",
        "all topics as librdkafka 2.16.0 asks for them, with a count of 4 bytes where 1 belongs",
    ],
)
async def test_what_kafka_tolerates_is_answered(version: int, sent: bytes) -> None:
    """Counts that wrap to null, a negative client id and trailing bytes are answered, as Kafka
    answers them.
    """
    answer = await metadata_v(version, sent)
    assert [topic.name for topic in answer.topics] == ["all"]


async def test_a_name_that_is_not_utf_8_reaches_the_handler_as_a_replacement() -> None:
    """Invalid UTF-8 is no decode error: the handler sees U+FFFD and judges the name."""
    node = TinyNode(controller="this one")
    node.gate.set()
    body = b"\x02" + b"\x03\xff\xfe" + struct.pack(">ih", 1, 1) + b"\x01\x01\0" + struct.pack(">i", 0) + b"\0\0"
    async with serving(node=node) as served, await served.connect() as client:
        await client.send(request(19, 7, body, tags=b"\0"))
        _, answer = await client.answer(CreateTopicsResponse, 7)
    assert answer.topics[0].name == "\ufffd\ufffd"


@pytest.mark.parametrize("version", [99, -1, 5, 32767])
async def test_a_foreign_version_of_api_versions_is_answered_in_version_0(version: int) -> None:
    """KIP-511: ApiVersions in an unknown version is answered in version 0 with error 35 and the
    range of ApiVersions alone, and the connection goes on.
    """
    async with serving() as served, await served.connect() as client:
        await client.send(request(18, version, b"whatever", tags=b"\0"))
        correlation_id, answer = await client.answer(ApiVersionsResponse, 0)
        assert (correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
        assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]
        assert (await client.ask(1, MetadataRequest(topics=[]), MetadataResponse)).topics == []


async def test_a_truncated_frame_waits_for_its_rest() -> None:
    """A frame of which nothing more comes is kept, not answered; its end of stream ends it."""
    async with serving() as served, await served.connect() as client:
        await client.send(request(3, 1, struct.pack(">i", -1))[:-1])
        assert await client.silent()
        await client.socket.send_eof()
        assert await client.ended()


async def test_a_request_byte_by_byte_is_answered() -> None:
    """However the stream is torn, the request is the same."""
    async with serving() as served, await served.connect() as client:
        for byte in request(3, 1, struct.pack(">i", -1)):
            await client.send(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()
        _, answer = await client.answer(MetadataResponse, 1)
        assert [topic.name for topic in answer.topics] == ["all"]


async def test_requests_before_the_bad_one_are_answered() -> None:
    """Requests that came in one read with, and before, the bytes that end the connection are
    answered.
    """
    async with serving() as served, await served.connect() as client:
        await client.send(client.encode(1, MetadataRequest(topics=None)) + framed(b"abc"))
        await client.answer(MetadataResponse, 1)
        assert await client.ended()


async def survives(client: Client, sent: bytes) -> None:
    """Write, and take whatever comes back, until the server ends the connection or has nothing to
    say.
    """
    try:
        await client.send(sent)
        await client.socket.send_eof()
        while await client.stream.receive_some(65536):
            pass
    except trio.BrokenResourceError:
        pass


@pytest.mark.parametrize("seed", range(4))
async def test_mutations_of_requests_never_hurt_the_server(seed: int) -> None:
    """Random bytes and mutated requests are answered or end their connection; no exception is
    logged, and the next client is answered.
    """
    random = Random(seed)
    node = TinyNode(controller="this one")
    node.gate.set()
    async with serving(node=node) as served:
        samples = [
            request(3, 1, struct.pack(">ih", 1, 3) + b"abc"),
            request(3, 12, b"\x02" + bytes(16) + b"\x04abc\0" + b"\1\0\0", tags=b"\0"),
            request(18, 3, b"\x05test\x041.0\0", tags=b"\0"),
            request(19, 7, b"\x02\x04abc" + struct.pack(">ih", 1, 1) + b"\x01\x01\0" + bytes(5) + b"\0", tags=b"\0"),
            request(58, 0, b"\x05abcd\x05abcd\x057\0\0\1\0", tags=b"\0"),
        ]
        for _ in range(150):
            data = bytearray(random.choice(samples))
            for _ in range(random.randrange(1, 6)):
                data[random.randrange(4, len(data))] = random.randrange(256)
            if random.random() < 0.2:
                data = bytearray(framed(bytes(data[4 : random.randrange(5, len(data))])))
            async with await served.connect() as client:
                await survives(client, bytes(data))
        assert served.dispatcher.counters.unexpected_errors == 0
        assert await served.alive()


async def test_a_long_name_makes_no_long_line(caplog: pytest.LogCaptureFixture) -> None:
    """The log has only the beginning of a long client id."""
    named = struct.pack(">h", 30_000) + b"n" * 30_000
    async with serving() as served:
        for sent in (request(3, 99, b"", client_id=named), request(3, 1, b"\0", client_id=named)):
            async with await served.connect() as client:
                await client.send(sent)
                assert await client.ended()
    assert "nnn" in caplog.text
    assert max(map(len, caplog.text.splitlines())) < 1_000
