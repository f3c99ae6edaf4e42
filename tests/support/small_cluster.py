"""A whole cluster in one process, without sockets: real nodes, real stores, a real controller among
them.

Nodes are told over a link that encodes each request, lets the loop turn, and decodes it again
(`WireLink`), or as the nodes of one process are. What a network and a server do to nodes and
sessions, the tests do.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import trio
import trio.testing

from minicontroller.admin.error_answers import error_answer
from minicontroller.cluster import cache
from minicontroller.cluster.entities import Broker, Endpoint, Topic
from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.image import Image
from minicontroller.controller.active.active_controller import ActiveController
from minicontroller.controller.active.channel import ControlLink, Unreachable
from minicontroller.controller.active.control_links import key_of
from minicontroller.controller.active.control_requests import ControlRequest, ControlVersions
from minicontroller.controller.active.election import Election
from minicontroller.controller.apis import apis_of
from minicontroller.controller.broker.epoch_check import EpochCheck
from minicontroller.controller.broker.followers import Followers
from minicontroller.controller.broker.registration import Registration
from minicontroller.controller.handlers.alter_partition import alter
from minicontroller.controller.handlers.controlled_shutdown import shut_down
from minicontroller.controller.node.candidacy import election_of
from minicontroller.controller.node.cluster_paths import keep, prepare
from minicontroller.controller.node.node import Node
from minicontroller.network.serving.api import response_of
from minicontroller.network.serving.context import RequestContext, Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.routes import routed
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages import alter_configs as alter_configs_message
from minicontroller.protocol.messages import incremental_alter_configs as incremental_message
from minicontroller.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, TopicData
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.caller import Caller, Listener
from minicontroller.store.base import Store
from tests.store.worlds import World
from tests.support.audit_logs import audit_of
from tests.support.specs import APIS, by_key

TIMEOUT_MS = 5_000
TOPIC, BROKER = 2, 4
PATIENCE_SECONDS = 90.0  # of the mock clock, where there is one


class WireLink:
    """To another node, as bytes."""

    def __init__(self, cluster: "SmallCluster", broker: Broker) -> None:
        self._cluster = cluster
        self._broker = broker
        self.versions = cluster.versions.get(broker.broker_id, ControlVersions())

    async def request(self, message: ControlRequest) -> object:
        key, version = key_of(message), self.versions.of(message)
        self._cluster.sent.add((self._broker.broker_id, key, version))
        header = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id="1")
        frame = KAFKA.encode_request(header, message)[4:]
        await trio.lowlevel.checkpoint()
        member = self._cluster.members.get(self._broker.broker_id)
        if member is None or self._broker.broker_id in self._cluster.unreachable:
            raise Unreachable("nobody is there")
        _, read, leftover = KAFKA.decode_request(frame, of_a_node=True)
        assert not leftover
        if self._broker.broker_id in self._cluster.deaf:
            return error_answer(APIS[key], read, version, code=ErrorCode.STALE_CONTROLLER_EPOCH)
        if self._broker.broker_id in self._cluster.silent:
            await trio.sleep_forever()
        response: Any = await response_of(
            by_key(member.node)[key].handler(context_for(member.node, key, version), read)
        )
        if isinstance(message, LeaderAndIsrRequest):
            self._lose(message, response)
        answer = KAFKA.encode_response(key, version, 7, response)
        await trio.lowlevel.checkpoint()
        return KAFKA.decode_response(key, version, answer[4:])[1]

    def _lose(self, message: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> None:
        """As Kafka's ReplicaManager answers for a partition that is offline."""
        names = {topic.topic_id: topic.topic_name for topic in message.topic_states}
        for topic in response.topics:
            if (self._broker.broker_id, names[topic.topic_id]) in self._cluster.lost:
                for row in topic.partition_errors:
                    row.error_code = ErrorCode.KAFKA_STORAGE_ERROR

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Member:
    """One node that runs."""

    def __init__(self, node: Node, election: Election, scope: trio.CancelScope) -> None:
        self.node = node
        self.election = election
        self.scope = scope
        self.ended = trio.Event()

    @property
    def broker_id(self) -> int:
        return self.node.broker_id

    @property
    def store(self) -> Store:
        return self.node.store


class SmallCluster:
    """Nodes by id; `start`, `kill` and `expire` change who lives."""

    def __init__(
        self,
        nursery: trio.Nursery,
        world: World,
        *,
        one_process: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.world = world
        self.members: dict[int, Member] = {}
        self.unreachable: set[int] = set()
        """Nodes that live and register, and that nobody can connect to."""
        self.silent: set[int] = set()
        """Nodes that live and register, and that answer no controller."""
        self.versions: dict[int, ControlVersions] = {}
        """Nodes that are sent control requests in other versions than the newest."""
        self.sent: set[tuple[int, ApiKey, int]] = set()
        """The versions of control requests, by node and API."""
        self.deaf: set[int] = set()
        """Nodes that answer every controller that they know a newer one."""
        self.lost: set[tuple[int, str]] = set()
        """Nodes and topics: as brokers of Kafka they have lost the directory of their replicas of
        these.
        """
        self._nursery = nursery
        self._local_nodes: dict[int, Node] | None = {} if one_process else None
        self._settings = settings or {}
        self._listeners: list[cache.Listener] = []

    # ------------------------------------------------------------------ who lives

    async def start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            await self._nursery.start(self._run_member, broker_id)

    async def start_in_turn(self, *broker_ids: int) -> None:
        """Start each when all before it are quiet: if nobody ruled, the first one does."""
        for broker_id in broker_ids:
            await self.start(broker_id)
            await self.until_quiet()

    async def _run_member(self, broker_id: int, task_status: trio.TaskStatus[None]) -> None:
        store = await self.world.open()
        config = config_from_mapping(
            {
                "broker.id": str(broker_id),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "metadata.completion": "cluster",
                **self._settings,
            }
        )
        cluster_id = await prepare(store)
        audit = audit_of(config, cluster_id)
        node = Node(config, cluster_id, store, audit=audit, local_nodes=self._local_nodes)
        node.local_nodes[broker_id] = node
        broker = Broker(broker_id, (Endpoint("PLAINTEXT", f"host-{broker_id}", 9092),))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            if audit is not None:
                stack.push_async_callback(audit.close)
            tasks = await stack.enter_async_context(trio.open_nursery())
            member = Member(node, election_of(node, self._link), tasks.cancel_scope)
            followers = Followers(
                node.cache,
                self._asker(member),
                broker_id=broker_id,
                timeout_seconds=node.port.request_timeout_ms / 1000,
            )
            for listener in self._listeners:
                node.cache.on_change(listener)
            self.members[broker_id] = member
            tasks.start_soon(node.reader.run, store)
            registration = Registration(
                store,
                broker,
                node.registered,
                node.reader.read_notifications,
                keep_cluster=partial(keep, store, node.cluster_id, lambda: bool(node.cache.image.topics)),
            )
            await tasks.start(registration.run)
            tasks.start_soon(followers.run)
            tasks.start_soon(EpochCheck(node.cache, store).run)
            tasks.start_soon(member.election.run)
            task_status.started()
        del node.local_nodes[broker_id]
        member.ended.set()

    async def kill(self, broker_id: int) -> None:
        """The process ends without a word; its session is over when this returns."""
        member = self.members.pop(broker_id)
        member.scope.cancel()
        await member.ended.wait()

    async def expire(self, broker_id: int) -> None:
        """The session of a node that lives is over; it opens another one."""
        await self.world.expire(self.members[broker_id].store)

    def on_metadata(self, listener: cache.Listener) -> None:
        """Call it for every change of every node's metadata."""
        self._listeners.append(listener)
        for member in self.members.values():
            member.node.cache.on_change(listener)

    def _link(self, broker: Broker) -> ControlLink:
        return WireLink(self, broker)

    def _asker(self, member: Member) -> Callable[[list[TopicData]], Awaitable[AlterPartitionResponse | None]]:
        async def ask(topics: list[TopicData]) -> AlterPartitionResponse | None:
            await trio.lowlevel.checkpoint()
            asked = self.members.get(member.node.cache.image.controller_id)
            if asked is None:
                return None
            request = AlterPartitionRequest(
                broker_id=member.broker_id, broker_epoch=member.node.broker_epoch, topics=topics
            )
            return await alter(asked.node.place, request, version=3)

        return ask

    # ------------------------------------------------------------------ who rules

    def rulers(self) -> list[ActiveController]:
        """Those that take themselves for the controller and have loaded their state."""
        return [member.node.controller for member in self.members.values() if member.node.controller is not None]

    @property
    def controller(self) -> ActiveController:
        (controller,) = self.rulers()
        return controller

    @property
    def controller_node(self) -> Node:
        """The node of the controller; of several, the one that started last."""
        return [member.node for member in self.members.values() if member.node.controller is not None][-1]

    async def until(self, reached: Callable[[], bool]) -> None:
        """Look until it is so; the clock is a mock, or the wait is for another process."""
        with trio.fail_after(PATIENCE_SECONDS):
            while not reached():  # noqa: ASYNC110 - what is looked at has no event of its own
                await trio.sleep(0.01)

    async def until_succeeded(self, epoch: int) -> None:
        """A controller of a later epoch rules, and all is quiet."""
        await self.until(lambda: any(controller.epoch > epoch for controller in self.rulers()))
        await self.until_quiet()

    async def elect_anew(self) -> None:
        """The controller resigns, and whoever is elected then rules."""
        controller = self.controller
        controller.resign()
        await self.until_succeeded(controller.epoch)

    async def until_quiet(self) -> None:
        """Everyone who lives is registered, and is told so by one controller, who has nothing left
        to tell or to do.
        """
        await self.until(self._agreed)

    def _agreed(self) -> bool:
        rulers = self.rulers()
        if len(rulers) != 1:
            return False
        (controller,) = rulers
        image = controller.image
        return set(image.brokers) == set(self.members) and all(
            image.brokers[broker_id].epoch == member.node.broker_epoch
            and member.node.cache.image.controller_epoch == controller.epoch
            and set(member.node.cache.image.brokers) == set(self.members)
            for broker_id, member in self.members.items()
        )

    # ------------------------------------------------------------------ what clients ask

    async def create(
        self, *names: str, partitions: int = 1, replication_factor: int = 1, timeout_ms: int = TIMEOUT_MS
    ) -> list[int]:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
                for name in names
            ],
            timeout_ms=timeout_ms,
        )
        node = self.controller_node
        try:
            answer = await answer_of(node, context_for(node, ApiKey.CREATE_TOPICS, 7), request)
        except Refusal as refusal:
            return [refusal.code] * len(names)
        return [result.error_code for result in answer.topics]

    async def delete(self, *names: str, timeout_ms: int = TIMEOUT_MS) -> list[int]:
        node = self.controller_node
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
        try:
            answer = await answer_of(node, context_for(node, ApiKey.DELETE_TOPICS, 5), request)
        except Refusal as refusal:
            return [refusal.code] * len(names)
        return [result.error_code for result in answer.responses]

    async def grow(self, name: str, count: int, *, timeout_ms: int = TIMEOUT_MS) -> int:
        node = self.controller_node
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)], timeout_ms=timeout_ms
        )
        try:
            answer = await answer_of(node, context_for(node, ApiKey.CREATE_PARTITIONS, 3), request)
        except Refusal as refusal:
            return refusal.code
        code: int = answer.results[0].error_code
        return code

    async def reassign(self, name: str, moves: Mapping[int, Sequence[int] | None]) -> list[int]:
        """Begin to move the replicas of these partitions, or cancel that."""
        rows = [
            ReassignablePartition(partition_index=index, replicas=None if to is None else list(to))
            for index, to in moves.items()
        ]
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=rows)])
        node = self.controller_node
        try:
            answer = await answer_of(node, context_for(node, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0), request)
        except Refusal as refusal:
            return [refusal.code] * len(moves)
        return [row.error_code for row in answer.responses[0].partitions]

    async def replace_configs(self, name: str, configs: Mapping[str, str]) -> int:
        """AlterConfigs: what is not named is gone."""
        entries = [alter_configs_message.AlterableConfig(name=key, value=value) for key, value in configs.items()]
        resource = alter_configs_message.AlterConfigsResource(resource_type=2, resource_name=name, configs=entries)
        node = self.controller_node
        context = context_for(node, ApiKey.ALTER_CONFIGS, 2)
        request = alter_configs_message.AlterConfigsRequest(resources=[resource])
        code: int = (await answer_of(node, context, request)).responses[0].error_code
        return code

    async def change_config(self, name: str, key: str, value: str | None, *, resource_type: int = TOPIC) -> int:
        """IncrementalAlterConfigs of one key; None takes it away."""
        step = incremental_message.IncrementalAlterableConfig(name=key, config_operation=0 if value else 1, value=value)
        resource = incremental_message.IncrementalAlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=[step]
        )
        node = self.controller_node
        context = context_for(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
        request = incremental_message.IncrementalAlterConfigsRequest(resources=[resource])
        code: int = (await answer_of(node, context, request)).responses[0].error_code
        return code

    async def shut_down(self, broker_id: int) -> ControlledShutdownResponse:
        epoch = self.members[broker_id].node.broker_epoch
        return await shut_down(
            self.controller_node.place, ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
        )

    # ------------------------------------------------------------------ what is seen

    def seen(self, broker_id: int) -> Image:
        """Return the image of a node."""
        return self.members[broker_id].node.cache.image


async def answer_of(node: Node, context: RequestContext, request: Any) -> Any:
    """The answer to a request of a client by the route that it takes at a node that does not
    forward.
    """
    route = routed(apis_of(node), node.cache, node.place.is_active).get(context.api_key)
    assert route is not None
    return await response_of(route.handler(context, request))


def context_for(node: Node, key: ApiKey, version: int) -> RequestContext:
    caller = Caller(Listener(name="PLAINTEXT"), "10.0.0.9", 50_000)
    return RequestContext(
        spec=APIS[key],
        header=RequestHeader(key, version, 7, "tests"),
        origin=RequestOrigin(client_host="10.0.0.9", api_version=version),
        arrived=trio.current_time(),
        caller=caller,
        dispatcher=Dispatcher(Routes(())),
    )


def told(topic: Topic) -> Any:
    """Return the topic as every node is to know it."""
    return (
        topic.topic_id,
        topic.czxid,
        [
            (p.replicas, p.leader, p.leader_epoch, p.isr, p.controller_epoch, p.partition_epoch, p.offline_replicas)
            for p in topic.partitions
        ],
    )
