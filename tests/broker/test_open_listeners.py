"""Nodes whose listeners change while they run: what is asked of one of them happens there."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from minicontroller.cluster.entities import Broker
from minicontroller.controller.node import open_listeners
from minicontroller.controller.node.app import RunningNode, run_node
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.config_resources import ConfigOperation
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.store.memory import MemoryStore, MemoryTree
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.small_server import Client
from tests.support.waiting import PATIENCE_SECONDS

BROKER = 4
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"


@asynccontextmanager
async def running(tree: MemoryTree, number: int, listeners: str) -> AsyncIterator[RunningNode]:
    """A node on a store in memory, which is stopped in the end."""
    settings = {"broker.id": str(number), LISTENERS: listeners, "listener.security.protocol.map": MAP}
    config = config_from_mapping(settings | {"inter.broker.listener.name": "NODES", "connections.max.idle.ms": "-1"})
    async with trio.open_nursery() as nursery:
        node = await nursery.start(partial(run_node, config, lambda _config: MemoryStore(tree)))
        yield node
        node.stop(hand_over=False)


MAP = "NODES:PLAINTEXT,CLIENT:PLAINTEXT,EXTRA:PLAINTEXT,SAFE:SSL"


async def change(node: RunningNode, at: str, configs: Mapping[str, str | None]) -> tuple[int, str | None]:
    """Set configs of a node, or delete them (None), at one of its listeners."""
    steps = [
        IncrementalAlterableConfig(
            name=name,
            config_operation=ConfigOperation.DELETE if value is None else ConfigOperation.SET,
            value=value,
        )
        for name, value in configs.items()
    ]
    resource = IncrementalAlterConfigsResource(
        resource_type=BROKER, resource_name=str(node.node.broker_id), configs=steps
    )
    async with await connected(node.server.ports[at]) as client:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (row,) = (await client.ask(1, request, IncrementalAlterConfigsResponse)).responses
        return row.error_code, row.error_message


async def connected(port: int) -> Client:
    return Client(await trio.open_tcp_stream("127.0.0.1", port))


async def advertised(port: int) -> set[tuple[int, int]]:
    """Return the nodes and their ports as a client at this port gets them."""
    async with await connected(port) as client:
        answer = await client.ask(1, MetadataRequest(topics=[]), MetadataResponse)
        return {(broker.node_id, broker.port) for broker in answer.brokers}


def registered(node: RunningNode) -> dict[str, int]:
    """Return the ports with which all know a node, by listener."""
    broker: Broker | None = node.node.cache.image.brokers.get(node.node.broker_id)
    return {} if broker is None else {endpoint.listener: endpoint.port for endpoint in broker.endpoints}


async def until_registered(node: RunningNode, ports: Mapping[str, int]) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while registered(node) != ports:  # noqa: ASYNC110 - what comes is a change of the cluster
            await trio.sleep(0.01)


async def refused(port: int) -> bool:
    """Return whether nobody listens at a port."""
    try:
        await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
    except OSError:
        return True
    return False


async def test_listeners_come_move_and_go_and_survive_a_restart() -> None:
    """A node that is not the controller, and whose listeners the controller does not have, opens
    what it is asked to, registers it, serves there, and closes it again with its connections; the
    answer to the request that closes its own listener still comes.
    """
    tree, nodes, client, extra, moved = MemoryTree(), free_port(), free_port(), free_port(), free_port()
    static = f"NODES://127.0.0.1:{nodes},CLIENT://127.0.0.1:{client}"
    async with running(tree, 1, "NODES://127.0.0.1:0"):
        async with running(tree, 2, static) as node:
            added = f"{static},EXTRA://127.0.0.1:{extra}"
            assert await change(node, "CLIENT", {LISTENERS: added}) == (0, None)
            await until_registered(node, {"NODES": nodes, "CLIENT": client, "EXTRA": extra})
            assert (2, extra) in await advertised(extra)
            at_client = await connected(client)
            without = f"NODES://127.0.0.1:{nodes},EXTRA://127.0.0.1:{moved}"
            assert await change(node, "EXTRA", {LISTENERS: without}) == (0, None)
            await until_registered(node, {"NODES": nodes, "EXTRA": moved})
            assert await at_client.ended() and await refused(client) and await refused(extra)
            assert (2, moved) in await advertised(moved)
            await at_client.stream.aclose()
        async with running(tree, 2, static) as node:
            await until_registered(node, {"NODES": nodes, "EXTRA": moved})
            assert await refused(client)
            assert await change(node, "EXTRA", {LISTENERS: None}) == (0, None)
            await until_registered(node, {"NODES": nodes, "CLIENT": client})
            assert (2, client) in await advertised(client) and await refused(moved)


async def test_a_listener_with_tls_comes_and_goes_with_its_keys(tmp_path: Path) -> None:
    """Its key store is read when it comes, and looked for no more when it goes."""
    authority = Authority(tmp_path)
    nodes, safe = free_port(), free_port()
    static, store = f"NODES://127.0.0.1:{nodes}", "listener.name.safe.ssl.keystore."
    keys = {f"{store}type": "PEM", f"{store}location": str(authority.issue("node", "127.0.0.1"))}
    async with running(MemoryTree(), 1, static) as node:
        assert await change(node, "NODES", {LISTENERS: f"{static},SAFE://127.0.0.1:{safe}", **keys}) == (0, None)
        await until_registered(node, {"NODES": nodes, "SAFE": safe})
        context = ssl.create_default_context(cafile=str(authority.file))
        stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", safe, ssl_context=context, https_compatible=True)
        async with Client(stream) as client:
            answer = await client.ask(1, MetadataRequest(topics=[]), MetadataResponse)
            assert [broker.port for broker in answer.brokers] == [safe]
        assert await change(node, "NODES", dict.fromkeys((LISTENERS, *keys))) == (0, None)
        await until_registered(node, {"NODES": nodes})
        assert await refused(safe)


async def test_what_the_node_itself_finds_is_refused() -> None:
    """A port that is taken, stores that are not there, and a place where nodes no longer meet."""
    nodes = free_port()
    static = f"NODES://127.0.0.1:{nodes}"
    async with running(MemoryTree(), 1, static) as node:
        (taken,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = taken.socket.getsockname()[1]
        for listeners, text in (
            (f"{static},EXTRA://127.0.0.1:{port}", f"Listener EXTRA cannot listen on 127.0.0.1, port {port}: "),
            (f"{static},SAFE://127.0.0.1:0", "Listener SAFE: ssl.keystore.location "),
            (f"NODES://127.0.0.1:{port}", "listeners: nodes meet at NODES, "),
        ):
            code, message = await change(node, "NODES", {LISTENERS: listeners})
            assert (code, (message or "").startswith(text)) == (42, True), message
        assert set(node.server.ports) == {"NODES"}
        await taken.aclose()
        extra = free_port()
        assert await change(node, "NODES", {LISTENERS: f"{static},EXTRA://127.0.0.1:{extra}"}) == (0, None)
        elsewhere = f"{static},EXTRA://192.0.2.1:{extra}"  # an address of no machine, at a port that it holds itself
        code, message = await change(node, "NODES", {LISTENERS: elsewhere})
        assert (code, (message or "").startswith("Listener EXTRA cannot listen on 192.0.2.1: ")) == (42, True), message


async def test_a_stored_listener_that_cannot_be_opened_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not registered meanwhile, the log says why, once, and the others serve."""
    monkeypatch.setattr(open_listeners, "RETRY_SECONDS", 0.05)
    tree, nodes, extra = MemoryTree(), free_port(), free_port()
    static = f"NODES://127.0.0.1:{nodes}"
    async with running(tree, 1, static) as node:
        assert await change(node, "NODES", {LISTENERS: f"{static},EXTRA://127.0.0.1:{extra}"}) == (0, None)
        await until_registered(node, {"NODES": nodes, "EXTRA": extra})
    (taken,) = await trio.open_tcp_listeners(extra, host="127.0.0.1")
    async with running(tree, 1, static) as node:
        await until_registered(node, {"NODES": nodes})
        await taken.aclose()
        await until_registered(node, {"NODES": nodes, "EXTRA": extra})
        assert (1, extra) in await advertised(extra)
    assert caplog.text.count("listener EXTRA is neither open nor registered: Listener EXTRA cannot listen") == 1
