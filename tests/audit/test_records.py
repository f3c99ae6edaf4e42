"""From the controller's values to an event."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from minicontroller.admin.changes import Change, Judgement, Outcome, Unjudged
from minicontroller.admin.recording.records import EventOrigin, Moment, continues_reassignment, decision
from minicontroller.admin.recording.requests import AuditedRequest
from minicontroller.audit.event import Effect, NamedState, PolicyDecision, Requested
from minicontroller.cluster.entities import NO_CONFIGS, Broker, Partition, Topic
from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.image import Image
from minicontroller.network.serving.context import RequestContext, Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.policies import ClusterState, CreateTopicRequest, TopicManagementPolicy
from minicontroller.policies.states import requested_state
from minicontroller.policies.verdict import PolicyOutcome as Decided
from minicontroller.policies.verdict import Verdict
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.security.caller import Caller, Listener
from tests.audit.logs import a_state, decisions_in
from tests.handlers.ruling import creating, ruling, wanted
from tests.support.specs import APIS


class Unreadable(TopicManagementPolicy):
    """A policy that raises the error of a file name that is not UTF-8, as Python reads it."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        raise FileNotFoundError("rules-\udcff.txt")


def a_context() -> RequestContext:
    return RequestContext(
        spec=APIS[ApiKey.CREATE_TOPICS],
        header=RequestHeader(ApiKey.CREATE_TOPICS, 7, 99, "client"),
        origin=RequestOrigin("User:alice", "host", 6, 98, "software/1", received_node=41),
        forwarded=True,
        caller=Caller(Listener(name="LISTENER"), "host", 50_000),
        dispatcher=Dispatcher(Routes(())),
    )


def test_every_field_has_its_place() -> None:
    """P-1b: an event is made by position, and each value stands in the field that it belongs to."""
    context = a_context()
    judged = CreateTopicRequest(
        topic="t",
        principal="User:alice",
        api="Metadata",
        time_ms=1234,
        requested_state=requested_state([[1, 2]], generated_replica_assignments=False),
    )
    image = Image().with_brokers([Broker(number, ()) for number in range(1, 6)])
    judgement = Judgement(judged, image, Verdict(Decided.ALLOWED, "P", seconds=0.5, policy_hash="h"), is_enforced=False)
    refusal = Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, "there")
    request = AuditedRequest(31, context, validate_only=True, elements=33)
    change = Outcome(
        Change("t", reassignments={0: [2], 1: None}, delete_records_offsets={0: -1}, election_type="unclean"),
        judgement=judgement,
        unjudged=Unjudged("a reason"),
    )
    before, after, seen = a_state(1), a_state(2), NamedState(topic="other", state=None)
    event = decision(
        Moment(EventOrigin("cluster", 21, 22, "upstream"), 23, 24),
        request,
        32,
        change,
        effect=Effect.UNKNOWN,
        refusal=refusal,
        before=before,
        after=after,
        assumed=(seen,),
        latency_us=77,
        further_denials=7,
    )
    assert {name: getattr(event, name) for name in event.__struct_fields__} == {
        "schema_version": 1,
        "cluster_id": "cluster",
        "epoch": 21,
        "sequence": 23,
        "time_ms": 24,
        "decided_node": 22,
        "request": 31,
        "element": 32,
        "elements": 33,
        "principal": "User:alice",
        "client_id": "client",
        "client_host": "host",
        "software": "software/1",
        "listener": "LISTENER",
        "received_node": 41,
        "api": "Metadata",
        "api_version": 6,
        "operation": "create_topic",
        "resource": "topic",
        "name": "t",
        "requested": Requested(
            replicas=((1, 2),),
            configs={},
            marked_for_deletion=False,
            internal=False,
            generated_replica_assignments=False,
        ),
        "config_operations": None,
        "validate_only": True,
        "asked_ms": 1234,
        "asked_created_ms": None,
        "cluster_size": 5,
        "before": before,
        "after": after,
        "assumed": (seen,),
        "policy": PolicyDecision(
            decision="allowed",
            policy="P",
            policy_hash="h",
            rule="",
            findings=(),
            message=None,
            microseconds=500_000,
        ),
        "effect": Effect.UNKNOWN,
        "error_code": ErrorCode.TOPIC_ALREADY_EXISTS,
        "error": "TOPIC_ALREADY_EXISTS",
        "message": "there",
        "latency_us": 77,
        "config_operation_kinds": None,
        "entity": None,
        "reassignments": {0: (2,), 1: None},
        "delete_records_offsets": {0: -1},
        "further_denials": 7,
        "enforced": False,
        "upstream_cluster_id": "upstream",
        "unjudged": "a reason",
        "election_type": "unclean",
    }
    assert msgspec.json.decode(msgspec.json.encode(event), type=type(event)) == event


def test_how_a_reassignment_goes_on() -> None:
    """A change of replicas that were being moved belongs to a reassignment; another one is somebody
    else's, and so is one that comes with a change of configs.
    """
    moving = Partition(replicas=(1, 2, 3), adding_replicas=(3,), removing_replicas=(1,))
    idle, there = Partition(replicas=(1, 2)), Partition(replicas=(2, 3))

    def topic(*partitions: Partition, configs: Mapping[str, str] = NO_CONFIGS) -> Topic:
        return Topic("t", b"1" * 16, partitions, configs=configs)

    before = topic(idle, moving)
    assert continues_reassignment(before, topic(idle, there))
    assert not continues_reassignment(before, topic(idle, there, configs={"retention.ms": "1"}))
    assert not continues_reassignment(before, topic(there, there))
    assert not continues_reassignment(before, before)
    assert not continues_reassignment(None, before)


async def test_a_policy_that_says_what_no_file_holds(tmp_path: Path) -> None:
    """Characters that UTF-8 has no form for, in what a policy raises, neither stop the controller
    nor the log.
    """
    async with ruling({"audit.dir": str(tmp_path)}, policy=Unreadable()) as cluster:
        for name in ("first", "second"):
            answer = await cluster.ask(creating(wanted(name, 1, 1)), 7)
            assert answer.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    told = [event.policy.message for event in decisions_in(tmp_path) if event.policy is not None]
    assert len(told) == 2
    assert all(message is not None and "rules-?.txt" in message for message in told)
