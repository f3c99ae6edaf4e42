"""Histories of real controllers under a policy: nodes in one process, on the embedded store, asked
at random for all that can be asked for.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import trio

from minicontroller.admin.policy.loading import load_policy, load_rules
from minicontroller.audit.event import AuditEvent
from minicontroller.cluster.errors import Refusal
from minicontroller.controller.node.node import Node
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.dry_runs import TAG
from minicontroller.protocol.messages import alter_configs as altering
from minicontroller.protocol.messages import alter_partition_reassignments as reassigning
from minicontroller.protocol.messages import incremental_alter_configs as adjusting
from minicontroller.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from minicontroller.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from minicontroller.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.elect_leaders import ElectionType, ElectLeadersRequest, TopicPartitions
from tests.audit.logs import events_in
from tests.handlers.client_quotas import entry
from tests.handlers.test_alter_user_scram_credentials import put
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster, answer_of, context_for

NAMES = ("a.orders", "a.users", "b.orders", "b.users", "c", "a/b")
PRINCIPALS = ("User:alice", "User:bob", None)
TIMEOUT_MS = 5_000
AT_ONCE = 4
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2


class Life:
    """One cluster of three nodes, each of which keeps the audit log and has the policy."""

    def __init__(self, nursery: trio.Nursery, folder: Path, settings: Mapping[str, str], seed: int) -> None:
        self._cluster = SmallCluster(nursery, MemoryWorld(), settings={"audit.dir": str(folder), **settings})
        self._chance = Random(seed)

    async def lived(self, rounds: int) -> None:
        await self._start(1, 2, 3)
        for number in range(rounds):
            async with trio.open_nursery() as people:
                for _ in range(AT_ONCE):
                    people.start_soon(self._act)
            if number % 4 == 3:
                await self._change_controller()
        await self._cluster.until_quiet()
        for member in list(self._cluster.members.values()):
            assert member.node.audit is not None
            assert member.node.policy is not None
            await member.node.audit.close()
            await member.node.policy.close()

    async def _start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            await self._cluster.start(broker_id)
            node = self._cluster.members[broker_id].node
            node.port.policy = await load_policy(node.config)
            load_rules(node.config, node.policy)
        await self._cluster.until_quiet()

    async def _change_controller(self) -> None:
        controller = self._cluster.controller
        policy = self._cluster.controller_node.policy
        assert policy is not None
        policy.kill()
        await self._cluster.kill(controller.broker_id)
        await self._cluster.until_succeeded(controller.epoch)
        await self._start(controller.broker_id)

    async def _act(self) -> None:
        chance = self._chance
        names = chance.sample(NAMES, chance.choice([1, 1, 2, 4]))
        validates = chance.random() < 0.25
        match chance.choice(
            [
                *("create", "create", "create", "delete", "grow", "alter", "adjust", "broker", "move", "records"),
                *("quotas", "elect", "users"),
            ]
        ):
            case "create":
                creation = CreateTopicsRequest(
                    topics=[self._wanted(name) for name in names], timeout_ms=TIMEOUT_MS, validate_only=validates
                )
                await self._ask(ApiKey.CREATE_TOPICS, 7, creation)
            case "delete":
                deletion = DeleteTopicsRequest(topic_names=list(names), timeout_ms=TIMEOUT_MS)
                if validates:
                    deletion.unknown_tags = {TAG: b""}  # a dry run, as it is once it was read
                await self._ask(ApiKey.DELETE_TOPICS, 5, deletion)
            case "grow":
                wishes = [CreatePartitionsTopic(name=name, count=chance.randint(1, 6)) for name in names]
                growth = CreatePartitionsRequest(topics=wishes, timeout_ms=TIMEOUT_MS, validate_only=validates)
                await self._ask(ApiKey.CREATE_PARTITIONS, 3, growth)
            case "alter":
                await self._ask(ApiKey.ALTER_CONFIGS, 2, self._alteration(names, validates))
            case "adjust":
                adjustment = self._adjustment(names, validates)
                key = ApiKey.INCREMENTAL_ALTER_CONFIGS
                await self._ask(key, 1, adjustment)
            case "move":
                await self._ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, self._moves(names))
            case "records":
                await self._ask(ApiKey.DELETE_RECORDS, 2, self._deletion_of_records(names))
            case "quotas":
                rates = {str(name): float(chance.randint(1, 9)) for name in names}
                entries = [entry({"user": name}, {"producer_byte_rate": rate}) for name, rate in rates.items()]
                quotas = AlterClientQuotasRequest(entries=entries, validate_only=validates)
                await self._ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, quotas)
            case "elect":
                named = [TopicPartitions(topic=name, partitions=[0, 1]) for name in names]
                kind = chance.choice(list(ElectionType))
                election = ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=TIMEOUT_MS)
                await self._ask(ApiKey.ELECT_LEADERS, 2, election)
            case "users":
                deletions = [ScramCredentialDeletion(name=name, mechanism=1) for name in names]
                upsertions = [] if chance.random() < 0.3 else [put(name, 2) for name in names]
                users = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
                if upsertions and chance.random() < 0.7:
                    users.deletions = []
                await self._ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, users)
            case _:
                await self._ask(ApiKey.ALTER_CONFIGS, 2, self._of_a_broker())

    def _wanted(self, name: str) -> CreatableTopic:
        chance = self._chance
        configs = [CreatableTopicConfig(name="retention.ms", value=str(chance.randint(1, 9)))]
        if chance.random() < 0.2:
            rows = [
                CreatableReplicaAssignment(partition_index=index, broker_ids=[1, 2])
                for index in range(chance.randint(1, 3))
            ]
            return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)
        return CreatableTopic(
            name=name,
            num_partitions=chance.randint(1, 5),
            replication_factor=chance.randint(1, 3),
            configs=configs if chance.random() < 0.5 else [],
        )

    def _alteration(self, names: list[str], validates: bool) -> altering.AlterConfigsRequest:
        chance = self._chance
        resources = [
            altering.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[altering.AlterableConfig(name="retention.ms", value=str(chance.randint(1, 9)))]
                if chance.random() < 0.7
                else [],
            )
            for name in names
        ]
        return altering.AlterConfigsRequest(resources=resources, validate_only=validates)

    def _adjustment(self, names: list[str], validates: bool) -> adjusting.IncrementalAlterConfigsRequest:
        chance = self._chance
        operations: list[tuple[str, int, str | None]] = [
            ("retention.ms", SET, str(chance.randint(1, 9))),
            ("retention.ms", DELETE, None),
            ("cleanup.policy", SET, "compact"),
            ("cleanup.policy", APPEND, "delete"),
        ]
        resources = [
            adjusting.IncrementalAlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[
                    adjusting.IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in [chance.choice(operations)]
                ],
            )
            for name in names
        ]
        return adjusting.IncrementalAlterConfigsRequest(resources=resources, validate_only=validates)

    def _moves(self, names: list[str]) -> reassigning.AlterPartitionReassignmentsRequest:
        """Some partitions of them to other brokers, or back."""
        chance = self._chance
        topics = [
            reassigning.ReassignableTopic(
                name=name,
                partitions=[
                    reassigning.ReassignablePartition(
                        partition_index=index,
                        replicas=None if chance.random() < 0.2 else chance.sample([1, 2, 3], chance.randint(1, 3)),
                    )
                    for index in chance.sample(range(4), chance.randint(1, 3))
                ],
            )
            for name in names
        ]
        return reassigning.AlterPartitionReassignmentsRequest(topics=topics)

    def _deletion_of_records(self, names: list[str]) -> DeleteRecordsRequest:
        """Of some partitions, some of them beyond the end."""
        chance = self._chance
        topics = [
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=chance.choice([-1, 0, 0, 5]))
                    for index in chance.sample(range(4), chance.randint(1, 3))
                ],
            )
            for name in names
        ]
        return DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS)

    def _of_a_broker(self) -> altering.AlterConfigsRequest:
        configs = [altering.AlterableConfig(name="log.cleaner.threads", value=str(self._chance.randint(1, 4)))]
        resource = altering.AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)
        return altering.AlterConfigsRequest(resources=[resource])

    async def _ask(self, key: ApiKey, version: int, request: Any) -> None:
        await self._cluster.until(lambda: bool(self._cluster.rulers()))
        node: Node = self._cluster.controller_node
        context: RequestContext = context_for(node, key, version)
        context.origin = msgspec.structs.replace(context.origin, principal=self._chance.choice(PRINCIPALS))
        try:
            await answer_of(node, context, request)
        except Refusal:
            return


def recorded(folder: Path, settings: Mapping[str, str], seed: int, rounds: int = 12) -> list[AuditEvent]:
    """The events of such a life, in their order. On the real clock: a policy has a thread of its
    own.
    """

    async def live() -> None:
        async with trio.open_nursery() as nursery:
            await Life(nursery, folder, settings, seed).lived(rounds)
            nursery.cancel_scope.cancel()

    folder.mkdir()
    trio.run(live)
    return events_in(folder)
