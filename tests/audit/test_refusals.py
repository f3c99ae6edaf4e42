"""P-1: what is refused before it is judged is in the log as well, whichever node refused it, in the
one sequence of the controller.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from minicontroller.admin.bounds import MAX_CHANGES
from minicontroller.admin.recording.recorder import MOST_DENIALS
from minicontroller.audit.event import REDACTED, Decision, Effect
from minicontroller.cluster.image import Image
from minicontroller.controller.active.jobs import StagedElement
from minicontroller.network.serving.long_answers import AT_ONCE
from minicontroller.protocol.acls import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from minicontroller.protocol.messages.delete_groups import DeleteGroupsRequest
from minicontroller.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization
from tests.audit.logs import decisions_in, found
from tests.handlers.altering import BROKER, BROKER_LOGGER, CLIENT_METRICS, TOPIC
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import NoDice, ruling, wanted
from tests.support.audit_logs import audit_of
from tests.support.cluster import MiniCluster, controller_id, other_ids, running_cluster
from tests.support.specs import APIS
from tests.support.wire import Wire

SECRET = "correct-horse-battery"
LOGGER = "minicontroller.tests.refusals"


def altering(*resources: tuple[int, str, Mapping[str, str | None]]) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ]
    )


def told(decision: Decision) -> tuple[Any, ...]:
    return decision.operation, decision.resource, decision.name, decision.error, decision.effect


def assert_unjudged(decisions: list[Decision]) -> None:
    """No policy was asked, and nothing changed."""
    assert all(each.policy is None and each.asked_ms is None and each.before == each.after for each in decisions)


# ------------------------------------------------------------------ at the controller


async def test_deletion_that_is_switched_off(tmp_path: Path) -> None:
    """With `delete.topic.enable=false` each requested deletion is recorded as a decision with the
    topic's state.
    """
    async with ruling({"audit.dir": str(tmp_path), "delete.topic.enable": "false"}) as world:
        await world.make(wanted("t", 1, 1))
        await world.ask(DeleteTopicsRequest(topic_names=["t", "nobody"], timeout_ms=30_000), 5)
        await world.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 1)
    decisions = decisions_in(tmp_path)[1:]
    assert [(*told(each), each.element, each.elements) for each in decisions] == [
        ("delete_topic", "topic", "t", "TOPIC_DELETION_DISABLED", Effect.NONE, 0, 2),
        ("delete_topic", "topic", "nobody", "TOPIC_DELETION_DISABLED", Effect.NONE, 1, 2),
        ("delete_topic", "topic", "t", "INVALID_REQUEST", Effect.NONE, 0, 1),
    ]
    assert_unjudged(decisions)
    assert [each.before is not None for each in decisions] == [True, False, True]
    assert found(tmp_path) == []


@pytest.mark.parametrize("count", [40, AT_ONCE + 40])
async def test_many_denials_share_an_event(tmp_path: Path, count: int) -> None:
    """Of a request of somebody without permissions the first denials have an event each, and one
    tells how many more follow it. What is allowed between them keeps its place in the order. It is
    the same for a request that is so long that permissions are asked before its turn.
    """
    names = [f"t-{number}" for number in range(count)]
    index = AclIndex()
    create = AccessControlEntry("User:alice", WILDCARD, AclOperation.CREATE, PermissionType.ALLOW)
    index.set_resource(ResourcePattern(AclResourceType.TOPIC, names[25]), [create])
    alice = {"principal": "User:alice", "authorization": Authorization(AclRules(index))}
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        request = CreateTopicsRequest(topics=[wanted(name, 1, 1) for name in names], timeout_ms=60_000)
        answer = await world.ask(request, 7, **alice)
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert [row.error_code for row in answer.topics] == [denied] * 25 + [ErrorCode.NONE] + [denied] * (count - 26)
        shown = [each for each in world.node.decisions._recent if each.name in names]
        assert [each.sequence > 0 for each in shown] == [True] * len(shown)
    decisions = decisions_in(tmp_path)
    assert_unjudged([each for each in decisions if each.error_code])
    assert {each.elements for each in decisions} == {count}
    covered = [n for each in decisions for n in range(each.element, each.element + each.further_denials + 1)]
    assert covered == list(range(count)), "no element is missing, and none is there twice"
    assert all(not each.further_denials for each in decisions[:MOST_DENIALS])
    assert [each.name for each in decisions if not each.error_code] == [names[25]]
    assert len(decisions) < 30
    assert found(tmp_path) == []


DOOMED = [f"t-{number}" for number in range(AT_ONCE + 40)]
PARTITION = DeleteRecordsPartition(partition_index=0, offset=0)
MOVED = ReassignablePartition(partition_index=0, replicas=[1])
ACL = AclCreation(
    resource_type=2, resource_pattern_type=3, principal="User:bob", host="*", operation=3, permission_type=3
)
FORBIDDEN: list[tuple[WireStruct, int]] = [
    (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=3) for name in DOOMED]), 3),
    (DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in DOOMED]), 6),
    (altering(*((TOPIC, name, {"retention.ms": "5"}) for name in DOOMED)), 2),
    (DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[PARTITION]) for name in DOOMED]), 2),
    (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=n, partitions=[MOVED]) for n in DOOMED]), 0),
    (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=name, partitions=[0]) for name in DOOMED]), 2),
    (CreateAclsRequest(creations=[msgspec.structs.replace(ACL, resource_name=name) for name in DOOMED]), 3),
    (DeleteGroupsRequest(groups_names=DOOMED), 2),
]


@pytest.mark.parametrize(("request_", "version"), FORBIDDEN, ids=[type(each[0]).__name__ for each in FORBIDDEN])
async def test_a_long_request_that_is_denied_takes_little_of_the_writers_time(
    tmp_path: Path, request_: WireStruct, version: int
) -> None:
    """Whatever API it is: each element is in the log once, in its order, and the writer has a dozen
    elements for all of them.
    """
    nobody = {"principal": "User:alice", "authorization": Authorization(AclRules(AclIndex()))}
    if hasattr(request_, "timeout_ms"):
        request_ = msgspec.structs.replace(request_, timeout_ms=60_000)
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        written = list[int]()
        on_commit = world.controller.writer._on_commit

        def counting(before: Image, after: Image, elements: Sequence[StagedElement]) -> None:
            written.append(len(elements))
            on_commit(before, after, elements)

        world.controller.writer._on_commit = counting
        await world.ask(request_, version, **nobody)
        assert sum(written) <= MOST_DENIALS + 1
    decisions = decisions_in(tmp_path)
    assert {each.elements for each in decisions} == {len(DOOMED)}
    covered = [n for each in decisions for n in range(each.element, each.element + each.further_denials + 1)]
    assert covered == list(range(len(DOOMED)))
    assert all(each.error_code for each in decisions)
    assert_unjudged(decisions)
    assert found(tmp_path) == []


async def test_a_request_that_contradicts_itself(tmp_path: Path) -> None:
    """A DeleteTopics request with a name and an id in one row is refused as a whole, and recorded
    so.
    """
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        both = DeleteTopicState(name="t", topic_id=b"i" * 16)
        await world.ask(DeleteTopicsRequest(topics=[both, DeleteTopicState(name="u")], timeout_ms=30_000), 6)
    decisions = decisions_in(tmp_path)
    assert [(each.name, each.error) for each in decisions] == [("t", "INVALID_REQUEST"), ("u", "INVALID_REQUEST")]
    assert_unjudged(decisions)


async def test_an_unforeseen_exception(tmp_path: Path) -> None:
    """An unforeseen exception while elements are judged refuses all of them, also those judged
    before it, and is recorded.
    """
    by_hand = CreatableTopic(
        name="by-hand",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
    )
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        dice, world.node.random = world.node.random, NoDice()
        request = CreateTopicsRequest(topics=[by_hand, wanted("by-lot", 1, 1)], timeout_ms=30_000)
        answer = await world.ask(request, 7)
        assert [row.error_code for row in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        world.node.random = dice
        await world.ask(request, 7)
    first, second, *later = decisions_in(tmp_path)
    assert [told(first), told(second)] == [
        ("create_topic", "topic", "by-hand", "UNKNOWN_SERVER_ERROR", Effect.NONE),
        ("create_topic", "topic", "by-lot", "UNKNOWN_SERVER_ERROR", Effect.NONE),
    ]
    assert_unjudged([first, second])
    assert [each.error for each in later] == ["NONE", "NONE"]
    assert found(tmp_path) == []


async def test_a_topic_that_is_deleted_twice_in_a_request(tmp_path: Path) -> None:
    """A topic named by name and by its id is one deletion, for which the policy has its turn once,
    and one decision.
    """
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        await world.make(wanted("t", 1, 1))
        topics = [DeleteTopicState(name="t"), DeleteTopicState(name=None, topic_id=world.topic("t").topic_id)]
        await world.ask(DeleteTopicsRequest(topics=topics, timeout_ms=30_000), 6)
    [only] = decisions_in(tmp_path)[1:]
    assert (only.name, only.elements) == ("t", 1)
    assert only.asked_ms is not None


async def test_secrets_of_what_was_refused_unjudged(tmp_path: Path) -> None:
    """A request that was refused before it was judged is recorded, with possible secrets hidden."""
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        await world.ask(altering((BROKER, "2", {"ssl.key.password": SECRET})), 2)
        await world.ask(altering((TOPIC, "nobody", {"my.plugin.token": SECRET, "retention.ms": "5"})), 2)
    decisions = decisions_in(tmp_path)
    assert [each.config_operations for each in decisions] == [
        {"ssl.key.password": REDACTED},
        {"my.plugin.token": REDACTED, "retention.ms": "5"},
    ]
    assert SECRET not in "".join(map(str, decisions))


async def test_where_nobody_can_take_note(tmp_path: Path) -> None:
    """With an audit log a node that knows no controller, and no way to one, decides nothing: the
    client asks the controller himself.
    """
    node = node_with(image([broker(1), broker(2)], controller_id=2), {"audit.dir": str(tmp_path)})
    node.port.audit = audit_of(node.config, node.cluster_id)
    request = altering((BROKER, "2", {"log.retention.ms": "1"}), (TOPIC, "t", {"retention.ms": None}))
    answer = await Client(node, handlers=APIS).ask(request, 2)
    assert [row.error_code for row in answer.responses] == [ErrorCode.NOT_CONTROLLER] * 2


# ------------------------------------------------------------------ at any node of a cluster


@pytest.fixture(scope="module", name="folder")
def folder_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(folder: Path) -> Iterator[MiniCluster]:
    """Three nodes; what is answered is in the files. Afterwards nothing may be wrong with them."""
    with running_cluster(settings={"audit.dir": str(folder), "audit.flush": "always"}) as cluster:
        yield cluster
    assert found(folder) == []


def nodes_of(cluster: MiniCluster) -> list[int]:
    """The controller, and one that is not."""
    return [controller_id(cluster), other_ids(cluster)[0]]


class Since:
    """The events recorded from now on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = len(decisions_in(folder))

    def decisions(self) -> list[Decision]:
        return decisions_in(self._folder)[self._known :]


def resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": key, "config_operation": how, "value": value} for key, how, value in configs],
    }


@pytest.mark.parametrize("where", [0, 1], ids=["controller", "other"])
def test_what_the_receiving_node_refuses(cluster: MiniCluster, folder: Path, where: int) -> None:
    """One request, one number: what the node that received it refused comes first, then what the
    controller judged.
    """
    node = nodes_of(cluster)[where]
    name = f"mixed-{where}"
    since = Since(folder)
    wishes = [
        resource(BROKER, "77", ("my.plugin.token", 0, SECRET)),
        resource(TOPIC, name, ("retention.ms", 0, "1")),
        resource(TOPIC, "x", ("retention.ms", 0, None)),
        resource(CLIENT_METRICS, "m"),
        resource(99, "who"),
        resource(BROKER, str(node), ("my.plugin.token", 0, SECRET)),
    ]
    with Wire(cluster.addresses[node]) as wire:
        assert (
            wire.ask("CreateTopics", 7, {"topics": [creatable(name)], "timeout_ms": 5000})["topics"][0]["error_code"]
            == 0
        )
        rows = wire.ask("IncrementalAlterConfigs", 1, {"resources": wishes})["responses"]
    assert [row["error_code"] for row in rows] == [42, 0, 42, 42, 42, 0]
    assert [row["resource_name"] for row in rows] == [wish["resource_name"] for wish in wishes]
    _, *decisions = since.decisions()
    assert [(each.resource, each.name, each.error) for each in decisions] == [
        ("broker", "77", "INVALID_REQUEST"),
        ("topic", "x", "INVALID_REQUEST"),
        ("client_metrics", "m", "INVALID_REQUEST"),
        ("resource", "who", "INVALID_REQUEST"),
        ("topic", name, "NONE"),
        ("broker", str(node), "NONE"),
    ]
    assert_unjudged(decisions[:4])
    assert {(each.operation, each.received_node, each.api) for each in decisions} == {
        ("incremental_alter_configs", node, "IncrementalAlterConfigs")
    }
    assert len({each.request for each in decisions}) == 1
    assert [each.element for each in decisions] == list(range(6))
    assert decisions[0].config_operations == {"my.plugin.token": REDACTED}
    assert "expected" in (decisions[0].message or "")


def creatable(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}


@pytest.mark.parametrize("where", [0, 1], ids=["controller", "other"])
@pytest.mark.parametrize("api", ["AlterConfigs", "IncrementalAlterConfigs"])
def test_nothing_is_left_for_the_controller(cluster: MiniCluster, folder: Path, where: int, api: str) -> None:
    """A request of which the node that received it refuses everything is a decision
    all the same.
    """
    node = nodes_of(cluster)[where]
    since = Since(folder)
    wish = resource(BROKER, "77")
    if api == "AlterConfigs":
        wish["configs"] = [{"name": "my.plugin.token", "value": "x"}]
    with Wire(cluster.addresses[node]) as wire:
        (row,) = wire.ask(api, 1, {"resources": [wish], "validate_only": True})["responses"]
    assert (row["error_code"], row["resource_name"]) == (42, "77")
    (decision,) = since.decisions()
    assert (decision.api, decision.received_node, decision.validate_only) == (api, node, True)
    assert decision.effect is Effect.NONE


@pytest.mark.parametrize("where", [0, 1], ids=["controller", "other"])
def test_log_levels(cluster: MiniCluster, folder: Path, where: int) -> None:
    """The level of a node's logger is set by that node, and the controller's log says so; only
    validated, it has no effect.
    """
    node = nodes_of(cluster)[where]
    since = Since(folder)
    with Wire(cluster.addresses[node]) as wire:
        for validate_only, name in ((False, "root"), (True, "root"), (False, "no.such.logger")):
            body = {
                "resources": [resource(BROKER_LOGGER, str(node), (name, 0, "INFO"))],
                "validate_only": validate_only,
            }
            wire.ask("IncrementalAlterConfigs", 1, body)
    decisions = since.decisions()
    assert [(each.resource, each.name, each.error, each.effect) for each in decisions] == [
        ("logger", str(node), "NONE", Effect.APPLIED),
        ("logger", str(node), "NONE", Effect.NONE),
        ("logger", str(node), "INVALID_CONFIG", Effect.NONE),
    ]
    assert_unjudged(decisions[2:])
    assert [each.config_operations for each in decisions] == [{"root": "INFO"}] * 2 + [{"no.such.logger": "INFO"}]
    for each in decisions[:2]:
        assert each.entity is not None
        assert each.entity.requested == {"root": "INFO"}


FORGED = [
    (CreateTopicsRequest(topics=[CreatableTopic(name="forged")]), 7, ("create_topic", "topic", "forged")),
    (DeleteTopicsRequest(topics=[DeleteTopicState(name="forged")]), 6, ("delete_topic", "topic", "forged")),
    (altering((BROKER, "1", {"ssl.key.password": SECRET})), 2, ("alter_configs", "broker", "1")),
]


@pytest.mark.parametrize("where", [0, 1], ids=["controller", "other"])
@pytest.mark.parametrize("forged", FORGED, ids=["create", "delete", "alter"])
def test_a_forged_request(
    cluster: MiniCluster, folder: Path, where: int, forged: tuple[Any, int, tuple[str, ...]]
) -> None:
    """K590-6b: a client that sends the tags of a forwarded request is refused at any node, and the
    log has its request under its own name.
    """
    request, version, expected = forged
    node = nodes_of(cluster)[where]
    since = Since(folder)
    key = next(api.key for api in KAFKA.values() if api.request is type(request))
    header = RequestHeader(api_key=key, api_version=version, client_id="mallory", origin=RequestOrigin("User:root"))
    with Wire(cluster.addresses[node]) as wire:
        answer = wire.exchange(KAFKA.encode_request(header, request))
    assert struct.pack(">h", ErrorCode.CLUSTER_AUTHORIZATION_FAILED) in answer
    (decision,) = since.decisions()
    assert told(decision) == (*expected, "CLUSTER_AUTHORIZATION_FAILED", Effect.NONE)
    assert (decision.principal, decision.client_id, decision.received_node) == (None, "mallory", node)
    assert decision.api == ApiKey(key).name.replace("_", " ").title().replace(" ", "")
    assert_unjudged([decision])


TOO_MUCH = [
    (CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=9)] * (MAX_CHANGES + 1)), 5, "create_topic"),
    (CreateTopicsRequest(topics=[CreatableTopic(name="\0" * 32_000)] * 300), 5, "create_topic"),
    (altering((TOPIC, "t", {f"{number}{'x' * 32_000}": None for number in range(100)})), 2, "alter_configs"),
]


@pytest.mark.parametrize("where", [0, 1], ids=["controller", "other"])
@pytest.mark.parametrize("asked", TOO_MUCH, ids=["elements", "names", "configs"])
def test_more_than_anybody_asks_for(
    cluster: MiniCluster, folder: Path, where: int, asked: tuple[Any, int, str]
) -> None:
    """A request that is refused for what it asks for is one event, whichever node refuses it, and
    not one for each of its elements.
    """
    request, version, operation = asked
    node = nodes_of(cluster)[where]
    since = Since(folder)
    key = next(api.key for api in KAFKA.values() if api.request is type(request))
    with Wire(cluster.addresses[node]) as wire:
        answer = wire.exchange(KAFKA.encode_request(RequestHeader(api_key=key, api_version=version), request))
    assert struct.pack(">h", ErrorCode.INVALID_REQUEST) in answer
    (decision,) = since.decisions()
    assert told(decision) == (operation, "resource", "", "INVALID_REQUEST", Effect.NONE)
    assert (decision.elements, decision.received_node) == (1, node)
    assert_unjudged([decision])


def test_the_clients_software(cluster: MiniCluster, folder: Path) -> None:
    """The client's software name and version (KIP-511) are recorded, whichever node it is connected
    to.
    """
    for where, node in enumerate(nodes_of(cluster)):
        since = Since(folder)
        with Wire(cluster.addresses[node]) as wire:
            wire.ask("ApiVersions", 3, {"client_software_name": "wire", "client_software_version": f"1.{where}"})
            wire.ask("CreateTopics", 7, {"topics": [creatable(f"software-{where}")], "timeout_ms": 5000})
        assert [each.software for each in since.decisions()] == [f"wire/1.{where}"]
