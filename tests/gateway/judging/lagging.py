"""A cluster whose brokers lag behind its controller, for gateways in the same process.

It stands where a gateway reads and where requests go on to. The controller carries changes out at
once and keeps all states that ever were; each broker shows one of them, of any age, and only ever
moves forward. Rules are not known here: what is carried out is kept for the test to judge.
"""

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import trio

from minicontroller.client.configuration import Address
from minicontroller.client.network import View
from minicontroller.gateway.judging.mirror import SETTLING_SECONDS
from minicontroller.network.peer import PeerUnavailable
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.config_resources import ConfigOperation, ResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_configs,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    metadata,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct

BROKERS = (1, 2, 3)
ANY = 1
"""The number in a filter of ACLs that matches everything."""
UNKNOWN, UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID


class Truth(msgspec.Struct, frozen=True):
    """A topic as the controller has it."""

    topic_id: bytes
    rows: tuple[tuple[int, ...], ...]
    configs: tuple[tuple[str, str], ...] = ()


State = Mapping[str, Truth]


class Deed(msgspec.Struct, frozen=True):
    """A change that the cluster carried out, by whomever."""

    name: str
    before: Truth | None
    after: Truth | None


class LaggingCluster:
    """The controller, and three brokers."""

    def __init__(self, random: Random, most_seconds: float) -> None:
        """Brokers are at most about this many seconds behind."""
        self.random = random
        self.deeds: list[Deed] = []
        """What gateways had carried out."""
        self.done: set[str] = set()
        """The topics of which something was carried out, also if it changed nothing."""
        self.acls: list[delete_acls.DeleteAclsMatchingAcl] = []
        self.shown_acls: list[delete_acls.DeleteAclsMatchingAcl] = []
        """The ACLs that all brokers show."""
        self.grants = True
        """Whether clients may change ACLs and elect leaders."""
        self._most_seconds = most_seconds
        self._history: list[tuple[float, State]] = [(-math.inf, {})]
        self._shown = dict.fromkeys(BROKERS, 0)
        self.failing = 0.02
        """How probably a broker ends a connection instead of an answer."""
        self._pace = {each: random.choice([0.05, 0.3, 1.0]) for each in BROKERS}
        """How probably a broker moves forward when it is asked."""
        self._ids = 0

    @property
    def now(self) -> State:
        return self._history[-1][1]

    @property
    def is_soon(self) -> bool:
        """Whether brokers show a change before a gateway believes that another one is there."""
        return self._most_seconds < SETTLING_SECONDS

    @property
    def states(self) -> list[State]:
        """All states that ever were."""
        return [state for _, state in self._history]

    def shown_by(self, broker: int) -> State:
        """Return what a broker shows, which may have moved forward meanwhile."""
        oldest = trio.current_time() - self._most_seconds
        due = max((index for index, (at, _) in enumerate(self._history) if at <= oldest), default=0)
        least = max(self._shown[broker], due)
        moves = self.random.random() < self._pace[broker]
        self._shown[broker] = self.random.randint(least, len(self._history) - 1) if moves else least
        return self._history[self._shown[broker]][1]

    def put(self, name: str, after: Truth | None) -> None:
        """Change a topic."""
        state = {each: topic for each, topic in self.now.items() if each != name}
        self._history.append((trio.current_time(), state if after is None else {**state, name: after}))

    def made(self, partitions: int, replicas: int = 1, configs: Mapping[str, str] | None = None) -> Truth:
        self._ids += 1
        row = BROKERS[:replicas]
        return Truth(UUID(int=self._ids, version=4).bytes, (row,) * partitions, tuple(sorted((configs or {}).items())))

    def stop_brokers(self) -> None:
        """Have brokers show what they show now for as long as they may be behind."""
        self._pace = dict.fromkeys(BROKERS, 0.0)

    # ------------------------------------------------------------------ what gateways pass on

    def carry_out(self, frame: bytes, broker: int) -> bytes:
        """Carry out what a gateway passes on, and return the response without its size."""
        header, request, _ = KAFKA.decode_request(frame)
        before = self.now
        response = getattr(self, f"_{KAFKA[header.api_key].name}")(request, broker)
        if not getattr(request, "validate_only", False):
            names = {*before, *self.now}
            self.deeds += [
                Deed(each, before.get(each), self.now.get(each))
                for each in sorted(names)
                if before.get(each) != self.now.get(each)
            ]
        return KAFKA.encode_response(header.api_key, header.api_version, header.correlation_id, response)[4:]

    async def inquired(self, broker: int, key: ApiKey, version: int, request: WireStruct) -> WireStruct:
        """Answer a gateway that asks in the name of a client, on its connection to this broker."""
        await trio.sleep(self.random.choice([0.0, 0.002, 0.1]))
        frame = KAFKA.encode_request(RequestHeader(api_key=key, api_version=version), request)[4:]
        return KAFKA.decode_response(key, version, self.carry_out(frame, broker))[1]

    def _change(self, request: Any, name: str, after: Truth | None) -> None:
        if not getattr(request, "validate_only", False):
            self.done.add(name)
            self.put(name, after)

    def _CreateTopics(self, request: create_topics.CreateTopicsRequest, _: int) -> WireStruct:  # noqa: N802 - the API's name
        rows = []
        for each in request.topics:
            code, made = ErrorCode.TOPIC_ALREADY_EXISTS, None
            if each.name not in self.now:
                configs = {config.name: config.value or "" for config in each.configs}
                code, made = ErrorCode.NONE, self.made(each.num_partitions, each.replication_factor, configs)
                self._change(request, each.name, made)
            topic_id = b"\0" * 16 if made is None else made.topic_id
            rows.append(create_topics.CreatableTopicResult(name=each.name, topic_id=topic_id, error_code=code))
        return create_topics.CreateTopicsResponse(topics=rows)

    def _DeleteTopics(self, request: delete_topics.DeleteTopicsRequest, _: int) -> WireStruct:  # noqa: N802
        rows = []
        for each in request.topics:
            by_id = {topic.topic_id: name for name, topic in self.now.items()}
            name = by_id.get(each.topic_id) if each.name is None else each.name
            code = UNKNOWN_ID if each.name is None else UNKNOWN
            if name in self.now:
                code = ErrorCode.NONE
                self._change(request, name or "", None)
            rows.append(delete_topics.DeletableTopicResult(name=name, topic_id=each.topic_id, error_code=code))
        return delete_topics.DeleteTopicsResponse(responses=rows)

    def _CreatePartitions(self, request: create_partitions.CreatePartitionsRequest, _: int) -> WireStruct:  # noqa: N802
        rows = []
        for each in request.topics:
            topic, code = self.now.get(each.name), UNKNOWN
            if topic is not None:
                more = each.count - len(topic.rows)
                named = [tuple(row.broker_ids) for row in each.assignments or ()]
                added = named or [topic.rows[0]] * more
                code = ErrorCode.NONE if more > 0 else ErrorCode.INVALID_PARTITIONS
                if more > 0 and len(added) != more:
                    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
                elif more > 0:
                    grown = topic.rows + tuple(added)
                    self._change(request, each.name, msgspec.structs.replace(topic, rows=grown))
            rows.append(create_partitions.CreatePartitionsTopicResult(name=each.name, error_code=code))
        return create_partitions.CreatePartitionsResponse(results=rows)

    def _AlterConfigs(self, request: alter_configs.AlterConfigsRequest, _: int) -> WireStruct:  # noqa: N802
        rows = []
        for each in request.resources:
            configs = {config.name: config.value or "" for config in each.configs}
            code = self._configure(request, each.resource_name, lambda _before, configs=configs: configs)
            rows.append(alter_configs.AlterConfigsResourceResponse(code, None, each.resource_type, each.resource_name))
        return alter_configs.AlterConfigsResponse(responses=rows)

    def _IncrementalAlterConfigs(  # noqa: N802
        self, request: incremental_alter_configs.IncrementalAlterConfigsRequest, _: int
    ) -> WireStruct:
        rows = []
        for each in request.resources:
            code = self._configure(
                request, each.resource_name, lambda before, configs=each.configs: _altered(before, configs)
            )
            rows.append(
                incremental_alter_configs.IncrementalAlterConfigsResourceResponse(
                    code, None, each.resource_type, each.resource_name
                )
            )
        return incremental_alter_configs.IncrementalAlterConfigsResponse(responses=rows)

    def _configure(self, request: Any, name: str, change: Any) -> ErrorCode:
        topic = self.now.get(name)
        if topic is None:
            return UNKNOWN
        configs = tuple(sorted(change(dict(topic.configs)).items()))
        self._change(request, name, msgspec.structs.replace(topic, configs=configs))
        return ErrorCode.NONE

    def _AlterPartitionReassignments(  # noqa: N802
        self, request: alter_partition_reassignments.AlterPartitionReassignmentsRequest, _: int
    ) -> WireStruct:
        topics = []
        for each in request.topics:
            rows = []
            for partition in each.partitions:
                topic, index, code = self.now.get(each.name), partition.partition_index, UNKNOWN
                if topic is not None and index < len(topic.rows) and partition.replicas:
                    moved = (*topic.rows[:index], tuple(partition.replicas), *topic.rows[index + 1 :])
                    self._change(request, each.name, msgspec.structs.replace(topic, rows=moved))
                    code = ErrorCode.NONE
                rows.append(alter_partition_reassignments.ReassignablePartitionResponse(index, code, None))
            topics.append(alter_partition_reassignments.ReassignableTopicResponse(each.name, rows))
        return alter_partition_reassignments.AlterPartitionReassignmentsResponse(responses=topics)

    def _ElectLeaders(self, request: elect_leaders.ElectLeadersRequest, _: int) -> WireStruct:  # noqa: N802
        """Elect leaders, which all partitions that are there need."""
        named = request.topic_partitions
        if named is None:
            named = [elect_leaders.TopicPartitions(name, [0]) for name in self.now]
        rows = []
        for each in named:
            code = ErrorCode.NONE if each.topic in self.now else UNKNOWN
            if not self.grants:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            if not code:
                self._change(request, each.topic, self.now[each.topic])
            told = [elect_leaders.PartitionResult(index, code, None) for index in each.partitions]
            rows.append(elect_leaders.ReplicaElectionResult(each.topic, told))
        return elect_leaders.ElectLeadersResponse(replica_election_results=rows)

    def _DescribeAcls(self, request: describe_acls.DescribeAclsRequest, _: int) -> WireStruct:  # noqa: N802
        return describe_acls.DescribeAclsResponse(
            resources=[
                describe_acls.DescribeAclsResource(
                    each.resource_type,
                    each.resource_name,
                    each.pattern_type,
                    [describe_acls.AclDescription(each.principal, each.host, each.operation, each.permission_type)],
                )
                for each in self.shown_acls
                if _matches(request, each)
            ]
        )

    def _DeleteAcls(self, request: delete_acls.DeleteAclsRequest, _: int) -> WireStruct:  # noqa: N802
        rows = []
        for wanted in request.filters:
            if not self.grants:
                rows.append(delete_acls.DeleteAclsFilterResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
                continue
            matched = [each for each in self.acls if _matches(wanted, each)]
            rows.append(delete_acls.DeleteAclsFilterResult(error_message=None, matching_acls=matched))
            self.acls = [each for each in self.acls if each not in matched]
        return delete_acls.DeleteAclsResponse(filter_results=rows)

    def _Metadata(self, request: metadata.MetadataRequest, broker: int) -> metadata.MetadataResponse:  # noqa: N802
        """Answer as a broker does, which has missing topics created by the controller."""
        shown = self.shown_by(broker)
        asked = request.topics
        rows = [_row(name, topic) for name, topic in shown.items()] if asked is None else []
        names = {topic.topic_id: name for name, topic in shown.items()}
        for each in asked or ():
            name = names.get(each.topic_id) if each.name is None else each.name
            if name is not None and name in shown:
                rows.append(_row(name, shown[name]))
                continue
            code = UNKNOWN_ID if each.name is None else UNKNOWN
            rows.append(metadata.MetadataResponseTopic(code, each.name, each.topic_id))
            if each.name is not None and request.allow_auto_topic_creation and each.name not in self.now:
                self._change(request, each.name, self.made(1))
        brokers = [metadata.MetadataResponseBroker(each, "broker", each) for each in BROKERS]
        return metadata.MetadataResponse(
            brokers=brokers, cluster_id="lagging", controller_id=self.random.choice(BROKERS), topics=rows
        )

    def _DescribeConfigs(self, request: describe_configs.DescribeConfigsRequest, broker: int) -> WireStruct:  # noqa: N802
        shown, results = self.shown_by(broker), []
        for each in request.resources:
            name, is_topic = each.resource_name, each.resource_type == ResourceType.TOPIC
            code = UNKNOWN if is_topic and name not in shown else ErrorCode.NONE
            own = shown[name].configs if is_topic and not code else ()
            rows = [describe_configs.DescribeConfigsResourceResult(key, value, config_source=1) for key, value in own]
            results.append(describe_configs.DescribeConfigsResult(code, None, each.resource_type, name, rows))
        return describe_configs.DescribeConfigsResponse(results=results)

    def _ListPartitionReassignments(self, _: WireStruct, _broker: int) -> WireStruct:  # noqa: N802
        return list_partition_reassignments.ListPartitionReassignmentsResponse()

    async def answer(self, message: WireStruct, key: ApiKey, broker: int) -> WireStruct:
        """Answer a question of a gateway after a while, if the broker answers at all."""
        await trio.sleep(self.random.choice([0.001, 0.001, 0.01, 0.2]))
        if self.random.random() < self.failing:
            raise PeerUnavailable("the connection ended", in_doubt=True)
        if isinstance(message, metadata.MetadataRequest):
            assert not message.allow_auto_topic_creation
        response: WireStruct = getattr(self, f"_{KAFKA[key].name}")(message, broker)
        return response


def _matches(wanted: delete_acls.DeleteAclsFilter | describe_acls.DescribeAclsRequest, acl: Any) -> bool:
    """Whether a filter matches an ACL; patterns of the type MATCH are not known here."""
    asked = (
        (wanted.resource_type_filter, acl.resource_type),
        (wanted.resource_name_filter, acl.resource_name),
        (wanted.pattern_type_filter, acl.pattern_type),
        (wanted.principal_filter, acl.principal),
        (wanted.host_filter, acl.host),
        (wanted.operation, acl.operation),
        (wanted.permission_type, acl.permission_type),
    )
    return all(want in (None, ANY, has) for want, has in asked)


class LaggingNetwork:
    """What a gateway has of a `Network`: any broker calls any broker the controller."""

    def __init__(self, cluster: LaggingCluster) -> None:
        self._cluster = cluster

    async def look(self) -> View:
        rows = {each: metadata.MetadataResponseBroker(each, "broker", each) for each in BROKERS}
        return View(rows, self._cluster.random.choice(BROKERS))

    def learn(self, _answer: object) -> None:
        """Brokers do not move."""

    def forget(self) -> None:
        """Brokers do not move."""

    def link(self, address: Address) -> "LaggingLink":
        return LaggingLink(self._cluster, address)

    async def broker(self, broker_id: int) -> "LaggingLink":
        return LaggingLink(self._cluster, Address("broker", broker_id))


class LaggingLink(msgspec.Struct, frozen=True):
    """The connection to one broker, whose id is its port."""

    cluster: LaggingCluster
    address: Address

    async def ask(self, message: WireStruct, key: ApiKey) -> WireStruct:
        return await self.cluster.answer(message, key, self.address.port)


def _row(name: str, topic: Truth) -> metadata.MetadataResponseTopic:
    partitions = [
        metadata.MetadataResponsePartition(partition_index=index, replica_nodes=list(row))
        for index, row in enumerate(topic.rows)
    ]
    return metadata.MetadataResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)


def _altered(
    before: Mapping[str, str], configs: Sequence[incremental_alter_configs.IncrementalAlterableConfig]
) -> dict[str, str]:
    after = dict(before)
    for each in configs:
        elements = after.get(each.name, "delete").split(",")
        named = (each.value or "").split(",")
        match each.config_operation:
            case ConfigOperation.SET:
                after[each.name] = each.value or ""
            case ConfigOperation.DELETE:
                after.pop(each.name, None)
            case ConfigOperation.APPEND:
                after[each.name] = ",".join([*elements, *(one for one in named if one not in elements)])
            case _:
                after[each.name] = ",".join(one for one in elements if one not in named)
    return after
