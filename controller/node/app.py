"""Runs a node as a tree of tasks: its parts, and the order in which they start and stop.

Rule: every task is a child of `run_node`. A node starts with the checks that need no store, then
reads the cluster, binds, registers, and stands for election; it registers after it has bound, so
that clients can connect to every registered address. A node stops by resigning as the controller,
handing over leaderships, answering the running requests, and closing its session.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial

import trio

from ...admin.policy.loading import loaded_policy
from ...admin.recording.decisions import RecentDecisions
from ...admin.recording.log import AuditLog, audit_settings
from ...cluster.cache import MetadataCache
from ...network.limits import MOST_CONNECTIONS
from ...network.server import Server, check_addresses
from ...network.serving.dispatcher import Dispatcher
from ...network.serving.forwarding import Forwarder
from ...network.serving.routes import routed
from ...policies.configs.values import MAX_PORT
from ...process.observe.logs import NODE
from ...process.settings.node_config import NodeConfig
from ...security.caller import Listener
from ...security.listeners import NodeLogins, server_listeners, with_proof
from ...security.mechanisms import LoginSources
from ...security.node_proof import Membership
from ...store.base import Store
from ..active.control_links import ControlLinks
from ..active.election import Election
from ..apis import apis_of
from ..broker.data import KeepData, no_records
from ..broker.epoch_check import EpochCheck
from ..broker.followers import Followers
from ..broker.node_security import NodeSecurity
from ..broker.registration import Registration
from ..handlers.unauthorized_requests import RefusedRequests
from .authorization import authorization_of, loaded_authorizer
from .candidacy import election_of
from .cluster_paths import keep, prepare
from .endpoints import bootstrap_of, registration
from .node import Node
from .open_listeners import GRACE_SECONDS, OpenListeners

log = logging.getLogger("minicontroller.node")

TAKEOVER_MARGIN_SECONDS = 2.0
"""The time in seconds that a session may outlive its timeout: ZooKeeper expires sessions at its
ticks, and later while it elects a leader.
"""


@dataclass
class RunningNode:
    """A node that serves requests."""

    node: Node
    bootstrap: str
    """The host:port of the listener for clients."""
    server: Server
    dispatcher: Dispatcher
    forwarder: Forwarder | None = None
    """The forwarder of requests to the active controller, or None if forwarding is disabled."""
    stopping: trio.Event = field(default_factory=trio.Event)
    hands_over: bool = True

    def stop(self, *, hand_over: bool) -> None:
        """Begin to stop; `run_node` returns when the node has stopped. `hand_over` tells that other
        nodes stay and can take over its leaderships.
        """
        self.hands_over = hand_over
        self.stopping.set()

    async def wait_ready(self, broker_ids: frozenset[int]) -> None:
        """Wait until this node knows the active controller and these brokers."""
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
    room: int = MOST_CONNECTIONS,
    keep_data: KeepData = no_records,
    task_status: trio.TaskStatus[RunningNode] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run one node until it has stopped. The task is reported as started when the node serves.

    `local_nodes` are the nodes of this process by id, which the controller updates by direct calls.
    `room` is the number of connections for which the process has file descriptors, and `keep_data`
    makes what the node has of records, groups and transactions. Raises OSError if the node cannot
    listen, and ConfigurationError or PolicyLoadError for a mistake in the configuration, before the
    node waits for its store.
    """
    NODE.set(config.integer("broker.id"))
    security = NodeSecurity(config)
    sources = LoginSources(security.scram_credential, security.tokens.credential, security.secret.current)
    listeners = server_listeners(config, sources)
    audit = audit_settings(config)
    registration(config, dict.fromkeys((each.name for each in listeners), MAX_PORT))
    await check_addresses(listeners)
    async with (
        loaded_policy(config) as (policy, rules),
        loaded_authorizer(config) as authorizer,
        open_store(config) as store,
        trio.open_nursery() as tasks,
    ):
        cluster_id, broker_id, cache = await prepare(store), config.integer("broker.id"), MetadataCache()
        membership = Membership(cluster_id, broker_id, security.secret.current)
        logins = NodeLogins(membership, listeners)
        links = ControlLinks(tasks, config, cache, logins)
        node = Node(
            config,
            cluster_id,
            store,
            security=security,
            cache=cache,
            ask_controller=links.ask_controller,
            room=room,
            policy=policy,
            rule_files=rules,
            audit=None if audit is None else AuditLog(audit, cluster_id=cluster_id, node=broker_id),
            local_nodes=local_nodes,
            recent_decisions=decisions,
            keep_data=keep_data,
        )
        store.on_session(node.metrics.session_changed)
        forwarder = _forwarder(tasks, node, logins)
        dispatcher = Dispatcher(
            routed(apis_of(node), cache, node.place.is_active, forwarder),
            [RefusedRequests(node.port)],
            authorization=authorization_of(config, authorizer, security.acl_index, node.metrics.authorization),
        )
        parts = await _bound_parts(node, listeners, dispatcher, membership, links)
        tasks.start_soon(sources.run)
        await sources.wait_tried()
        await _start(node, tasks, parts, sources)
        logins.warn_of_missing_users(security.scram_credential)
        security.tokens.warn_of_impersonation(has_authorizer=dispatcher.authorization is not None)
        running = RunningNode(node, bootstrap_of(config, parts.registration.broker), node.server, dispatcher, forwarder)
        task_status.started(running)
        await running.stopping.wait()
        await _stop(running, parts)
        tasks.cancel_scope.cancel()


@dataclass(frozen=True)
class NodeParts:
    """The parts of a node that run as tasks or are used by other parts."""

    server: Server
    dispatcher: Dispatcher
    election: Election
    followers: Followers
    registration: Registration
    membership: Membership

    async def open_at(self, listeners: Sequence[Listener]) -> None:
        """Open listeners at the server, also while it runs. Raises OSError."""
        await self.server.open(with_proof(listeners, self.membership), self.dispatcher)

    def readvertise(self, config: NodeConfig) -> None:
        """Register the endpoints of a configuration. Those before stay this node's, until every
        other node has heard of the change.
        """
        broker = registration(config, self.server.ports)
        self.membership.advertise(each.address for each in broker.endpoints)
        self.registration.readvertise(broker)


async def _bound_parts(
    node: Node, listeners: Sequence[Listener], dispatcher: Dispatcher, membership: Membership, links: ControlLinks
) -> NodeParts:
    """Bind the listeners of a node, add it to the nodes of the process, and make the parts that
    need its addresses.
    """
    config, server = node.config, node.server
    await server.open(with_proof(listeners, membership), dispatcher)
    broker = registration(config, server.ports)
    membership.advertise(endpoint.address for endpoint in broker.endpoints)
    node.local_nodes[node.broker_id] = node
    return NodeParts(
        server=server,
        dispatcher=dispatcher,
        election=election_of(node, links.link),
        followers=Followers(
            node.cache,
            node.requests.alter,
            broker_id=node.broker_id,
            timeout_seconds=node.port.request_timeout_ms / 1000,
        ),
        registration=Registration(
            node.store,
            broker,
            node.registered,
            node.reader.read_notifications,
            takeover_seconds=takeover_seconds(config),
            keep_cluster=partial(keep, node.store, node.cluster_id, lambda: bool(node.cache.image.topics)),
        ),
        membership=membership,
    )


async def _start(node: Node, tasks: trio.Nursery, parts: NodeParts, sources: LoginSources) -> None:
    """Start the tasks of a node in order. The node is registered when this returns."""
    configs, store = node.dynamic_configs, node.store
    await tasks.start(partial(node.reader.run, store, tidies=lambda: node.controller is not None))
    await tasks.start(node.security.secret.run, store, node.server.drain_nodes)
    listeners = OpenListeners(node.config, parts.server, parts.open_at, sources, parts.readvertise)
    configs.follow(listeners.follow)
    await tasks.start(listeners.run)
    await tasks.start(parts.server.run)
    await tasks.start(parts.registration.run)
    tasks.start_soon(parts.followers.run)
    tasks.start_soon(EpochCheck(node.cache, store).run)
    if node.rule_files is not None:
        tasks.start_soon(node.rule_files.run)
    tasks.start_soon(parts.election.run)


async def _stop(running: RunningNode, parts: NodeParts) -> None:
    """Stop a node in order. Its tasks still run, and are cancelled afterwards."""
    node = running.node
    await parts.election.withdraw()
    if running.hands_over and node.config.boolean("controlled.shutdown.enable"):
        await node.requests.hand_over()
    await parts.server.shutdown(GRACE_SECONDS)
    if node.policy is not None:
        await node.policy.close()
    if node.audit is not None:
        await node.audit.close()
    del node.local_nodes[node.broker_id]


def _forwarder(tasks: trio.Nursery, node: Node, logins: NodeLogins) -> Forwarder | None:
    """Return the forwarder of requests to the active controller, or None if forwarding is
    disabled.
    """
    if not node.config.boolean("controller.forwarding.enable"):
        return None
    return Forwarder(
        tasks,
        broker_id=node.broker_id,
        cache=node.cache,
        inter_broker_listener=node.config.inter_broker_listener.name,
        logins=logins.at,
        tls_at=logins.tls_at,
        request_timeout_seconds=node.port.request_timeout_ms / 1000,
    )


def takeover_seconds(config: NodeConfig) -> float:
    """Return how many seconds a session may remain of a crashed process with this node's id."""
    return config.integer("zookeeper.session.timeout.ms") / 1000 + TAKEOVER_MARGIN_SECONDS
