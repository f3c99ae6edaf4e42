"""The data of the page: the state of the cluster, a page of topics, and one topic.

Rule: every answer has a bounded size. Names are sent as they are; the page must never take them for
HTML.
"""

from collections.abc import Mapping

import msgspec

from ... import __version__
from ..active.loading import entity_configs
from ..audit.log import AuditLog
from ..handlers.node import Node
from ..metadata.entities import Broker, Partition, Topic
from ..metadata.image import Image
from ..observe.secrets import redact_configs
from ..store.base import SessionExpired, StoreUnavailable
from ..znodes import layout
from ..znodes.topics import uuid_text
from .process import Process, ServingNode
from .topic_statistics import TopicStatistics, leaderless_partitions

MAX_ROWS = 100
"""The most topics or partitions in one answer."""
MAX_NODES = 200


class NodeRow(msgspec.Struct, frozen=True, omit_defaults=True):
    id: int
    address: str = ""
    rack: str = ""
    here: bool = False
    """Whether the node runs in the process that answers."""
    ready: bool | None = None
    """None for a node of another process, which has to be asked itself."""
    reasons: list[str] = []
    controller: bool = False
    connections: int | None = None
    session: str = ""
    shutting_down: bool = False


class PageState(msgspec.Struct, frozen=True):
    version: str
    cluster: str
    controller: int
    epoch: int
    controller_here: bool
    """Whether the controller runs in this process, which only then knows its decisions."""
    ready: bool
    reasons: list[str]
    nodes: list[NodeRow]
    topics: int
    partitions: int
    leaderless: int
    waiting: int
    """Changes that wait to be planned by the writer."""
    decisions: int
    """How many decisions were made in this process."""
    recorded: bool
    """Whether there is an audit log, which has the earlier decisions."""
    audit: list[str]
    """Sentences about audit logs that refuse requests or have dropped events."""


class TopicRow(msgspec.Struct, frozen=True):
    name: str
    partitions: int
    replication_factor: int
    leaderless: int
    internal: bool


class TopicPage(msgspec.Struct, frozen=True):
    total: int
    """How many topics match."""
    offset: int
    rows: list[TopicRow]
    current: bool = True
    """Whether the page is of the newest image; if not, ask again in a moment."""


class PartitionRow(msgspec.Struct, frozen=True):
    index: int
    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicView(msgspec.Struct, frozen=True):
    name: str
    there: bool = False
    """Whether the topic exists now."""
    id: str = ""
    partitions: int = 0
    replication_factor: int = 0
    offset: int = 0
    rows: list[PartitionRow] = []
    configs: Mapping[str, str] | None = None
    """The overrides of the topic, redacted; None if they cannot be read now."""


async def state(process: Process, statistics: TopicStatistics) -> PageState:
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
            if (trouble := _audit_trouble(running.node.audit))
        ],
    )


def _audit_trouble(audit: AuditLog | None) -> str:
    """Return what is wrong with the audit log; empty if it refuses and has dropped nothing."""
    if audit is None:
        return ""
    if audit.refusal is not None:
        return f"{audit.refusal} Requests refused because of it: {audit.refused_requests}."
    if not audit.dropped_events:
        return ""
    now = "" if audit.failure is None else f"The audit log cannot be written ({audit.failure}). "
    return f"{now}Events dropped from the audit log: {audit.dropped_events}."


def _node_row(number: int, broker: Broker | None, running: ServingNode | None) -> NodeRow:
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


def topics(image: Image, statistics: TopicStatistics, search: str, offset: int, limit: int = MAX_ROWS) -> TopicPage:
    """Return a page of the topics whose names contain the text in any case."""
    wanted = search.lower()
    names, current = statistics.names(image)
    found = [name for name in names if wanted in name.lower()] if wanted else names
    limit = max(1, min(limit, MAX_ROWS))
    offset = max(0, min(offset, (len(found) - 1) // limit * limit))
    rows = [_topic_row(topic) for name in found[offset : offset + limit] if (topic := image.topics.get(name))]
    return TopicPage(len(found), offset, rows, current)


def _topic_row(topic: Topic) -> TopicRow:
    return TopicRow(
        topic.name, len(topic.partitions), topic.replication_factor, leaderless_partitions(topic), topic.is_internal
    )


async def topic(process: Process, name: str, offset: int) -> TopicView:
    representative = process.representative()
    node = None if representative is None else representative.node
    found = None if node is None else node.cache.image.topic(name)
    if node is None or found is None:
        return TopicView(name)
    offset = max(0, min(offset, len(found.partitions) - 1))
    shown = enumerate(found.partitions[offset : offset + MAX_ROWS], start=offset)
    return TopicView(
        name=found.name,
        there=True,
        id=uuid_text(found.topic_id),
        partitions=len(found.partitions),
        replication_factor=found.replication_factor,
        offset=offset,
        rows=[_partition_row(index, partition) for index, partition in shown],
        configs=await _configs(node, name),
    )


def _partition_row(index: int, partition: Partition) -> PartitionRow:
    return PartitionRow(index, partition.leader, partition.leader_epoch, partition.replicas, partition.isr)


async def _configs(node: Node, name: str) -> Mapping[str, str] | None:
    """Return the configs of a topic, redacted: from the image of the controller, or from the
    store.
    """
    if node.controller is not None:
        topic = node.controller.image.topic(name)
        return None if topic is None else redact_configs(topic.configs)
    try:
        entry = await node.store.get(layout.topic_config_path(name))
    except (StoreUnavailable, SessionExpired):
        return None
    return redact_configs(entity_configs(f"topic {name}", entry).configs)
