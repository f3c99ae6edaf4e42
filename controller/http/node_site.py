"""The site of a process of nodes.

Rule: nothing imports this module by an import statement (`network/http/listener.py`).
"""

from collections.abc import Mapping, Sequence

import msgspec

from ...admin.recording.decisions import RecentDecisions
from ...admin.recording.log import AuditLog
from ...cluster.entities import Broker
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...network.http.listener import HttpListener, Serve
from ...network.http.serving import Site
from ...network.http.shown import Health
from ...network.http.topic_statistics import TopicStatistics
from ...network.http.views import MAX_NODES, NodeRow, PageState, audit_trouble, rule_rows
from ...process.observe.secrets import redact_configs
from ...store.base import SessionExpired, StoreUnavailable
from ...version import __version__
from ..active.loading import entity_configs
from ..node.app import RunningNode
from .exposition import Exposition
from .process import Process

NO_IMAGE = Image()


def site(process: Process, listener: HttpListener) -> Serve:
    return Site(ShownNodes(process), listener).serve


class ShownNodes:
    """The nodes of a process as the site shows them."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def decisions(self) -> RecentDecisions:
        return self._process.decisions

    @property
    def generation(self) -> int:
        return self._process.generation

    @property
    def image(self) -> Image:
        representative = self._process.representative()
        return NO_IMAGE if representative is None else representative.node.cache.image

    @property
    def audit_logs(self) -> Sequence[AuditLog]:
        return [each.node.audit for each in self._process.nodes if each.node.audit is not None]

    @property
    def log_id(self) -> str:
        return self._process.nodes[0].node.cluster_id if self._process.nodes else ""

    def watch(self) -> None:
        self._process.watch()

    async def wait_for_change(self, seen: int) -> None:
        """Wait until the generation is no longer `seen`."""
        await self._process.wait_for_change(seen)

    def health(self) -> Health:
        return self._process.health()

    async def state(self, statistics: TopicStatistics) -> PageState:
        """Return the state of the cluster, for the head of the page."""
        process = self._process
        health, representative = process.health(), process.representative()
        node = None if representative is None else representative.node
        image = Image() if node is None else node.cache.image
        figures = await statistics.figures(image)
        ready = {each.node: each for each in health.nodes}
        here = {running.node.broker_id: running for running in process.nodes}
        ids = sorted({*image.brokers, *here})[:MAX_NODES]
        rows = [
            msgspec.structs.replace(
                _node_row(number, image.brokers.get(number), here.get(number)),
                ready=ready[number].ready if number in ready else None,
                reasons=ready[number].reasons if number in ready else [],
                controller=number == image.controller_id,
            )
            for number in ids
        ]
        return PageState(
            version=__version__,
            cluster="" if node is None else node.cluster_id,
            controller=image.controller_id,
            epoch=image.controller_epoch,
            controller_here=node is not None and node.controller is not None,
            ready=health.ready,
            reasons=health.reasons,
            nodes=rows,
            topics=figures.topics,
            partitions=figures.partitions,
            leaderless=figures.leaderless,
            waiting=0 if node is None or node.controller is None else len(node.controller.writer.queue),
            decisions=process.decisions.count,
            recorded=any(running.node.audit is not None for running in process.nodes),
            audit=[
                f"Node {running.node.broker_id}: {trouble}"
                for running in process.nodes
                if (trouble := audit_trouble(running.node.audit))
            ],
            rules=rule_rows(running.node.policy for running in process.nodes),
        )

    async def configs(self, topic: str) -> Mapping[str, str] | None:
        """Return the configs of a topic, redacted: from the image of the controller, or from the
        store; None if they cannot be read now.
        """
        representative = self._process.representative()
        if representative is None:
            return None
        node = representative.node
        if node.controller is not None:
            found = node.controller.image.topic(topic)
            return None if found is None else redact_configs(found.configs)
        try:
            entry = await node.store.get(layout.topic_config_path(topic))
        except (StoreUnavailable, SessionExpired):
            return None
        return redact_configs(entity_configs(f"topic {topic}", entry).configs)

    def metrics(self, listener: HttpListener, statistics: TopicStatistics) -> Exposition:
        return Exposition(self._process, listener, statistics)


def _node_row(number: int, broker: Broker | None, running: RunningNode | None) -> NodeRow:
    if running is not None:
        return NodeRow(
            number,
            address=running.bootstrap,
            rack=(broker.rack or "") if broker is not None else "",
            here=True,
            connections=len(running.server.connections),
            session=running.node.store.session.value,
            shutting_down=broker is not None and broker.shutting_down,
        )
    assert broker is not None
    endpoint = broker.endpoints[0] if broker.endpoints else None
    address = "" if endpoint is None else f"{endpoint.host}:{endpoint.port}"
    return NodeRow(number, address=address, rack=broker.rack or "", shutting_down=broker.shutting_down)
