"""Requests and responses pass through a gateway, and are looked at as bytes. The cluster behind it
is one of this program.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

import pytest

from minicontroller.gateway.apis import APIS
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.describe_acls import DescribeAclsRequest
from minicontroller.protocol.messages.describe_cluster import DescribeClusterRequest
from minicontroller.protocol.messages.find_coordinator import FindCoordinatorRequest
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.protocol.messages.produce import ProduceRequest
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, most_resident_bytes, running_gateway
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.wire import Wire

TIMEOUT_SECONDS = 30.0
PIECE_BYTES, LARGE_BYTES = 1 << 20, 150 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=3, options=["--records"]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateway(cluster: MiniCluster) -> Iterator[GatewayProcess]:
    with running_gateway(cluster.bootstrap) as gateway:
        yield gateway


class Stream:
    """A connection of bytes to an address."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_no_more(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def frame(self) -> bytes:
        """Return the next frame without its size; empty at the end of the stream."""
        size = self._exactly(4)
        return self._exactly(struct.unpack(">i", size)[0]) if size else b""

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self._socket.recv(count - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                return b""
            data += more
        return data


def request(key: int, version: int, message: WireStruct, correlation_id: int = 1) -> bytes:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=correlation_id, client_id="test")
    return KAFKA.encode_request(header, message)


def first_bytes(key: int, version: int, correlation_id: int = 1) -> bytes:
    """A request of no known form: key, version, correlation id, and a client id."""
    body = struct.pack(">hhi", key, version, correlation_id) + struct.pack(">h", 4) + b"test" + bytes(20)
    return struct.pack(">i", len(body)) + body


def answered_in_any_version() -> Iterator[tuple[ApiKey, int]]:
    """Each API and version that passes and that this program can ask for."""
    for key, row in KAFKA.items():
        for version in range(row.min_version, min(row.max_version, APIS[key].newest if key in APIS else -1) + 1):
            if key not in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
                yield ApiKey(key), version


def question(key: ApiKey, version: int) -> WireStruct:
    """A request of an API that has an answer, and where it can one with addresses."""
    message = KAFKA[key].request()
    match message:
        case FindCoordinatorRequest():
            message.key, message.coordinator_keys = ("g", []) if version < 4 else ("", ["g", "h"])
        case MetadataRequest() if version:
            message.topics = None
        case ProduceRequest():
            message.acks = 1
        case DescribeAclsRequest():
            message.resource_type_filter = message.operation = message.permission_type = 1  # any
    return message


def test_no_answer_has_an_address_of_a_broker(cluster: MiniCluster) -> None:
    """The response to each API in each version is searched for the host of the brokers."""
    settings = {"advertised.host": "localhost"}
    with running_gateway(cluster.bootstrap, settings=settings) as gateway, Stream(gateway.bootstrap) as stream:
        for number, (key, version) in enumerate(answered_in_any_version()):
            stream.send(request(key, version, question(key, version), number))
            frame = stream.frame()
            assert frame[:4] == number.to_bytes(4, "big"), (key.name, version)
            assert b"127.0.0.1" not in frame, (key.name, version)


def test_brokers_are_those_of_the_cluster(cluster: MiniCluster, gateway: GatewayProcess) -> None:
    """Ids, and everything but the addresses, are the cluster's own; each address leads to its
    broker.
    """
    with Wire(cluster.bootstrap.split(",")[0]) as direct, Wire(gateway.bootstrap) as through:
        ours, theirs = (wire.ask("DescribeCluster", 1, {}) for wire in (through, direct))
    assert [each["broker_id"] for each in ours["brokers"]] == [each["broker_id"] for each in theirs["brokers"]]
    assert (ours["cluster_id"], ours["controller_id"]) == (theirs["cluster_id"], theirs["controller_id"])
    assert gateway.addresses.keys() == cluster.addresses.keys()
    assert not set(gateway.addresses.values()) & set(cluster.addresses.values())
    for broker_id, address in gateway.addresses.items():
        resource = {"resource_type": 4, "resource_name": str(broker_id)}  # only the broker itself tells its configs
        with Wire(address) as wire:
            (result,) = wire.ask("DescribeConfigs", 4, {"resources": [resource]})["results"]
        assert (result["error_code"], result["resource_name"]) == (0, str(broker_id))


@pytest.mark.parametrize("version", range(5))
def test_versions_are_what_both_speak(cluster: MiniCluster, gateway: GatewayProcess, version: int) -> None:
    """ApiVersions through the gateway names the versions that broker and gateway have in common."""
    answers = []
    for address in (cluster.bootstrap.split(",")[0], gateway.bootstrap):
        with Stream(address) as stream:
            message = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            stream.send(request(ApiKey.API_VERSIONS, version, message))
            answer = KAFKA.decode_response(ApiKey.API_VERSIONS, version, stream.frame())[1]
            assert isinstance(answer, ApiVersionsResponse)
            answers.append({row.api_key: (row.min_version, row.max_version) for row in answer.api_keys})
    direct, through = answers
    assert through.keys() == direct.keys() & APIS.keys()
    for key, (oldest, newest) in through.items():
        assert oldest == max(direct[key][0], 1 if key == ApiKey.SASL_HANDSHAKE else 0)
        assert newest == min(direct[key][1], APIS[key].newest)


def test_a_client_that_is_too_new(gateway: GatewayProcess) -> None:
    """ApiVersions in a version that the gateway does not know is answered in version 0 with the
    versions that it knows (KIP-511), and the connection goes on.
    """
    with Stream(gateway.bootstrap) as stream:
        stream.send(first_bytes(ApiKey.API_VERSIONS, 5, 8))
        header, answer = KAFKA.decode_response(ApiKey.API_VERSIONS, 0, stream.frame())
        assert isinstance(answer, ApiVersionsResponse)
        assert (header.correlation_id, answer.error_code) == (8, ErrorCode.UNSUPPORTED_VERSION)
        assert [(row.api_key, row.max_version) for row in answer.api_keys] == [(ApiKey.API_VERSIONS, 4)]
        stream.send(request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), 9))
        assert isinstance(KAFKA.decode_response(ApiKey.METADATA, 9, stream.frame())[1], MetadataResponse)


def test_a_request_that_the_gateway_answers_takes_no_memory(gateway: GatewayProcess) -> None:
    """A client decides how large a request is, and it is not kept while it comes."""
    head = struct.pack(">ihhi", LARGE_BYTES, ApiKey.API_VERSIONS, 99, 3)
    with Stream(gateway.bootstrap) as stream:
        stream.send(head)
        for _ in range(LARGE_BYTES // PIECE_BYTES - 1):
            stream.send(bytes(PIECE_BYTES))
        stream.send(bytes(PIECE_BYTES - len(head) + 4))
        assert stream.frame()[:4] == (3).to_bytes(4, "big")
    assert most_resident_bytes(gateway.pid) < LARGE_BYTES


def test_a_port_that_is_taken_is_passed_over(cluster: MiniCluster) -> None:
    """The listeners of brokers take the next ports that are free; clients begin at the named one or
    are told that it is taken.
    """
    first = free_port()
    with socket.socket() as other:
        with suppress(OSError):  # if somebody has it, it is taken as well
            other.bind(("127.0.0.1", first + 1))
            other.listen()
        with running_gateway(cluster.bootstrap, listen=f"127.0.0.1:{first}") as gateway:
            assert gateway.bootstrap == f"127.0.0.1:{first}"
            assert min(int(address.rpartition(":")[2]) for address in gateway.addresses.values()) > first + 1
            assert "The next port is tried" in gateway.output
            second = GatewayProcess(cluster.bootstrap, listen=f"127.0.0.1:{first}")
            assert second.wait() == 1
            second.kill()
            assert f"port {first}: " in second.output
            assert "Traceback" not in second.output


def test_no_port_is_left(cluster: MiniCluster) -> None:
    """A gateway that has no port for a broker says which option to change."""
    gateway = GatewayProcess(cluster.bootstrap, listen="127.0.0.1:65535")
    assert gateway.wait() == 1
    gateway.kill()
    assert "give a lower port by --listen" in gateway.output
    assert "Traceback" not in gateway.output


def test_answers_come_in_the_order_of_the_requests(gateway: GatewayProcess) -> None:
    """Requests that the broker answers, whose answers are rewritten, and that the gateway answers
    itself, sent at once on one connection.
    """
    with Stream(gateway.bootstrap) as stream:
        numbers = range(300)
        for number in numbers:
            match number % 4:
                case 0:
                    stream.send(request(ApiKey.METADATA, 9, MetadataRequest(topics=None), number))
                case 1:
                    stream.send(first_bytes(ApiKey.API_VERSIONS, 99, number))
                case 2:
                    stream.send(request(ApiKey.LIST_GROUPS, 4, KAFKA[ApiKey.LIST_GROUPS].request(), number))
                case _:
                    stream.send(request(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), number))
        assert [int.from_bytes(stream.frame()[:4], "big") for _ in numbers] == list(numbers)


@pytest.mark.parametrize(
    ("key", "version"),
    [
        *(
            (key, 0)
            for key in (4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 78, 80, 81, 82, 83, 87, 88, 89, 93, 94)
        ),
        (999, 0),
        (-1, 0),
        (32767, 32767),
        (ApiKey.METADATA, 13),
        (ApiKey.METADATA, -1),
        (ApiKey.SHARE_FETCH, 3),
        (ApiKey.PRODUCE, 14),
        (ApiKey.FETCH, 19),
        (ApiKey.SASL_HANDSHAKE, 0),
    ],
)
def test_what_does_not_pass_ends_the_connection(gateway: GatewayProcess, key: int, version: int) -> None:
    """APIs between brokers, unknown ones, and versions that are not advertised: the connection
    ends, as Kafka ends it, and the broker gets nothing.
    """
    with Stream(gateway.bootstrap) as stream:
        stream.send(first_bytes(key, version))
        assert stream.frame() == b""


@pytest.mark.parametrize(
    "data",
    [b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n", bytes(8), b"\xff" * 8, b"\0\0\0\2\0\3"],
    ids=["tls", "http", "zero", "negative", "short"],
)
def test_what_is_no_request_ends_the_connection(gateway: GatewayProcess, data: bytes) -> None:
    """A stream that is not Kafka's protocol is closed, and the gateway serves on."""
    with Stream(gateway.bootstrap) as stream:
        stream.send(data)
        stream.send_no_more()
        assert stream.frame() == b""
    assert gateway.addresses


def test_a_client_that_sends_no_more_is_answered(gateway: GatewayProcess) -> None:
    """A client that closes its side after a request still gets the response."""
    with Stream(gateway.bootstrap) as stream:
        stream.send(request(ApiKey.METADATA, 9, MetadataRequest(topics=None), 5))
        stream.send_no_more()
        assert stream.frame()[:4] == (5).to_bytes(4, "big")
        assert stream.frame() == b""


def test_it_waits_for_its_cluster() -> None:
    """A gateway whose cluster does not answer says so once, and stops in good order."""
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        gateway = GatewayProcess(f"127.0.0.1:{taken.getsockname()[1]}")
        until(lambda: "the cluster does not answer" in gateway.output)
    gateway.stop()
    assert gateway.output.count("the cluster does not answer") == 1
