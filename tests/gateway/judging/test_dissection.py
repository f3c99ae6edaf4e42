"""Requests are taken apart and responses put together, for any requests and refusals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.gateway.judging.dissection import FORMS, Part, PartedForm
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

NAMES = st.lists(st.sampled_from("abcdefg"), max_size=6)
REFUSED, CARRIED_OUT = ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_CONFIG
"""Two errors that tell the rows of the gateway from those of the cluster."""


def request_of(key: ApiKey, names: list[str]) -> Any:
    match key:
        case ApiKey.CREATE_TOPICS:
            return CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names])
        case ApiKey.DELETE_TOPICS:
            by_id = [DeleteTopicState(name=None, topic_id=name.encode() * 16) for name in names[::2]]
            return DeleteTopicsRequest(topics=[*by_id, *(DeleteTopicState(name=name) for name in names[1::2])])
        case ApiKey.INCREMENTAL_ALTER_CONFIGS:
            resources = [AlterConfigsResource(resource_type=2, resource_name=name) for name in names]
            return IncrementalAlterConfigsRequest(resources=resources)
        case _:
            partitions = [ReassignablePartition(partition_index=0), ReassignablePartition(partition_index=1)]
            topics = [ReassignableTopic(name=name, partitions=partitions) for name in names]
            return AlterPartitionReassignmentsRequest(topics=topics)


def answered(form: PartedForm, request: Any, parts: list[Part]) -> Any:
    """The response of a cluster that answers each of these parts with an error, the last one
    first.
    """
    response = form.together(request, 6, None, [(part, CARRIED_OUT, "") for part in parts])
    assert form.spec.rows is not None
    getattr(response, form.spec.rows.field).reverse()
    return response


def codes(form: PartedForm, response: Any) -> list[int]:
    rows = form.spec.rows
    assert rows is not None
    found = getattr(response, rows.field)
    return [(row if rows.inner is None else getattr(row, rows.inner.field)[0]).error_code for row in found]


@pytest.mark.parametrize(
    "key",
    [
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ],
)
@given(names=NAMES, refusals=st.integers(min_value=0))
def test_every_thing_has_its_row_in_the_order_of_the_request(key: ApiKey, names: list[str], refusals: int) -> None:
    """Whichever parts are refused, each thing that the request names has the row of whoever
    answered it, where the request has it.
    """
    form, request = FORMS[key], request_of(key, names)
    parts = form.parts(request)
    refused = [part for index, part in enumerate(parts) if refusals >> index & 1]
    passed = [part for part in parts if part not in refused]
    sent = form.only(request, [place for part in passed for place in part.places])
    assert sum(len(getattr(sent, field) or ()) for field in form.fields) == sum(len(part.places) for part in passed)
    theirs = answered(form, sent, form.parts(sent)) if passed else None
    whole = form.together(request, 6, theirs, [(part, REFUSED, "no") for part in refused])
    things = [(form.identity(thing)) for field in form.fields for thing in getattr(request, field) or ()]
    expected = [REFUSED if thing in {part.key for part in refused} else CARRIED_OUT for thing in things]
    assert codes(form, whole) == expected
    if theirs is not None:
        for part in passed:
            assert {each.code for each in form.outcomes(part, passed, theirs)} == {CARRIED_OUT}


@given(names=NAMES)
def test_parts_hold_everything(names: list[str]) -> None:
    """The parts of a request name each thing once, and repeated ones together."""
    request = request_of(ApiKey.CREATE_TOPICS, names)
    parts = FORMS[ApiKey.CREATE_TOPICS].parts(request)
    assert [part.requested.resource for part in parts] == list(dict.fromkeys(names))
    assert sorted(place for part in parts for place in part.places) == [("topics", n) for n in range(len(names))]
    assert {part.requested.resource for part in parts if part.is_repeated} == {n for n in names if names.count(n) > 1}
