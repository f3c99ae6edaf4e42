"""What each API does for clients that lack a permission: where it asks, in which order, and what it
shows them.
"""

from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.admin.spec import Sender
from minicontroller.cluster.entities import Topic
from minicontroller.controller.active.jobs import Draft
from minicontroller.policies import PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.acls import (
    CLUSTER_NAME,
    NO_OPERATIONS,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.config_resources import ResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.create_topics import CreateTopicsResponse
from minicontroller.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribedQuotaEntity
from minicontroller.protocol.messages.describe_cluster import DescribeClusterRequest
from minicontroller.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from minicontroller.protocol.messages.describe_groups import DescribeGroupsRequest
from minicontroller.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from minicontroller.protocol.messages.find_coordinator import FindCoordinatorRequest
from minicontroller.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization
from tests.handlers.asking import Client, broker, image, led, node_with, topic
from tests.handlers.ruling import creating, ruling, wanted
from tests.security.test_acls import may as may_by_the_rules
from tests.support.specs import APIS

ALICE = "User:alice"
HOST = "10.0.0.9"
NAMES = ("orders", "orders-eu", "payments", "p", "audit")
TOPIC, CLUSTER, GROUP = AclResourceType.TOPIC, AclResourceType.CLUSTER, AclResourceType.GROUP
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

Acls = dict[ResourcePattern, frozenset[AccessControlEntry]]


def allowing(*granted: tuple[AclResourceType, str, AclOperation], principal: str = ALICE) -> Authorization:
    """Return what lets a user do exactly this."""
    index = AclIndex()
    for pattern in {ResourcePattern(kind, name) for kind, name, _ in granted}:
        index.set_resource(
            pattern,
            [
                AccessControlEntry(principal, WILDCARD, operation, PermissionType.ALLOW)
                for kind, name, operation in granted
                if (kind, name) == (pattern.resource_type, pattern.name)
            ],
        )
    return Authorization(AclRules(index))


def alice_at(node: Any, authorization: Authorization) -> Client:
    return Client(node, handlers=APIS, principal=ALICE, authorization=authorization)


# ------------------------------------------------------------------ what reads show

PATTERNS = st.builds(
    ResourcePattern,
    st.sampled_from([TOPIC, CLUSTER]),
    st.sampled_from([*NAMES, "ord", WILDCARD, CLUSTER_NAME]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
ENTRIES = st.builds(
    AccessControlEntry,
    st.sampled_from([ALICE, "User:bob", "User:*"]),
    st.sampled_from([HOST, "10.0.0.8", WILDCARD]),
    st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALL]),
    st.sampled_from([PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY]),
)
TOPICS: list[Topic] = [topic(name, led(1)) for name in NAMES]
OPERATIONS_SINCE = 8


@given(st.dictionaries(PATTERNS, st.frozensets(ENTRIES, min_size=1, max_size=3), max_size=6), st.booleans())
@settings(max_examples=120)
def test_reads_show_what_the_client_may_describe_and_nothing_else(acls: Acls, everyone: bool) -> None:
    """Whatever the ACLs, lists have exactly the topics that the client may describe, with what the
    client may do to them; named topics beside them are refused, whether they exist or not.
    """
    trio.run(partial(_reads_show_what_may_be_described, acls, everyone=everyone))


async def _reads_show_what_may_be_described(acls: Acls, *, everyone: bool) -> None:
    index = AclIndex(allow_everyone=everyone)
    for pattern, entries in acls.items():
        index.set_resource(pattern, entries)

    def may(operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        return may_by_the_rules(acls, (ALICE, HOST), operation, kind, name, everyone=everyone)

    def operations(name: str) -> int:
        supported = (each for each in AclOperation if SUPPORTED_OPERATIONS[TOPIC] & 1 << each)
        return sum(1 << each for each in supported if may(each, TOPIC, name))

    node = node_with(image([broker(1)], TOPICS), {"auto.create.topics.enable": "false"})
    authorization = Authorization(AclRules(index))
    client = alice_at(node, authorization)
    seen = sorted(name for name in NAMES if may(AclOperation.DESCRIBE, TOPIC, name))
    asked = [*NAMES, "missing"]
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if may(AclOperation.DESCRIBE, TOPIC, "missing") else DENIED
    codes = {name: 0 if name in seen else DENIED for name in NAMES} | {"missing": missing}
    for version in range(13):
        asks = version >= OPERATIONS_SINCE
        listed = client.ask_at_once(
            MetadataRequest(topics=None if version else [], include_topic_authorized_operations=asks), version
        ).topics
        assert [(row.name, row.error_code) for row in listed] == [(name, 0) for name in seen]
        named = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in asked], include_topic_authorized_operations=asks
        )
        rows = client.ask_at_once(named, version).topics
        assert {row.name: row.error_code for row in rows} == codes
        for row in [*listed, *rows] if asks else ():
            expected = NO_OPERATIONS if row.error_code == DENIED else operations(row.name)
            assert row.topic_authorized_operations == expected
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=each.topic_id) for each in TOPICS])
    rows = client.ask_at_once(by_id, 12).topics
    assert sorted(row.name for row in rows if not row.error_code) == seen
    assert {(row.name, row.error_code) for row in rows if row.error_code} <= {(None, DENIED)}

    resources = [(ResourceType.TOPIC, name) for name in asked] + [(ResourceType.BROKER, "1")]
    configs = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in resources]
    )
    shown = {row.resource_name for row in (await client.ask(configs, 4)).results if row.error_code not in (29, 31)}
    described = {name for name in asked if may(AclOperation.DESCRIBE_CONFIGS, TOPIC, name)}
    assert shown - {"1"} == described
    assert ("1" in shown) == may(AclOperation.DESCRIBE_CONFIGS, CLUSTER, CLUSTER_NAME)

    def listed_to(principal: str) -> list[str]:
        someone = Client(node, handlers=APIS, principal=principal, authorization=authorization)
        return [row.name for row in someone.ask_at_once(MetadataRequest(topics=None), 12).topics]

    who = ("User:bob", HOST)
    bobs = [
        name for name in NAMES if may_by_the_rules(acls, who, AclOperation.DESCRIBE, TOPIC, name, everyone=everyone)
    ]
    assert (listed_to(ALICE), listed_to("User:bob")) == (seen, sorted(bobs))
    for pattern in acls:
        index.set_resource(pattern, ())
    left = sorted(NAMES) if everyone else []
    assert (listed_to(ALICE), listed_to("User:bob")) == (left, left)


async def test_configs_are_described_for_those_who_may() -> None:
    """Authorized resources come first, in the order of the request, then the refused ones with
    Kafka's texts.
    """
    authorization = allowing((TOPIC, "p", AclOperation.DESCRIBE_CONFIGS))
    node = node_with(image([broker(1)], TOPICS))
    kinds = [(ResourceType.BROKER, "1"), (ResourceType.TOPIC, "orders"), (ResourceType.TOPIC, "p")]
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in kinds]
    )
    rows = (await alice_at(node, authorization).ask(request, 4)).results
    assert [(row.resource_name, row.error_code, row.error_message) for row in rows] == [
        ("p", 0, ""),
        ("1", 31, "Cluster authorization failed."),
        ("orders", 29, "Topic authorization failed."),
    ]
    assert [bool(row.configs) for row in rows] == [True, False, False]


@pytest.mark.parametrize("granted", [False, True])
async def test_the_cluster_is_described_to_everybody_and_its_operations_to_those_who_may(granted: bool) -> None:
    """Without Describe on the cluster the bit field is 0, as in Kafka, and everything else is
    answered.
    """
    rights = [(CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE)] if granted else []
    client = alice_at(node_with(image([broker(1)])), allowing(*rights))
    expected = 1 << AclOperation.DESCRIBE if granted else 0
    cluster = await client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert (cluster.cluster_authorized_operations, len(cluster.brokers)) == (expected, 1)
    metadata = await client.ask(MetadataRequest(topics=[], include_cluster_authorized_operations=True), 10)
    assert metadata.cluster_authorized_operations == expected


async def test_groups_are_shown_to_those_who_may_describe_them() -> None:
    """DescribeGroups and FindCoordinator refuse each group and transactional id by itself."""
    node = node_with(image([broker(1)], [topic("__consumer_offsets", led(1)), topic("__transaction_state", led(1))]))
    client = alice_at(node, allowing((GROUP, "mine", AclOperation.READ)))
    described = (await client.ask(DescribeGroupsRequest(groups=["mine", "other"]), 5)).groups
    assert [(row.group_id, row.error_code) for row in described] == [("other", 30), ("mine", 0)]
    found = (await client.ask(FindCoordinatorRequest(coordinator_keys=["mine", "other"]), 4)).coordinators
    assert [(row.key, row.error_code, row.node_id) for row in found] == [("mine", 0, 1), ("other", 30, -1)]
    transactional = FindCoordinatorRequest(key_type=1, coordinator_keys=["mine"])
    assert [row.error_code for row in (await client.ask(transactional, 4)).coordinators] == [53]
    assert (await client.ask(FindCoordinatorRequest(key="other"), 2)).error_message == "Group authorization failed."


# ------------------------------------------------------------------ changes


class Unasked(TopicManagementPolicy):
    """A policy that must not be asked."""

    def validate_create_topic(self, _request: Any, _cluster: Any) -> None:
        raise PolicyViolation("the policy was asked")


@asynccontextmanager
async def cluster_with_topics(**how: Any) -> Any:
    async with ruling(**how) as cluster:
        await cluster.make(*(wanted(name, 1, 1) for name in NAMES))
        yield cluster


def codes_of(rows: Any) -> Iterator[tuple[str, int]]:
    return ((row.name, row.error_code) for row in rows)


async def test_topics_are_created_by_those_who_may(autojump_clock: object) -> None:
    """K4-C3: Create on the topic suffices, and Create on the cluster for every topic. The
    partitions and configs of a new topic are shown to those who may describe its configs.
    """
    async with ruling() as cluster:
        client = cluster.client(principal=ALICE, authorization=allowing((TOPIC, "a", AclOperation.CREATE)))
        rows = (await client.ask(creating(wanted("a", 1, 1), wanted("b", 1, 1)), 7)).topics
        assert [(row.name, row.error_code, row.error_message) for row in rows] == [
            ("a", 0, None),
            ("b", 29, "Authorization failed."),
        ]
        assert [(row.num_partitions, row.configs, row.topic_config_error_code) for row in rows] == [
            (-1, [], 29),
            (-1, [], 29),
        ]
        (row,) = (await client.ask(creating(wanted("__cluster_metadata", 1, 1)), 7)).topics
        assert (row.error_code, row.topic_config_error_code) == (42, 0)  # before any permission is asked for
        rights = allowing(
            (CLUSTER, CLUSTER_NAME, AclOperation.CREATE), (TOPIC, WILDCARD, AclOperation.DESCRIBE_CONFIGS)
        )
        client = cluster.client(principal=ALICE, authorization=rights)
        (row,) = (await client.ask(creating(wanted("b", 1, 1)), 7)).topics
        assert (row.error_code, row.num_partitions, row.topic_config_error_code) == (0, 1, 0)
        assert row.configs


async def test_topics_are_changed_and_deleted_by_those_who_may(autojump_clock: object) -> None:
    """K4-D4: each topic needs its own permission, which is asked for before the topic is looked up;
    a topic given by its id is named only to those who may describe it.
    """
    async with cluster_with_topics() as cluster:
        rights = allowing((TOPIC, "p", AclOperation.ALTER), (TOPIC, "orders", AclOperation.DELETE))
        client = cluster.client(principal=ALICE, authorization=rights)
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("p", "audit", "missing")],
            timeout_ms=30_000,
        )
        rows = (await client.ask(grown, 3)).results
        refused = "The topic authorization is failed."
        assert sorted((row.name, row.error_code, row.error_message) for row in rows) == [
            ("audit", 29, refused),
            ("missing", 29, refused),
            ("p", 0, None),
        ]
        by_id = [DeleteTopicState(name=None, topic_id=cluster.topic(name).topic_id) for name in ("audit", "p")]
        deleted = DeleteTopicsRequest(
            topics=[DeleteTopicState(name="orders"), DeleteTopicState(name="missing"), *by_id], timeout_ms=30_000
        )
        rows = (await client.ask(deleted, 6)).responses
        assert list(codes_of(rows)) == [("orders", 0), ("missing", 29), (None, 29), ("p", 29)]
        assert set(cluster.node.cache.image.topics) == set(NAMES) - {"orders"}


async def test_records_are_deleted_by_those_who_may(autojump_clock: object) -> None:
    """Delete on the topic, which is asked for before the topic or its leader is looked up."""
    async with cluster_with_topics() as cluster:
        client = cluster.client(principal=ALICE, authorization=allowing((TOPIC, "p", AclOperation.DELETE)))
        rows = [DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition()]) for name in ("p", "audit", "no")]
        answer = await client.ask(DeleteRecordsRequest(topics=rows, timeout_ms=30_000), 2)
        codes = {row.name: row.partitions[0].error_code for row in answer.topics}
        leads = cluster.topic("p").partitions[0].leader == cluster.node.broker_id
        assert codes == {"p": 0 if leads else 6, "audit": 29, "no": 29}


async def test_configs_are_changed_by_those_who_may(autojump_clock: object) -> None:
    """AlterConfigs on the topic, or on the cluster for brokers; the messages are null."""
    async with cluster_with_topics() as cluster:
        client = cluster.client(principal=ALICE, authorization=allowing((TOPIC, "p", AclOperation.ALTER_CONFIGS)))
        kinds = [(ResourceType.TOPIC, "p"), (ResourceType.TOPIC, "missing"), (ResourceType.BROKER, "")]
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[AlterableConfig(name="min.insync.replicas", value="1")],
                )
                for kind, name in kinds
            ]
        )
        rows = (await client.ask(request, 2)).responses
        assert [(row.error_code, row.error_message) for row in rows] == [(0, None), (29, None), (31, None)]


async def test_the_policy_is_not_asked_about_what_is_unauthorized(autojump_clock: object) -> None:
    """A client without the permission learns nothing of the policy."""
    async with ruling(policy=Unasked()) as cluster:
        client = cluster.client(principal=ALICE, authorization=allowing())
        (row,) = (await client.ask(creating(wanted("a", 1, 1)), 7)).topics
        assert (row.error_code, row.error_message) == (29, "Authorization failed.")


async def test_missing_topics_are_created_automatically_by_those_who_may(autojump_clock: object) -> None:
    """Metadata needs Describe and Create; without Create the missing topic is refused and not
    created.
    """
    async with ruling() as cluster:
        rights = allowing(
            *((TOPIC, name, AclOperation.DESCRIBE) for name in ("a", "b")), (TOPIC, "a", AclOperation.CREATE)
        )
        client = cluster.client(principal=ALICE, authorization=rights)
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("a", "b", "c")])
        rows = (await client.ask(request, 12)).topics
        assert list(codes_of(rows)) == [("a", ErrorCode.LEADER_NOT_AVAILABLE), ("b", 29), ("c", 29)]
        assert set(cluster.image.topics) == {"a"}


async def test_reassignments_are_listed_to_those_who_may_describe_the_cluster(autojump_clock: object) -> None:
    """Without Describe on the cluster the request is refused as a whole."""
    async with ruling() as cluster:
        for authorization, code in ((allowing(), 31), (allowing((CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE)), 0)):
            client = cluster.client(principal=ALICE, authorization=authorization)
            assert (await client.ask(ListPartitionReassignmentsRequest(), 0)).error_code == code


async def test_leaders_are_elected_for_those_who_may_alter_the_cluster(autojump_clock: object) -> None:
    """Without Alter on the cluster the request and each of its partitions are refused."""
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="unknown", partitions=[0, 1])])
    alter = (CLUSTER, CLUSTER_NAME, AclOperation.ALTER)
    async with ruling() as cluster:
        for authorization, whole, each in ((allowing(), 31, 31), (allowing(alter), 0, 3)):
            answer = await cluster.client(principal=ALICE, authorization=authorization).ask(request, 2)
            (topic,) = answer.replica_election_results
            assert (answer.error_code, [row.error_code for row in topic.partition_result]) == (whole, [each, each])


async def test_replicas_are_moved_by_those_who_may_alter_the_cluster(autojump_clock: object) -> None:
    """Without Alter on the cluster the request is refused as a whole, and in each row."""
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="a", partitions=[ReassignablePartition(partition_index=0, replicas=[2])])]
    )
    async with ruling() as cluster:
        await cluster.make(wanted("a", placed={0: [1]}))
        may_not = cluster.client(
            principal=ALICE, authorization=allowing((CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE))
        )
        refused = await may_not.ask(request, 0)
        text = "Cluster authorization failed."
        assert (refused.error_code, refused.error_message) == (31, text)
        assert [
            (row.partition_index, row.error_code, row.error_message) for row in refused.responses[0].partitions
        ] == [(0, 31, text)]
        assert not cluster.topic("a").is_moving
        may = cluster.client(principal=ALICE, authorization=allowing((CLUSTER, CLUSTER_NAME, AclOperation.ALTER)))
        assert (await may.ask(request, 0)).responses[0].partitions[0].error_code == 0
        assert cluster.topic("a").is_moving


async def test_quotas_are_shown_and_changed_by_those_who_may(autojump_clock: object) -> None:
    """DescribeConfigs on the cluster shows them; AlterConfigs, which implies it, changes them."""
    entry = ClientQuotaAlteration(
        entity=[DescribedQuotaEntity(entity_type="user", entity_name="a")],
        ops=[ClientQuotaOperation(key="request_percentage", value=1.0)],
    )
    rights = {AclOperation.DESCRIBE_CONFIGS: (31, 0), AclOperation.ALTER_CONFIGS: (0, 0), AclOperation.READ: (31, 31)}
    async with ruling() as cluster:
        for operation, (altered, described) in rights.items():
            client = cluster.client(principal=ALICE, authorization=allowing((CLUSTER, CLUSTER_NAME, operation)))
            (row,) = (await client.ask(AlterClientQuotasRequest(entries=[entry]), 1)).entries
            assert (row.error_code, row.error_message) == (
                altered,
                "Cluster authorization failed." if altered else None,
            )
            answer = await client.ask(DescribeClientQuotasRequest(), 1)
            assert (answer.error_code, answer.entries is None) == (described, described != 0)
            assert answer.error_message == (None if described else "")


TESTED = {
    ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_GROUPS, ApiKey.FIND_COORDINATOR, ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.ELECT_LEADERS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS,
}  # fmt: skip
"""The APIs whose permissions are tested in this module."""
TESTED_ELSEWHERE = {
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS,
    ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE,
    ApiKey.INIT_PRODUCER_ID, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.DESCRIBE_PRODUCERS, ApiKey.UPDATE_FEATURES,
    ApiKey.LEAVE_GROUP, ApiKey.WRITE_TXN_MARKERS,
}  # fmt: skip
"""The APIs whose permissions the module of tests with the API's name tests."""


def test_every_api_with_a_permission_is_tested() -> None:
    """An API that asks for a permission has its case here or in its own module, or is one between
    nodes.
    """
    asking = {key for key, spec in APIS.items() if spec.permissions and spec.sender is not Sender.NODE}
    untested, gone = asking - TESTED - TESTED_ELSEWHERE, (TESTED | TESTED_ELSEWHERE) - asking
    assert untested == set(), "test their permissions, and name them in TESTED or TESTED_ELSEWHERE of this module"
    assert gone == set(), "they ask for no permission: remove them from TESTED or TESTED_ELSEWHERE"


async def test_a_long_request_is_asked_about_before_its_turn_and_again_in_it() -> None:
    """Of a long CreateTopics, what is denied when it arrives stays denied, and a permission that is
    taken away while the request waits for the writer creates nothing.
    """
    kept, lost = ResourcePattern(AclResourceType.TOPIC, "kept"), ResourcePattern(AclResourceType.TOPIC, "lost")
    late = ResourcePattern(AclResourceType.TOPIC, "denied-3")
    may_create = [AccessControlEntry(ALICE, WILDCARD, AclOperation.CREATE, PermissionType.ALLOW)]
    index = AclIndex()
    for pattern in (kept, lost):
        index.set_resource(pattern, may_create)
    async with ruling() as cluster, trio.open_nursery() as nursery:
        goes_on, answers = trio.Event(), list[CreateTopicsResponse]()

        async def hold(_draft: Draft) -> None:
            await goes_on.wait()

        async def create() -> None:
            names = ["kept", "lost", *(f"denied-{number}" for number in range(200)), "twice", "twice"]
            request = creating(*(wanted(name, 1, 1) for name in names))
            rights = Authorization(AclRules(index))
            answers.append(await cluster.ask(request, 7, principal=ALICE, authorization=rights))

        nursery.start_soon(cluster.controller.writer.write, hold)
        await trio.testing.wait_all_tasks_blocked()  # until the writer plans it
        nursery.start_soon(create)
        await trio.testing.wait_all_tasks_blocked()
        assert cluster.controller.writer.queue
        index.set_resource(lost, [])
        index.set_resource(late, may_create)
        goes_on.set()
        await trio.testing.wait_all_tasks_blocked()
        codes = {row.name: row.error_code for row in answers[0].topics}
        assert codes.pop("kept") == ErrorCode.NONE
        assert codes.pop("twice") == ErrorCode.INVALID_REQUEST
        assert codes.pop("lost") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert set(codes.values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert set(cluster.image.topics) == {"kept"}
