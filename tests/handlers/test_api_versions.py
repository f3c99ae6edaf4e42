"""ApiVersions: what is advertised is exactly what is handled."""

from itertools import pairwise

import msgspec
import pytest

from minicontroller.process.observe.logs import ABOUT, ClientWarnings
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.dry_runs import FEATURE
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.describe_acls import DescribeAclsRequest
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.caller import Caller
from tests.support.small_server import CLIENTS, SASL, TINY_HANDLERS, Served, serving
from tests.support.specs import APIS

KCAT = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.0.2")


async def advertised(served: Served, version: int = 3) -> ApiVersionsResponse:
    async with await served.connect() as client:
        return await client.ask(version, KCAT, ApiVersionsResponse)


@pytest.mark.parametrize("version", range(5))
async def test_the_table_is_what_has_a_handler(version: int) -> None:
    """Every API with a handler is advertised in the versions of the codec, by key, and nothing
    without a handler is.
    """
    async with serving() as served:
        answer = await advertised(served, version)
        assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [
            (key, KAFKA[key].min_version, KAFKA[key].max_version) for key in sorted(TINY_HANDLERS)
        ]
        assert all(one.api_key < two.api_key for one, two in pairwise(answer.api_keys))
        assert answer.error_code == ErrorCode.NONE


async def test_no_features_are_finalized() -> None:
    """As in a cluster in ZooKeeper mode, no feature is finalized, and the epoch is -1. The only
    supported one says that the node knows dry runs of deletions (K201-8a, K201-8b).
    """
    async with serving() as served:
        answer = await advertised(served)
        assert [feature.name for feature in answer.supported_features] == [FEATURE]
        assert answer.finalized_features == []
        assert (answer.finalized_features_epoch, answer.zk_migration_ready) == (-1, False)


async def test_what_is_not_advertised_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """For every key and for the versions around every range: outside is the end, with a line that
    names client, key and version.
    """
    async with serving() as served:
        table = {row.api_key: row for row in (await advertised(served)).api_keys}
        outside: list[tuple[int, int]] = [(key, 0) for key in ApiKey if key not in table]
        outside += [(key, row.max_version + 1) for key, row in table.items() if key != ApiKey.API_VERSIONS]
        outside += [(key, row.min_version - 1) for key, row in table.items() if key != ApiKey.API_VERSIONS]
        for key, version in outside:
            caplog.clear()
            served.server.failures._warnings = ClientWarnings()  # so many in a minute would not have a line each
            async with await served.connect() as client:
                await client.ask(3, KCAT, ApiVersionsResponse)
                start = bytes([*key.to_bytes(2), *version.to_bytes(2, signed=True)])
                await client.send((15).to_bytes(4) + start + bytes(4) + b"\0\5probe")
                assert await client.ended()
            assert f"API {int(key)} ({ApiKey(key).name}) version {version}" in caplog.text
            assert "client 'probe'" in caplog.text
            assert getattr(caplog.records[-1], ABOUT)["software"] == "librdkafka/2.0.2"
            assert "127.0.0.1" in caplog.text


async def test_every_advertised_version_is_understood(autojump_clock: object) -> None:
    """An empty request of each API is decoded and answered in each advertised version; of
    DescribeAcls it is one for any ACL, because Kafka reads no other.
    """
    anything = DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
    async with serving() as served:
        served.node.gate.set()
        caller = Caller(CLIENTS, "127.0.0.1", 1)
        for key in TINY_HANDLERS.keys() - {ApiKey.ENVELOPE}:
            api = KAFKA[key]
            for version in range(api.min_version, api.max_version + 1):
                header = RequestHeader(api_key=key, api_version=version, correlation_id=9, client_id="test")
                request = anything if key == ApiKey.DESCRIBE_ACLS else api.request()
                answer = served.dispatcher.answer(caller, KAFKA.encode_request(header, request)[4:])
                frame = answer if isinstance(answer, bytes) else await answer
                # A software name is demanded: the empty one is answered with an error, in the same
                # version.
                assert KAFKA.decode_response(key, version, frame[4:])[0].correlation_id == 9


@pytest.mark.parametrize("text", ["", "-x", "x-", "a b", "a/b", "ä", "x" * 100 + "!", "a\n"])
@pytest.mark.parametrize("field", ["client_software_name", "client_software_version"])
async def test_an_illegal_software_name_is_an_invalid_request(field: str, text: str) -> None:
    """KIP-511: error 42 in the version asked for, and the connection goes on and may try again."""
    async with serving() as served, await served.connect() as client:
        fine = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        asked = msgspec.structs.replace(fine, **{field: text})
        answer = await client.ask(3, asked, ApiVersionsResponse)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])
        assert (await client.ask(3, KCAT, ApiVersionsResponse)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("name", ["a", "confluent-kafka-python", "apache-kafka-java", "x.y-z"])
async def test_the_software_is_remembered_with_the_connection(name: str) -> None:
    """The client's software name and version are kept with its connection, for logs and audit."""
    async with serving() as served, await served.connect() as client:
        asked = ApiVersionsRequest(client_software_name=name, client_software_version="2.16.1-rdkafka-2.16.0")
        await client.ask(4, asked, ApiVersionsResponse)
        (connection,) = served.server.connections
        assert connection.caller.software == f"{name}/2.16.1-rdkafka-2.16.0"


async def test_inter_broker_apis_are_advertised_to_everyone() -> None:
    """APIs between brokers are advertised to every client, as by Kafka in ZooKeeper mode; whether
    the caller is a node is checked at the request.
    """
    handlers = {**TINY_HANDLERS, ApiKey.UPDATE_METADATA: APIS[ApiKey.API_VERSIONS]}
    async with serving(handlers=handlers) as served:
        keys = [row.api_key for row in (await advertised(served)).api_keys]
        assert {ApiKey.UPDATE_METADATA, ApiKey.ENVELOPE} <= set(keys)


async def test_the_table_is_open_before_authentication() -> None:
    """A client has to know the versions of SASL before it can speak it."""
    async with serving(listeners=[SASL]) as served, await served.connect(SASL) as client:
        keys = [row.api_key for row in (await client.ask(3, KCAT, ApiVersionsResponse)).api_keys]
        assert {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE} <= set(keys)
