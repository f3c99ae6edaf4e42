"""The error form of each API, and what the client and the log get of an exception."""

import logging
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from minicontroller.admin.bounds import ENTITY_FIELDS, MAX_CHANGES
from minicontroller.admin.error_answers import error_answer, error_codes, refuses_everything
from minicontroller.cluster.errors import Refusal
from minicontroller.network.serving.api import ServedApi
from minicontroller.network.serving.context import RequestContext, Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.request_log import MAX_CHARACTERS, SECRET_FIELDS, describe_request
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from minicontroller.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from minicontroller.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from minicontroller.protocol.messages.elect_leaders import TopicPartitions
from minicontroller.protocol.messages.find_coordinator import FindCoordinatorRequest
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from minicontroller.protocol.messages.offset_fetch import OffsetFetchGroup
from minicontroller.protocol.messages.produce import PartitionProduceData, TopicProduceData
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.write_txn_markers import MarkerTopic, TransactionMarker
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.caller import Caller
from tests.support.grouped import grouped
from tests.support.small_server import CLIENTS, TINY_HANDLERS, TinyNode, serving
from tests.support.specs import WITH_RECORDS as APIS
from tests.support.specs import TestHandler

WITHOUT_ERRORS = {(ApiKey.DESCRIBE_LOG_DIRS, version) for version in range(3)}
"""The versions whose responses have no place for an error of the whole request."""
EVERY_VERSION = {
    api.name: [
        (api.key, version)
        for version in range(api.min_version, api.max_version + 1)
        if (api.key, version) not in WITHOUT_ERRORS
    ]
    for api in KAFKA.values()
}


@grouped("key, version", EVERY_VERSION)
def test_every_error_form_can_be_said_in_every_version(key: ApiKey, version: int) -> None:
    """The form encodes in each version, whatever the request named, and carries the code."""
    request = sample(KAFKA[key].request, version)
    answer = error_answer(APIS[key], request, version, code=ErrorCode.REQUEST_TIMED_OUT, message="why")
    _, read = KAFKA.decode_response(key, version, KAFKA.encode_response(key, version, 1, answer)[4:])
    assert str(int(ErrorCode.REQUEST_TIMED_OUT)) in msgspec.json.encode(read).decode()


def sample(cls: type[Any], version: int) -> Any:
    """A request that names two entities wherever it can name any, as it arrives in this version."""
    api = next(api for api in KAFKA.values() if api.request is cls)
    named = {
        "DeleteTopicsRequest": {"topics": [DeleteTopicState(name="a")]} if version >= 6 else {"topic_names": ["a"]},
        "DescribeGroupsRequest": {"groups": ["a"]},
        "ConsumerGroupDescribeRequest": {"group_ids": ["a"]},
        "DeleteGroupsRequest": {"groups_names": ["a"]},
        "ProduceRequest": {"topic_data": [TopicProduceData("a", [PartitionProduceData()])]},
        "AddPartitionsToTxnRequest": {
            "transactions": [AddPartitionsToTxnTransaction(topics=[AddPartitionsToTxnTopic("a", [0])])],
            "v3_and_below_topics": [AddPartitionsToTxnTopic("a", [0])],
        },
        "DescribeTransactionsRequest": {"transactional_ids": ["a"]},
        "AlterReplicaLogDirsRequest": {
            "dirs": [AlterReplicaLogDir(topics=[AlterReplicaLogDirTopic(name="a", partitions=[0])])]
        },
        "DescribeLogDirsRequest": {},
        "ElectLeadersRequest": {"topic_partitions": [TopicPartitions(topic="a", partitions=[0])]},
        "OffsetFetchRequest": {"groups": [OffsetFetchGroup(group_id="a")]} if version >= 8 else None,
        "WriteTxnMarkersRequest": {
            "markers": [TransactionMarker(topics=[MarkerTopic(name="a", partition_indexes=[0])])]
        },
        "FindCoordinatorRequest": {"coordinator_keys": ["a"]} if version >= 4 else {"key": "a"},
    }.get(cls.__name__)
    if named is None:
        named = {
            field.name: [element(cls, field.name)]
            for field in msgspec.structs.fields(cls)
            if field.name in {"topics", "resources", *ENTITY_FIELDS}
            and api.key not in {ApiKey.STOP_REPLICA, ApiKey.ALTER_PARTITION}
        }
    return cls(**named)


def element(cls: type[Any], field: str) -> Any:
    """The struct of an array with its defaults, and one of each partition in it."""
    hint = get_type_hints(cls)[field]
    (struct,) = [found for found in _flatten(hint) if isinstance(found, type) and issubclass(found, msgspec.Struct)]
    if "partition_indexes" in struct.__struct_fields__:
        return struct(partition_indexes=[0])
    return struct(partitions=[element(struct, "partitions")]) if "partitions" in struct.__struct_fields__ else struct()


def _flatten(hint: Any) -> list[Any]:
    inside = [found for argument in get_args(hint) for found in _flatten(argument)]
    return [hint, *inside]


def test_the_code_is_copied_to_every_entity() -> None:
    """A whole-request error names each topic, resource and group of the request."""
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")])
    answer = error_answer(
        APIS[ApiKey.CREATE_TOPICS], topics, 7, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message="no"
    )
    assert [(t.name, t.error_code, t.error_message) for t in answer.topics] == [("a", 31, "no"), ("b", 31, "no")]
    deleted = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=b"i" * 16)], topic_names=["n"])
    answer = error_answer(APIS[ApiKey.DELETE_TOPICS], deleted, 6, code=ErrorCode.REQUEST_TIMED_OUT)
    assert [(t.name, t.topic_id, t.error_code) for t in answer.responses] == [("n", bytes(16), 7), (None, b"i" * 16, 7)]
    groups = DescribeGroupsRequest(groups=["g", "h"])
    answer = error_answer(APIS[ApiKey.DESCRIBE_GROUPS], groups, 0, code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert [(g.group_id, g.error_code) for g in answer.groups] == [("g", -1), ("h", -1)]
    keys = FindCoordinatorRequest(coordinator_keys=["g", "h"])
    answer = error_answer(APIS[ApiKey.FIND_COORDINATOR], keys, 4, code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert [(c.key, c.node_id, c.port, c.error_code) for c in answer.coordinators] == [
        ("g", -1, -1, 15),
        ("h", -1, -1, 15),
    ]
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name=None, topic_id=b"i" * 16)]
    )
    answer = error_answer(APIS[ApiKey.METADATA], asked, 12, code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert [(t.name, t.error_code) for t in answer.topics] == [("a", -1), ("", -1)]
    assert answer.controller_id == -1


def test_minus_one_never_carries_a_message() -> None:
    """UNKNOWN_SERVER_ERROR has no message."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
    answer = error_answer(
        APIS[ApiKey.CREATE_TOPICS], request, 7, code=ErrorCode.UNKNOWN_SERVER_ERROR, message="/etc/passwd"
    )
    assert answer.topics[0].error_message is None


def test_nothing_was_done_only_if_every_entity_says_so() -> None:
    """One topic without NOT_CONTROLLER, or none at all, is no refusal of everything: such a request
    is not repeated.
    """
    no, yes = CreatableTopicResult(error_code=41), CreatableTopicResult()
    wanted = (ApiKey.CREATE_TOPICS, ErrorCode.NOT_CONTROLLER)
    for topics, everything in (([no, no], True), ([no, yes], False), ([], False)):
        assert refuses_everything(APIS[wanted[0]], CreateTopicsResponse(topics=topics), wanted[1]) is everything
    assert list(error_codes(APIS[ApiKey.METADATA], MetadataResponse())) == []


# ------------------------------------------------------------------ through the line


async def ask_with(handler: Any, request: Any, response: Any, version: int, *, key: ApiKey) -> Any:
    handlers = {**TINY_HANDLERS, key: handler}
    async with serving(handlers=handlers) as served, await served.connect() as client:
        return await client.ask(version, request, response)


CONFIGS = AlterConfigsRequest(
    resources=[
        AlterConfigsResource(
            resource_type=4, resource_name="1", configs=[AlterableConfig(name="ssl.key.password", value="hunter2")]
        )
    ]
)


@pytest.mark.parametrize("later", [False, True])
async def test_a_refusal_becomes_the_form_with_its_message(later: bool) -> None:
    """A refusal has the same answer whether it is raised at once or after waiting, alone or out of
    a handler's nursery.
    """

    def refuse(_node: TinyNode, _ctx: RequestContext, _request: object) -> Any:
        raise Refusal(ErrorCode.POLICY_VIOLATION, "three replicas, please")

    async def refuse_later(_node: TinyNode, _ctx: RequestContext, _request: object) -> Any:
        raise ExceptionGroup("nursery", [Refusal(ErrorCode.POLICY_VIOLATION, "three replicas, please")])

    answer = await ask_with(
        refuse_later if later else refuse, CONFIGS, AlterConfigsResponse, 2, key=ApiKey.ALTER_CONFIGS
    )
    assert [(r.error_code, r.error_message) for r in answer.responses] == [(44, "three replicas, please")]


async def test_an_answer_that_cannot_be_encoded_is_a_server_error(caplog: pytest.LogCaptureFixture) -> None:
    """An answer that cannot be encoded costs the client UNKNOWN_SERVER_ERROR and not its
    connection.
    """

    def wrong(_node: TinyNode, _ctx: RequestContext, _request: object) -> AlterConfigsResponse:
        return AlterConfigsResponse(throttle_time_ms=2**40)

    answer = await ask_with(wrong, CONFIGS, AlterConfigsResponse, 2, key=ApiKey.ALTER_CONFIGS)
    assert [r.error_code for r in answer.responses] == [-1]
    assert "UnencodableMessage" in caplog.text


async def test_the_log_of_an_exception_holds_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """The log of an exception names the elements of the request, without config values, tokens or a
    traceback that repeats them.
    """

    def blurt(_node: TinyNode, _ctx: RequestContext, request: AlterConfigsRequest) -> Any:
        raise ValueError(f"cannot take {request.resources[0].configs[0].value}")

    await ask_with(blurt, CONFIGS, AlterConfigsResponse, 2, key=ApiKey.ALTER_CONFIGS)
    assert "AlterConfigsRequest v2" in caplog.text
    assert "ssl.key.password" in caplog.text
    assert "cannot take [hidden]" in caplog.text

    def blurt_token(_node: TinyNode, _ctx: RequestContext, request: SaslAuthenticateRequest) -> Any:
        raise ValueError(request.auth_bytes, request.auth_bytes.decode().split("\0")[2])

    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0hunter2")
    answer = await ask_with(blurt_token, token, SaslAuthenticateResponse, 2, key=ApiKey.SASL_AUTHENTICATE)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "hunter2" not in caplog.text


def test_bytes_in_requests_are_secret() -> None:
    """Whatever bytes a request holds are left out of the log, unless they are an id or an address,
    so that a new API cannot bring a secret there.
    """
    fields = {field for api in KAFKA.values() for field in bytes_in(api.request)}
    assert fields - {"topic_id", "replica_directory_id", "client_host_address", "unknown_tags"} <= SECRET_FIELDS
    assert "hmac" in fields


def bytes_in(struct: type[msgspec.Struct]) -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        for part in parts_of(field.type):
            if part is bytes:
                yield field.name
            elif isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from bytes_in(part)


def parts_of(declared: Any) -> Iterator[Any]:
    yield declared
    for argument in get_args(declared):
        yield from parts_of(argument)


async def test_leftover_bytes_are_counted_and_told_once_for_each_software(caplog: pytest.LogCaptureFixture) -> None:
    """From clients they are accepted, as Kafka accepts them."""
    caplog.set_level(logging.INFO)
    async with serving() as served, await served.connect() as client:
        for _ in range(3):
            whole = client.encode(1, MetadataRequest(topics=None), client_id="sloppy")
            await client.send((len(whole) - 4 + 3).to_bytes(4) + whole[4:] + b"abc")
            await client.answer(MetadataResponse, 1)
        assert served.dispatcher.counters.leftover_requests == 3
    assert caplog.text.count("after the end of requests of API 3") == 1
    assert "'sloppy'" in caplog.text


def test_an_enormous_request_is_cut_in_the_log() -> None:
    """The log of an exception is short and cheap, however large the request."""
    random = Random(1)
    request = CreateTopicsRequest(topics=[CreatableTopic(name=f"t{random.random()}") for _ in range(20_000)])
    ctx = RequestContext(
        spec=APIS[ApiKey.CREATE_TOPICS],
        header=RequestHeader(ApiKey.CREATE_TOPICS, 7, 1, "x\ny"),
        origin=RequestOrigin(client_host="127.0.0.1", api_version=7),
        caller=Caller(CLIENTS, "127.0.0.1", 1),
        dispatcher=Dispatcher(Routes(())),
    )
    text = describe_request(ctx, request)
    assert len(text) < MAX_CHARACTERS + 200
    assert "\n" not in text


async def test_an_answer_that_is_too_large_is_refused() -> None:
    """A read whose answer is too large is refused with the advice to ask for less, and a smaller
    one is answered.
    """
    async with serving() as served, await served.connect() as client:
        served.dispatcher._max_answer_bytes = 300
        many = MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{number}") for number in range(25)])
        answer = await client.ask(1, many, MetadataResponse)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}
        few = MetadataRequest(topics=many.topics[:2] if many.topics else None)
        answer = await client.ask(1, few, MetadataResponse)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}


def test_a_message_for_very_many_elements_is_left_out() -> None:
    """The message of a refusal is left out if the request has very many elements."""
    for count, said in ((10, "n" * 8_000), (1_000, None)):
        request = DeleteTopicsRequest(topic_names=["t"] * count)
        answer = error_answer(
            APIS[ApiKey.DELETE_TOPICS], request, 5, code=ErrorCode.INVALID_REQUEST, message="n" * 8_000
        )
        assert {row.error_message for row in answer.responses} == {said}


async def test_more_changes_than_anybody_makes_at_once() -> None:
    """A request with too many changes is refused element by element before any work; one with as
    many as allowed is not.
    """
    async with serving() as served, await served.connect() as client:
        served.node.gate.set()
        for count, code in ((MAX_CHANGES + 1, ErrorCode.INVALID_REQUEST), (MAX_CHANGES, ErrorCode.NONE)):
            request = CreateTopicsRequest(topics=[CreatableTopic(name="t")] * count)
            answer = await client.ask(4, request, CreateTopicsResponse)
            assert [topic.error_code for topic in answer.topics] == [code] * count


@pytest.mark.parametrize("place", [0, 50, 299])
async def test_an_error_anywhere_in_a_long_answer_counts(place: int) -> None:
    """The outcome of a request is the first error in its answer, also where its rows were encoded
    one by one.
    """

    async def created(_node: TinyNode, _ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        rows = [CreatableTopicResult(name=topic.name) for topic in request.topics]
        rows[place].error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        return CreateTopicsResponse(topics=rows)

    async def described(_node: TinyNode, ctx: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        rows = [DescribedGroup(group_id=group) for group in request.groups]
        rows[place].error_code = ErrorCode.NOT_COORDINATOR
        return DescribeGroupsResponse(groups=rows)

    handlers: Mapping[ApiKey, ServedApi[()] | TestHandler] = {
        **TINY_HANDLERS,
        ApiKey.CREATE_TOPICS: created,
        ApiKey.DESCRIBE_GROUPS: described,
    }
    async with serving(handlers=handlers) as served, await served.connect() as client:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name=f"t{number}") for number in range(300)])
        told = await client.ask(7, topics, CreateTopicsResponse)
        assert [bool(row.error_code) for row in told.topics].index(True) == place
        groups = await client.ask(5, DescribeGroupsRequest(groups=["g"] * 300), DescribeGroupsResponse)
        assert [bool(row.error_code) for row in groups.groups].index(True) == place
        assert served.dispatcher.metrics.outcomes == {
            (ApiKey.CREATE_TOPICS, 7, ErrorCode.INVALID_TOPIC_EXCEPTION): 1,
            (ApiKey.DESCRIBE_GROUPS, 5, ErrorCode.NOT_COORDINATOR): 1,
        }
