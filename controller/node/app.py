"""The tree of tasks of a node: how it starts, and how it stops.

Rule: everything that runs is a child of `run_node`, and the order of starting and of stopping
stands here and nowhere else.

Starting: check what needs no store, learn the cluster, bind, register, stand for controller. A node
registers when its sockets are bound, so whoever reads its registration can connect. Stopping: let
another controller be elected, hand leaderships over, answer what runs, leave.
"""

import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from ...policies.configs.values import MAX_PORT, KeyType
from ...policies.loading import POLICY_KEY, is_rule_file, names_class
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, TopicData
from ...protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ..active.control_links import ControlLinks
from ..active.election import Election
from ..active.loading import ensure_paths
from ..audit.decisions import RecentDecisions
from ..audit.log import AuditLog, AuditSettings, audit_settings
from ..broker.dynamic_configs import DynamicConfigs
from ..broker.epoch_check import EpochCheck
from ..broker.followers import Followers
from ..broker.registration import Registration
from ..broker.shared_secret import SharedSecret
from ..clock import now_ms
from ..config.keys import KEYS
from ..config.node_config import NodeConfig
from ..errors import ConfigurationError
from ..handlers import SPECS
from ..handlers.alter_partition import alter
from ..handlers.node import Node
from ..handlers.unauthorized_requests import record_unauthorized
from ..metadata.entities import Broker, Endpoint
from ..metadata.image import NO_CONTROLLER
from ..metadata.random_ids import new_id
from ..network.descriptors import MOST_CONNECTIONS
from ..network.limits import UNLIMITED, ConnectionLimits
from ..network.memory import DEFAULT_BYTES
from ..network.peer import PeerUnavailable
from ..network.server import Server, check_addresses
from ..observe.logs import NODE
from ..policy.process import PolicyProcess
from ..policy.runner import PolicyRunner
from ..routing.dispatcher import Dispatcher
from ..routing.forwarding import Forwarder
from ..routing.routes import routed
from ..security.listeners import NodeLogins, server_listeners, with_proof
from ..security.node_proof import Membership
from ..store.base import Create, NodeExists, SessionExpired, Store, StoreUnavailable
from ..store.sessions import wait_connected
from ..znodes import layout, registrations
from ..znodes.cluster import decode_cluster_id, encode_cluster_id
from ..znodes.content import MalformedZnodeError
from ..znodes.topics import uuid_text

if TYPE_CHECKING:
    from ..policy.rule_files import RuleFiles

log = logging.getLogger("minicontroller.node")

GRACE_SECONDS = 5.0
"""How long requests that run when the node is told to stop have to finish."""
HANDOVER_SECONDS = 3.0
"""How long the controller has to move the leaderships of a node that stops; the node stops all the
same.
"""
RETRY_SECONDS = 0.05
"""The pause before a controller that was not reached, or is none yet, is asked again."""
TAKEOVER_MARGIN_SECONDS = 2.0
"""How much longer than its timeout a session may live: ZooKeeper ends sessions at its ticks, and
later while it elects a leader.
"""


@dataclass
class RunningNode:
    """A node that serves."""

    node: Node
    bootstrap: str
    """host:port of the listener for clients."""
    server: Server
    dispatcher: Dispatcher
    forwarder: Forwarder | None = None
    """None where forwarding is off."""
    stopping: trio.Event = field(default_factory=trio.Event)
    hands_over: bool = True

    def stop(self, *, hand_over: bool) -> None:
        """Begin to stop; `run_node` returns when it is done. `hand_over`: other nodes stay, and
        take over the leaderships.
        """
        self.hands_over = hand_over
        self.stopping.set()

    async def wait_ready(self, broker_ids: frozenset[int]) -> None:
        """Wait until this node knows the controller and these brokers."""
        await self.node.cache.wait_cluster(
            lambda image: image.controller_id in image.brokers and broker_ids.issubset(image.brokers)
        )


OpenStore = Callable[[NodeConfig], AbstractAsyncContextManager[Store]]


async def run_node(
    config: NodeConfig,
    open_store: OpenStore,
    *,
    local_nodes: dict[int, Node] | None = None,
    decisions: RecentDecisions | None = None,
    clock_ms: Callable[[], int] = now_ms,
    room: int = MOST_CONNECTIONS,
    task_status: trio.TaskStatus[RunningNode] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run one node from its first bind to its last answer; it is reported as started when it
    serves. What is wrong with its configuration or its machine is told before its store is waited
    for.

    `local_nodes` are the nodes of this process, by id, which the controller tells without sockets;
    they share `decisions`. `room` is how many connections the process has descriptors for. Raises
    OSError if the node cannot listen, ConfigurationError or PolicyLoadError if it is configured
    wrongly.
    """
    NODE.set(config.integer("broker.id"))
    listeners = server_listeners(config)
    audit = audit_settings(config)
    registration(config, dict.fromkeys((each.name for each in listeners), MAX_PORT))
    await check_addresses(listeners)
    async with loaded_policy(config) as (policy, rules), open_store(config) as store, trio.open_nursery() as tasks:
        node = Node(
            config=config,
            broker_id=config.integer("broker.id"),
            cluster_id=await prepare(store),
            store=store,
            dynamic_configs=DynamicConfigs(config, config.integer("broker.id")),
            policy=policy,
            rule_files=rules,
            local_nodes={} if local_nodes is None else local_nodes,
            recent_decisions=RecentDecisions() if decisions is None else decisions,
        )
        node.audit = node.metrics.audit = open_audit(audit, node)
        store.on_session(node.metrics.session_changed)
        server = Server(connection_limits(config, room))
        secret = SharedSecret(server.part_from_nodes)
        membership = Membership(node.cluster_id, node.broker_id, secret.current)
        logins = NodeLogins(config, membership)
        forwarder = _forwarder(tasks, node, logins)
        dispatcher = Dispatcher(
            node,
            routed(SPECS.values(), forwarder),
            node.decisions.refused,
            partial(record_unauthorized, node),
        )
        await server.open(with_proof(listeners, membership), dispatcher)
        broker = registration(config, server.ports)
        membership.addresses = frozenset(endpoint.address for endpoint in broker.endpoints)
        node.local_nodes[node.broker_id] = node
        links = ControlLinks(tasks, config, node.cache, logins)
        election = Election(node, links.link, clock_ms)
        followers = Followers(
            node.cache,
            partial(ask_to_alter, node, links),
            broker_id=node.broker_id,
            timeout_seconds=node.request_timeout_ms / 1000,
        )
        node.dynamic_configs.on_change(partial(tell_the_controller, node))
        node.dynamic_configs.on_change(node.topic_overrides.entity_changed)
        await tasks.start(partial(node.dynamic_configs.run, store, tidies=lambda: node.controller is not None))
        await tasks.start(secret.run, store)
        await tasks.start(server.run)
        entry = Registration(
            store,
            broker,
            clock_ms,
            node.registered,
            node.dynamic_configs.load,
            takeover_seconds=takeover_seconds(config),
        )
        await tasks.start(entry.run)
        tasks.start_soon(followers.run)
        tasks.start_soon(EpochCheck(node.cache, store).run)
        if rules is not None:
            tasks.start_soon(rules.run)
        tasks.start_soon(election.run)
        running = RunningNode(node, bootstrap_of(config, broker), server, dispatcher, forwarder)
        task_status.started(running)
        await running.stopping.wait()

        await election.withdraw()
        if running.hands_over:
            await hand_over(node, links)
        await server.shutdown(GRACE_SECONDS)
        if policy is not None:
            await policy.close()
        if node.audit is not None:
            await node.audit.close()
        del node.local_nodes[node.broker_id]
        tasks.cancel_scope.cancel()


# ------------------ starting


def _forwarder(tasks: trio.Nursery, node: Node, logins: NodeLogins) -> Forwarder | None:
    """Return the node's way to the active controller, None where forwarding is off."""
    if not node.config.boolean("controller.forwarding.enable"):
        return None
    return Forwarder(
        tasks,
        broker_id=node.broker_id,
        cache=node.cache,
        inter_broker_listener=node.config.inter_broker_listener.name,
        logins=logins.at,
        request_timeout_seconds=node.request_timeout_ms / 1000,
    )


async def prepare(store: Store) -> str:
    """Create the paths that every Kafka cluster has, and return the cluster's id, which the first
    node chooses. Waits for a store that is away.
    """
    while True:
        await wait_connected(store)
        try:
            return await _prepare(store)
        except (StoreUnavailable, SessionExpired) as error:
            log.debug("the store is away: %s", error)
            await trio.lowlevel.checkpoint()


async def _prepare(store: Store) -> str:
    await ensure_paths(store)
    entry = await store.get(layout.CLUSTER_ID)
    if entry is None:
        await store.ensure("/cluster")
        try:
            await store.commit([Create(layout.CLUSTER_ID, encode_cluster_id(uuid_text(new_id())))])
        except NodeExists:
            log.debug("another node was faster to name the cluster")
        entry = await store.get(layout.CLUSTER_ID)
    try:
        return decode_cluster_id(None if entry is None else entry.data)
    except MalformedZnodeError as error:
        raise ConfigurationError(
            f"{layout.CLUSTER_ID} in ZooKeeper is not what a node of Kafka leaves there: {error}."
        ) from error


def open_audit(settings: AuditSettings | None, node: Node) -> AuditLog | None:
    return None if settings is None else AuditLog(settings, cluster_id=node.cluster_id, node=node.broker_id)


def rule_files(config: NodeConfig) -> Sequence[Path]:
    """Return the rule files that the configuration names, in order and each once."""
    named = config.string(POLICY_KEY).strip()
    names = [*([named] if is_rule_file(named) else []), *config.strings("policy.rules.files")]
    return [Path(name) for name in dict.fromkeys(names)]


@asynccontextmanager
async def loaded_policy(config: NodeConfig) -> "AsyncIterator[tuple[PolicyRunner | None, RuleFiles | None]]":
    """Load the configured policy and its rule files, None where none is configured, and end the
    policy with the block. Raises PolicyLoadError.
    """
    policy = await load_policy(config)
    try:
        yield policy, load_rules(config, policy)
    finally:
        if policy is not None:
            policy.kill()  # where the node ends without closing it


async def load_policy(config: NodeConfig) -> PolicyRunner | None:
    if not names_class(config.static):
        return PolicyRunner() if rule_files(config) else None
    secrets = {name for name, key in KEYS.items() if key.type is KeyType.PASSWORD}
    process = PolicyProcess(config.static, timeout_ms=config.integer("policy.timeout.ms"), secrets=secrets)
    await process.start()
    return PolicyRunner(process)


def load_rules(config: NodeConfig, policy: PolicyRunner | None) -> "RuleFiles | None":
    """Put the rules of the configured files in force, and return what follows these files. Raises
    PolicyLoadError.
    """
    if policy is None or not rule_files(config):
        return None
    from ..policy.rule_files import RuleFiles  # with the engines for CEL and regular expressions: 20 MiB

    rules = RuleFiles(rule_files(config), policy, interval_ms=config.integer("policy.rules.reload.interval.ms"))
    rules.load()
    return rules


def takeover_seconds(config: NodeConfig) -> float:
    """Return how long the session of a process that died with this node's id may live on."""
    return config.integer("zookeeper.session.timeout.ms") / 1000 + TAKEOVER_MARGIN_SECONDS


def connection_limits(config: NodeConfig, room: int) -> ConnectionLimits:
    """Return the configured limits of connections. `room`: for how many connections there are
    descriptors.
    """
    wanted = config.integer("max.connections")
    idle_ms = config.integer("connections.max.idle.ms")
    return ConnectionLimits(
        max_request_bytes=config.integer("socket.request.max.bytes"),
        max_unfinished_bytes=_unfinished_bytes(config),
        max_connections=min(room, MOST_CONNECTIONS if wanted == UNLIMITED else wanted),
        max_connections_per_ip=config.integer("max.connections.per.ip"),
        per_ip_overrides=config.max_connections_per_ip_overrides,
        max_idle_seconds=float("inf") if idle_ms < 0 else idle_ms / 1000,
        failed_authentication_delay_seconds=config.integer("connection.failed.authentication.delay.ms") / 1000,
    )


def _unfinished_bytes(config: NodeConfig) -> int:
    """Return how many bytes of unfinished requests may be kept: one request has room
    in any case.
    """
    wanted = config.integer("queued.max.request.bytes")
    return max(wanted if wanted > 0 else DEFAULT_BYTES, config.integer("socket.request.max.bytes"))


def advertised_endpoints(config: NodeConfig, ports: Mapping[str, int]) -> tuple[Endpoint, ...]:
    """Return the endpoints that others are told; port 0 becomes the port that was bound."""
    return tuple(
        Endpoint(
            listener=listener.name,
            host=listener.advertised_host or socket.getfqdn(),
            port=listener.advertised_port or ports[listener.name],
            security_protocol=listener.security_protocol,
        )
        for listener in config.listeners
        if listener.advertised_host is not None
    )


def registration(config: NodeConfig, ports: Mapping[str, int]) -> Broker:
    """Return what the node registers when it listens at these ports. Raises ConfigurationError if
    others could not read it.
    """
    return registrable(
        Broker(
            broker_id=config.integer("broker.id"),
            endpoints=advertised_endpoints(config, ports),
            rack=config.optional_string("broker.rack"),
            proves_itself=True,
        )
    )


def registrable(broker: Broker) -> Broker:
    """Return this broker. Raises ConfigurationError if others could not read its registration."""
    try:
        registrations.decode_broker(broker.broker_id, registrations.encode_broker(broker, 0), 0)
    except MalformedZnodeError as error:
        raise ConfigurationError(
            f"broker.rack and advertised.listeners make a registration that other nodes cannot read: {error}."
        ) from error
    return broker


def bootstrap_of(config: NodeConfig, broker: Broker) -> str:
    """Return host:port where clients begin: the first listener that is not the nodes' own, if there
    is one.
    """
    nodes = config.inter_broker_listener.name
    endpoint = next((each for each in broker.endpoints if each.listener != nodes), broker.endpoints[0])
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


# ------------------ what a node asks of the controller for itself


def tell_the_controller(node: Node, kind: str, name: str) -> None:
    """Tell the controller of a change of configs, if it is this node."""
    if node.controller is not None:
        node.controller.entity_changed(kind, name)


async def ask_to_alter(node: Node, links: ControlLinks, topics: list[TopicData]) -> AlterPartitionResponse | None:
    """Send AlterPartition to the active controller, or return None if it cannot be reached."""
    request = AlterPartitionRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch, topics=topics)
    if node.controller is not None:
        return await alter(node, request, version=3)
    try:
        answer = await links.ask_controller(ApiKey.ALTER_PARTITION, 3, request)
    except PeerUnavailable:
        return None
    assert isinstance(answer, AlterPartitionResponse)
    return answer


async def hand_over(node: Node, links: ControlLinks) -> None:
    """Ask the controller for a controlled shutdown, where it is enabled and there is a node to take
    over.
    """
    if len(node.cache.image.brokers) < 2 or not node.config.boolean("controlled.shutdown.enable"):
        return
    request = ControlledShutdownRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch)
    with trio.move_on_after(HANDOVER_SECONDS):
        while True:
            # Another node has to rule: what this one took note of while it ruled, its successor
            # would not know.
            await node.cache.wait_cluster(lambda image: image.controller_id not in (NO_CONTROLLER, node.broker_id))
            try:
                answer = await links.ask_controller(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
            except PeerUnavailable as error:
                log.info("leaderships are not handed over yet: %s", error)
            else:
                assert isinstance(answer, ControlledShutdownResponse)
                if answer.error_code == ErrorCode.NONE:
                    return
            await trio.sleep(RETRY_SECONDS)
