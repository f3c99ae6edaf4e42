"""Dry runs of deletions: what they hold, and what a node sees that does not know of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.dry_runs import FLEXIBLE_SINCE, TAG, is_dry_run, packed, unpack
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from tests.support.wire import MESSAGES

numbers = st.integers(-(2**31), 2**31 - 1)
names = st.text(max_size=20)
deletions_of_topics = st.builds(
    DeleteTopicsRequest,
    topics=st.lists(st.builds(DeleteTopicState, st.none() | names, st.binary(min_size=16, max_size=16))),
    timeout_ms=numbers,
)
partitions = st.builds(DeleteRecordsPartition, numbers, st.integers(-(2**63), 2**63 - 1))
deletions_of_records = st.builds(
    DeleteRecordsRequest,
    topics=st.lists(st.builds(DeleteRecordsTopic, names, st.lists(partitions, max_size=3))),
    timeout_ms=numbers,
)
deletions = deletions_of_topics | deletions_of_records
Deletion = DeleteTopicsRequest | DeleteRecordsRequest


def key_of(request: WireStruct) -> ApiKey:
    return ApiKey.DELETE_TOPICS if isinstance(request, DeleteTopicsRequest) else ApiKey.DELETE_RECORDS


def sent(request: WireStruct, version: int) -> bytes:
    return KAFKA.encode_request(RequestHeader(key_of(request), version, 1, "c"), request)[4:]


@given(deletions, st.data())
def test_what_was_packed_is_unpacked(request: Deletion, data: st.DataObject) -> None:
    """Whatever is named comes through each version with tagged fields; without `unpack` nothing is
    named.
    """
    key = key_of(request)
    version = data.draw(st.integers(FLEXIBLE_SINCE[key], KAFKA[key].max_version))
    _, read, leftover = KAFKA.decode_request(sent(packed(request), version))
    assert isinstance(read, DeleteTopicsRequest | DeleteRecordsRequest)
    assert (leftover, read.topics, is_dry_run(read), read.timeout_ms) == (0, [], True, request.timeout_ms)
    unpack(read)
    assert read.topics == request.topics


@given(deletions)
def test_kafkas_classes_see_nothing_to_delete(request: Deletion) -> None:
    """A foreign codec ignores the tagged field, and reads a request that names nothing."""
    key = key_of(request)
    version = KAFKA[key].max_version
    name = "DeleteTopics" if key is ApiKey.DELETE_TOPICS else "DeleteRecords"
    read = MESSAGES[name][0].decode(sent(packed(request), version), version=version, header=True)
    assert not read.topics


@given(st.binary(max_size=60), deletions)
def test_any_bytes_in_the_tag(noise: bytes, request: Deletion) -> None:
    """Bytes that hold no request of the same API end the connection and do nothing else."""
    spoilt = msgspec.structs.replace(packed(request), unknown_tags={TAG: noise})
    with pytest.raises(ProtocolError):
        unpack(spoilt)


@given(deletions_of_topics, deletions_of_records)
def test_another_request_in_the_tag(topics: DeleteTopicsRequest, records: DeleteRecordsRequest) -> None:
    """A dry run holds a request of its own API, and no second dry run."""
    held = packed(records).unknown_tags
    for tags in (held, {TAG: sent(packed(topics), 6)}):
        with pytest.raises(ProtocolError):
            unpack(DeleteTopicsRequest(unknown_tags=tags))
