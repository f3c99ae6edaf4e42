"""Requests are taken apart and responses put together, for any requests and refusals."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.gateway.judging.forms import FORMS
from minicontroller.gateway.judging.forms.parted import PartedForm
from minicontroller.gateway.judging.judge import MOST_PARTS
from minicontroller.gateway.judging.judged import Part
from minicontroller.policies.rules.vocabulary import OPERATION_OF_API
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredClientQuotas,
    ClientQuotaAlteration,
)
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
)
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.describe_client_quotas import DescribedQuotaEntity
from minicontroller.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from minicontroller.protocol.registry import KAFKA

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
            resources = [IncrementalAlterConfigsResource(resource_type=2, resource_name=name) for name in names]
            return IncrementalAlterConfigsRequest(resources=resources)
        case _:
            partitions = [ReassignablePartition(partition_index=0), ReassignablePartition(partition_index=1)]
            topics = [ReassignableTopic(name=name, partitions=partitions) for name in names]
            return AlterPartitionReassignmentsRequest(topics=topics)


def parted(key: ApiKey) -> PartedForm:
    form = FORMS[key]
    assert isinstance(form, PartedForm)
    return form


def answered(form: PartedForm, request: Any, parts: list[Part]) -> Any:
    """The response of a cluster that answers each of these parts with an error, the last one
    first.
    """
    response = form.together(request, 6, None, [(part, CARRIED_OUT, "") for part in parts])
    getattr(response, form.rows.field).reverse()
    return response


def codes(form: PartedForm, response: Any) -> list[int]:
    rows = form.rows
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
    form, request = parted(key), request_of(key, names)
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
        assert [{each.code for each in found} for found in form.outcomes(passed, theirs)] == [{CARRIED_OUT}] * len(
            passed
        )


def test_each_api_that_rules_judge_has_a_form() -> None:
    """A policy is asked about every API whose requests it judges without a state."""
    whole = {KAFKA[key].name for key, form in FORMS.items() if form.is_whole}
    assert whole == set(OPERATION_OF_API)


@given(names=NAMES)
def test_parts_hold_everything(names: list[str]) -> None:
    """The parts of a request name each thing once, and repeated ones together."""
    request = request_of(ApiKey.CREATE_TOPICS, names)
    parts = FORMS[ApiKey.CREATE_TOPICS].parts(request)
    assert [part.change.resource for part in parts] == list(dict.fromkeys(names))
    assert sorted(place for part in parts for place in part.places) == [("topics", n) for n in range(len(names))]
    assert {part.change.resource for part in parts if part.is_repeated} == {n for n in names if names.count(n) > 1}


def test_outcomes_follow_names_and_not_the_order_of_rows() -> None:
    """Kafka answers about users, quotas, groups and elections in an order of its own: those that it
    refuses last.
    """
    missing, fine = ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.NONE
    users = {"zz": missing, "u1": fine, "aa": missing, "u3": fine}
    deletion = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name=name) for name in users])
    rows = [AlterUserScramCredentialsResult(user=name, error_code=users[name]) for name in ("u1", "u3", "zz", "aa")]
    assert outcomes(deletion, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, AlterUserScramCredentialsResponse(results=rows)) == {
        name: [code] for name, code in users.items()
    }
    entities = [[DescribedQuotaEntity("user", name), DescribedQuotaEntity("client-id", None)] for name in ("q1", "q2")]
    limits = AlterClientQuotasRequest(entries=[ClientQuotaAlteration(entity=each) for each in entities])
    answer = AlterClientQuotasResponse(
        entries=[
            AlteredClientQuotas(entity=each[::-1], error_code=code)
            for each, code in zip(entities[::-1], (fine, missing), strict=True)
        ]
    )
    assert outcomes(limits, ApiKey.ALTER_CLIENT_QUOTAS, answer) == {
        "user=q1,client-id=<default>": [missing],
        "user=q2,client-id=<default>": [fine],
    }
    election = ElectLeadersRequest(topic_partitions=[TopicPartitions("a", [0]), TopicPartitions("b", [0])])
    elected = ElectLeadersResponse(replica_election_results=[ReplicaElectionResult("b", [PartitionResult()])])
    assert outcomes(election, ApiKey.ELECT_LEADERS, elected) == {"a": [ErrorCode.ELECTION_NOT_NEEDED], "b": [fine]}


def outcomes(request: Any, key: ApiKey, response: Any) -> dict[str, list[int]]:
    parts = FORMS[key].parts(request)
    found = FORMS[key].outcomes(parts, response)
    return {part.change.resource: [each.code for each in own] for part, own in zip(parts, found, strict=True)}


def test_outcomes_of_many_parts_are_found_at_once() -> None:
    """No client holds up the others by a request that names as much as a gateway judges."""
    form = FORMS[ApiKey.CREATE_TOPICS]
    request = CreateTopicsRequest(topics=[CreatableTopic(name=f"t{number}") for number in range(MOST_PARTS)])
    parts = form.parts(request)
    response = form.together(request, 7, None, [(part, CARRIED_OUT, "") for part in parts])
    began = time.process_time()
    assert len(form.outcomes(parts, response)) == MOST_PARTS
    assert time.process_time() - began < 1.0  # 0.03 s; 9 s if each part looks at each row
