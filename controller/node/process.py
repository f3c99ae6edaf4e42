"""Runs the nodes of `up` and `serve` in one process, from their configuration to their end.

Rule: the first SIGINT or SIGTERM stops the nodes in order, so that running requests are answered.
The second one ends the process immediately.
"""

import contextlib
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial

import trio

from ...cluster.errors import ConfigurationError, first_of
from ...network.http.listener import HttpListener, open_site
from ...network.limits import raise_limit, room_for_connections
from ...network.server import PortTakenError
from ...network.serving.mistakes import mistakes_of
from ...process.observe.logs import use_format
from ...process.observe.stdout import say
from ...process.settings.loading import load_config
from ...process.settings.node_config import NodeConfig
from ...process.settings.secret_files import warnings_of_configuration
from ...security.zookeeper_access import zookeeper_access
from ...store.base import AccessDenied, Store
from ...store.memory import MemoryStore, MemoryTree
from ...store.watchdog import run_watchdog
from ...store.zookeeper import ZooKeeperStore
from ..broker.data import WITHOUT_RECORDS, ProcessData
from ..http.process import Process
from .app import OpenStore, RunningNode, run_node
from .client_addresses import HERE, ClientAddresses, with_internal_listener
from .node import Node

SITE = "minicontroller.controller.http.node_site"
"""The module that makes the site, which is loaded when somebody looks at it."""
log = logging.getLogger("minicontroller")

ZOOKEEPER = "zookeeper://"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

MEMORY_OF_RECORDS = "records.memory.max.bytes"
DECIDED_BY_UP = {
    **dict.fromkeys(("broker.id", "node.id"), "the nodes of `up` are numbered from 1"),
    "zookeeper.connect": "use --store zookeeper://host:port/chroot",
}
"""Keys that must differ between the nodes of one process, or that have options of their own."""


async def run_cluster(
    brokers: int,
    port: int,
    store: str,
    settings: Sequence[str],
    clients: ClientAddresses = HERE,
    *,
    data: ProcessData = WITHOUT_RECORDS,
) -> None:
    """Run nodes 1 to `brokers` in this process. Node i listens on port + i - 1, or on any free port
    if `port` is 0. `data` keeps what the nodes have of records, groups and transactions.
    """
    settings = with_internal_listener(settings, brokers)
    open_store, secret = _store_opener(store), secrets.token_urlsafe(24)
    keys = [setting.partition("=")[0].strip() for setting in settings]
    for key in keys:
        if key in DECIDED_BY_UP:
            raise ConfigurationError(f"--set {key}: {DECIDED_BY_UP[key]}.")
    if MEMORY_OF_RECORDS in keys and data is WITHOUT_RECORDS:
        raise ConfigurationError(f"--set {MEMORY_OF_RECORDS}: without --records the nodes keep none.")
    configs = [
        load_config(
            _as_properties(node_settings(number, brokers, store, secret, clients.settings(number, port))),
            "up",
            settings,
            check=mistakes_of if number == 1 else None,  # the others have the same ones
        )
        for number in range(1, brokers + 1)
    ]
    for warning in configs[0].warnings:
        log.warning("%s", warning)
    try:
        await _run_until_signal(configs, open_store, data)
    except* PortTakenError as taken:
        if "listeners" in keys:
            raise
        raise PortTakenError(f"{first_of(taken)} Name another one by --port, or take free ones by --port 0.") from None


async def run_one(text: str, file: str, settings: Sequence[str]) -> None:
    """Run one node from the text of a properties file. Raises ConfigurationError."""
    config = load_config(text, file, settings, os.environ, _mistakes_of_one)
    for warning in (*warnings_of_configuration(text, file), *config.warnings):
        log.warning("%s", warning)
    await _run_until_signal([config], open_zookeeper)


def _mistakes_of_one(config: NodeConfig) -> Iterator[str]:
    if not config.string("zookeeper.connect"):
        yield "zookeeper.connect is missing: it names the servers of ZooKeeper, as host:port/chroot."
    if config.integer("broker.id") < 0:
        yield "broker.id is missing: give each node its own, since nodes do not generate ids."
    if config.optional_integer(MEMORY_OF_RECORDS) is not None:
        yield f"{MEMORY_OF_RECORDS}: a node of `serve` keeps no records; `minicontroller up --records` does."
    yield from mistakes_of(config)


def node_settings(number: int, brokers: int, store: str, secret: str, listeners: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that `up` makes for a node, which --set can override. `secret` is the
    password with which the nodes authenticate to each other, and `listeners` has their addresses.
    """
    replicas = str(min(3, brokers))
    jaas = f'{PLAIN_LOGIN} required username="node" password="{secret}" user_node="{secret}";'
    return {
        "broker.id": str(number),
        **listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.internal.plain.sasl.jaas.config": jaas,
        "http.listen": "127.0.0.1:0",
        "metadata.completion": "cluster",  # a test may read from any node what another one has just created
        "zookeeper.connect": store.removeprefix(ZOOKEEPER) if store.startswith(ZOOKEEPER) else "memory",
        "group.initial.rebalance.delay.ms": "0",  # as in the server.properties that come with Kafka
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, brokers)),
    }


# ------------------------------------------------------------------ stores


def _store_opener(store: str) -> OpenStore:
    if store == "memory":
        tree = MemoryTree()
        return lambda _config: MemoryStore(tree)
    if store.startswith(ZOOKEEPER) and len(store) > len(ZOOKEEPER):
        return open_zookeeper
    raise ConfigurationError(f"--store {store} is neither memory nor zookeeper://host:port/chroot.")


@contextlib.asynccontextmanager
async def open_zookeeper(config: NodeConfig) -> AsyncIterator[Store]:
    """Open a ZooKeeper session, which a watchdog closes if this process's event loop hangs."""
    identity = zookeeper_access(config)
    try:
        store = ZooKeeperStore(
            config.string("zookeeper.connect"),
            session_timeout_ms=config.integer("zookeeper.session.timeout.ms"),
            access=identity.access,
            tls=identity.tls,
            login=identity.login,
        )
    except ValueError as error:
        raise ConfigurationError(f"zookeeper.connect: {error}.") from error
    try:
        await _connect(store)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_watchdog, store, config.integer("controller.watchdog.timeout.ms"))
            yield store
            nursery.cancel_scope.cancel()
    finally:
        await store.close()


async def _connect(store: ZooKeeperStore) -> None:
    """Wait for ZooKeeper. Raises ConfigurationError if it refuses this node."""
    try:
        await store.connect()
    except AccessDenied as error:
        raise ConfigurationError(f"zookeeper.connect: {error}.") from error


# ------------------------------------------------------------------ running


async def _run_until_signal(
    configs: Sequence[NodeConfig], open_store: OpenStore, data: ProcessData = WITHOUT_RECORDS
) -> None:
    """Run the nodes of one process until a signal. They share the log and the HTTP port, which the
    configuration of the first node decides.
    """
    use_format(configs[0].string("log.format"))
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            process, nodes = Process(len(configs)), list[RunningNode]()
            local_nodes: dict[int, Node] = {}
            room = room_for_connections(raise_limit(), len(configs))
            http = await open_site(SITE, process, configs[0], nursery)  # before the nodes: readiness can be asked
            nursery.start_soon(data.run)
            nursery.start_soon(_stop_on_signal, signals, nodes, len(configs), nursery)
            async with trio.open_nursery() as running:
                for config in configs:
                    start = partial(
                        run_node,
                        config,
                        open_store,
                        local_nodes=local_nodes,
                        decisions=process.decisions,
                        room=room,
                        keep_data=data.keep,
                    )
                    node: RunningNode = await running.start(start)
                    nodes.append(node)
                    process.add(node)
                nursery.start_soon(_announce, nodes, http)
            nursery.cancel_scope.cancel()


async def _announce(nodes: Sequence[RunningNode], http: HttpListener | None) -> None:
    ids = frozenset(node.node.broker_id for node in nodes)
    for node in nodes:
        await node.wait_ready(ids)
    page = "" if http is None else f" http={http.address}"
    say(f"ready: bootstrap.servers={','.join(node.bootstrap for node in nodes)}{page}")


async def _stop_on_signal(
    signals: AsyncIterator[int], nodes: Sequence[RunningNode], expected: int, nursery: trio.Nursery
) -> None:
    """Stop the nodes in order at the first signal. Stop immediately at the second signal, or if
    fewer than `expected` nodes have started.
    """
    stopping = False
    async for number in signals:
        if stopping or len(nodes) < expected:
            nursery.cancel_scope.cancel()
            return
        stopping = True
        log.info("%s: stopping; signal again to exit immediately", signal.Signals(number).name)
        for node in nodes:
            node.stop(hand_over=len(nodes) == 1)  # with several nodes the whole cluster ends


def _as_properties(settings: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={value}" for key, value in settings.items())
