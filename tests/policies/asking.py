"""Requests as the tests of policies ask them: everything has a value, each test names what matters
to it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from minicontroller.policies import (
    AdminRequest,
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    TopicState,
)
from minicontroller.policies.states import NO_CONFIGS, ClusterSnapshot, requested_state

THREE_TIMES_THREE = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
ALICE = "User:alice"


def cluster(topics: Mapping[str, TopicState] = MappingProxyType({}), size: int = 3) -> ClusterSnapshot:
    return ClusterSnapshot(topics, size)


def create(
    topic: str = "sales.orders.placed",
    replicas: Sequence[Sequence[int]] = THREE_TIMES_THREE,
    *,
    generated: bool = True,
    internal: bool = False,
    automatic: bool = False,
    configs: Mapping[str, str] = NO_CONFIGS,
) -> CreateTopicRequest:
    state = requested_state(replicas, configs, generated_replica_assignments=generated, internal=internal)
    api = "Metadata" if automatic else "CreateTopics"
    return CreateTopicRequest(topic=topic, principal=ALICE, api=api, requested_state=state, automatic=automatic)


def alter(
    topic: str = "sales.orders.placed",
    replicas: Sequence[Sequence[int]] = THREE_TIMES_THREE,
    *,
    principal: str | None = ALICE,
    operations: Mapping[str, str | None] | None = None,
    configs: Mapping[str, str] = NO_CONFIGS,
) -> AlterTopicRequest:
    return AlterTopicRequest(
        topic=topic,
        principal=principal,
        api="IncrementalAlterConfigs",
        requested_state=requested_state(replicas, configs),
        config_operations=operations,
    )


def reassign(
    topic: str = "sales.orders.placed",
    replicas: Sequence[Sequence[int]] = THREE_TIMES_THREE,
    *,
    principal: str | None = ALICE,
    reassignments: Mapping[int, Sequence[int] | None] = MappingProxyType({0: (4, 2, 3)}),
) -> AlterTopicRequest:
    """A reassignment of partitions that have these replicas; a cancelled one changes nothing."""
    rows = dict(enumerate(replicas)) | {index: row for index, row in reassignments.items() if row is not None}
    return AlterTopicRequest(
        topic=topic,
        principal=principal,
        api="AlterPartitionReassignments",
        requested_state=requested_state(list(rows.values()), generated_replica_assignments=False),
        reassignments=reassignments,
    )


def delete(topic: str = "sales.orders.placed", principal: str | None = ALICE) -> DeleteTopicRequest:
    return DeleteTopicRequest(topic=topic, principal=principal, api="DeleteTopics")


def delete_records(topic: str = "sales.orders.placed", principal: str | None = ALICE) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(topic=topic, principal=principal, api="DeleteRecords", delete_records_offsets={0: -1})


def administer(
    api: str = "CreateAcls",
    kind: str = "acl",
    name: str = "Topic:LITERAL:orders",
    *,
    principal: str | None = ALICE,
    operations: Mapping[str, str | None] = MappingProxyType({"Allow Read to User:bob from *": ""}),
    client_id: str | None = None,
    client_host: str = "10.0.0.9",
    election_type: str | None = None,
) -> AdminRequest:
    return AdminRequest(
        api=api, kind=kind, name=name, principal=principal, config_operations=operations,
        client_id=client_id, client_host=client_host, time_ms=1, election_type=election_type,
    )  # fmt: skip
