"""The page, the metrics and the health of a gateway.

Rule: nothing imports this module by an import statement (`network/http/listener.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import trio
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..admin.recording.decisions import RecentDecisions
from ..admin.recording.log import AuditLog
from ..cluster.image import Image
from ..network.http.families import FAMILIES, Declared, Families, add_audit, add_decisions, add_policy, add_server
from ..network.http.listener import HttpListener, Serve
from ..network.http.serving import Site
from ..network.http.shown import Health
from ..network.http.topic_statistics import TopicStatistics, TopicTotals
from ..network.http.views import MAX_NODES, NodeRow, PageState, audit_trouble, rule_rows
from ..process.observe.secrets import redact_configs
from ..protocol.registry import KAFKA
from ..version import __version__
from .app import Gateway

NO_IMAGE = Image()
NO_DECISIONS = RecentDecisions()
SHARED_FAMILIES = (
    "info",
    "ready",
    "decisions",
    "connections",
    "certificate_seconds",
    "requests_waiting",
    "request_bytes",
    "connections_without_room",
    "connections_closed_for_memory",
    "protocol_errors",
    "failed_handshakes",
    "brokers",
    "topics",
    "partitions",
    "leaderless_partitions",
    "policy_verdicts",
    "policy_findings",
    "would_be_refused",
    "policy_seconds",
    "policy_restarts",
    "rules",
    "rule_loads",
    "rule_files_valid",
    "rule_files_loaded_timestamp_seconds",
    "audit_events",
    "audit_dropped_events",
    "audit_syncs",
    "audit_waiting_events",
    "audit_lag_seconds",
    "audit_failed_writes",
    "audit_refused_requests",
    "http_connections",
    "http_event_listeners",
    "http_evicted_connections",
)
"""The metrics of nodes that a gateway has, too; the label `node` is its `gateway.id`."""
GATEWAY_FAMILIES: Declared = {
    **{name: FAMILIES[name] for name in SHARED_FAMILIES},
    "gateway_requests": (CounterMetricFamily, "Requests that clients sent to the gateway.", ("node", "api")),
    "gateway_enforces": (
        GaugeMetricFamily,
        "1 if the gateway refuses what the policy refuses; 0 if it only observes, or has no policy.",
        ("node",),
    ),
    "gateway_unjudged_requests": (
        CounterMetricFamily,
        "Requests for changes that could not be judged; on.failure decides whether they pass.",
        ("node",),
    ),
    "gateway_cluster_readable": (
        GaugeMetricFamily,
        "1 if the last reading of the whole cluster succeeded.",
        ("node",),
    ),
    "gateway_cluster_age_seconds": (
        GaugeMetricFamily,
        "The age of the last reading of the whole cluster (metadata.max.age.ms).",
        ("node",),
    ),
}
"""All metrics of a gateway beside those of Python's ProcessCollector."""


def site(gateway: Gateway, listener: HttpListener) -> Serve:
    return Site(ShownGateway(gateway), listener).serve


class ShownGateway:
    """A gateway as the site shows it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.generation = 0
        self._is_followed = False
        self._watchers = trio.lowlevel.ParkingLot()

    @property
    def decisions(self) -> RecentDecisions:
        judging = self.gateway.judging
        return NO_DECISIONS if judging is None else judging.decisions

    @property
    def image(self) -> Image:
        judging = self.gateway.judging
        return NO_IMAGE if judging is None else judging.mirror.image

    @property
    def audit_logs(self) -> Sequence[AuditLog]:
        judging = self.gateway.judging
        return [] if judging is None or judging.audit is None else [judging.audit]

    @property
    def log_id(self) -> str:
        judging = self.gateway.judging
        return "" if judging is None else judging.log_id

    def watch(self) -> None:
        """Follow changes from now on, or as soon as the gateway serves."""
        judging = self.gateway.judging
        if judging is not None and not self._is_followed:
            self._is_followed = True
            judging.decisions.on_change(self._changed)
            judging.mirror.on_change(self._changed)

    def _changed(self) -> None:
        self.generation += 1
        if self._watchers:
            self._watchers.unpark_all()

    async def wait_for_change(self, seen: int) -> None:
        """Wait until the generation is no longer `seen`."""
        while self.generation == seen:
            await self._watchers.park()

    def health(self) -> Health:
        """Return whether the gateway serves. Records flow while changes are refused, so that this
        is a reason to look and none to send clients elsewhere.
        """
        gateway = self.gateway
        is_ready = gateway.is_serving and not gateway.is_stopping
        return Health(is_ready, list(self._reasons()), [])

    def _reasons(self) -> Iterator[str]:
        gateway, judging = self.gateway, self.gateway.judging
        if not gateway.is_serving:
            yield "no broker of the cluster has answered yet"
        if gateway.is_stopping:
            yield "it is stopping"
        if gateway.cluster.failure is not None:
            yield f"the cluster does not answer: {gateway.cluster.failure}"
        if judging is not None and judging.mirror.failure is not None:
            yield f"the gateway cannot read the cluster: {judging.mirror.failure}"
        if judging is not None and judging.audit is not None and judging.audit.refusal is not None:
            yield judging.audit.refusal

    async def state(self, statistics: TopicStatistics) -> PageState:
        """Return the state of the cluster, for the head of the page."""
        self.watch()
        health, image, judging = self.health(), self.image, self.gateway.judging
        figures = await statistics.figures(image)
        connections = self._connections()
        rows = [
            NodeRow(
                number,
                address=str(self.gateway.cluster.advertised(number) or ""),
                rack=broker.rack or "",
                connections=connections.get(f"broker-{number}"),
                controller=number == image.controller_id,
            )
            for number, broker in sorted(image.brokers.items())[:MAX_NODES]
        ]
        return PageState(
            version=__version__,
            cluster="" if judging is None else judging.mirror.cluster_id,
            controller=image.controller_id,
            epoch=0 if judging is None else judging.epoch,
            controller_here=True,
            ready=health.ready,
            reasons=health.reasons,
            nodes=rows,
            topics=figures.topics,
            partitions=figures.partitions,
            leaderless=figures.leaderless,
            waiting=0,
            decisions=self.decisions.count,
            recorded=bool(self.audit_logs),
            audit=[trouble for log in self.audit_logs if (trouble := audit_trouble(log))],
            gateway=list(self._said()),
            rules=[] if judging is None else rule_rows([judging.policy]),
        )

    def _said(self) -> Iterable[str]:
        """Yield sentences about how the gateway judges."""
        judging = self.gateway.judging
        if judging is None:
            yield "This is a gateway that passes everything and judges nothing."
            return
        if judging.policy is None:
            yield "This is a gateway without a policy: it records changes."
        elif judging.judge.enforces:
            yield "This is a gateway that enforces its policy."
        else:
            yield "This is a gateway that observes: it refuses nothing."
        age = judging.mirror.age_seconds
        if age is not None:
            yield f"The gateway read the whole cluster {age:.0f} seconds ago."
        if judging.mirror.failure is not None:
            yield f"The gateway cannot read the cluster now: {judging.mirror.failure}."
        if judging.judge.failures:
            yield f"Requests for changes that could not be judged: {judging.judge.failures}."

    def _connections(self) -> Mapping[str, int]:
        counts = dict.fromkeys(self.gateway.server.ports, 0)
        for connection in self.gateway.server.connections:
            counts[connection.caller.listener.name] += 1
        return counts

    async def configs(self, topic: str) -> Mapping[str, str] | None:
        """Return the topic's own configs with secrets hidden; None if the topic is unknown."""
        await trio.lowlevel.checkpoint()
        found = self.image.topic(topic)
        return None if found is None else redact_configs(found.configs)

    def metrics(self, listener: HttpListener, statistics: TopicStatistics) -> "GatewayMetrics":
        return GatewayMetrics(self, listener, statistics)


class GatewayMetrics(Collector):
    """The Prometheus metrics of a gateway, in a registry of its own."""

    def __init__(self, shown: ShownGateway, listener: HttpListener, statistics: TopicStatistics) -> None:
        self._shown = shown
        self._listener = listener
        self._statistics = statistics
        self._figures = TopicTotals()
        self._event_listeners = 0
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    async def text(self, *, event_listeners: int) -> bytes:
        self._figures = await self._statistics.figures(self._shown.image)
        self._event_listeners = event_listeners
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        families, gateway = Families(GATEWAY_FAMILIES), self._shown.gateway
        node = str(gateway.config.node.integer("broker.id"))
        families.add("info", [__version__], 1)
        families.add("ready", [node], self._shown.health().ready)
        families.add("http_connections", [], len(self._listener.connections))
        families.add("http_event_listeners", [], self._event_listeners)
        families.add("http_evicted_connections", [], self._listener.evicted)
        for api_key, count in sorted(gateway.requests.items()):
            families.add("gateway_requests", [node, KAFKA.name(api_key)], count)
        add_server(families, node, gateway.server)
        self._add_image(families, node)
        self._add_judging(families, node)
        return families.made()

    def _add_image(self, families: Families, node: str) -> None:
        families.add("brokers", [node], len(self._shown.image.brokers))
        families.add("topics", [node], self._figures.topics)
        families.add("partitions", [node], self._figures.partitions)
        families.add("leaderless_partitions", [node], self._figures.leaderless)

    def _add_judging(self, families: Families, node: str) -> None:
        judging = self._shown.gateway.judging
        families.add("gateway_enforces", [node], judging is not None and judging.judge.enforces)
        if judging is None:
            return
        add_decisions(families, node, judging.counts)
        families.add("gateway_unjudged_requests", [node], judging.judge.failures)
        families.add("gateway_cluster_readable", [node], judging.mirror.failure is None)
        families.add("gateway_cluster_age_seconds", [node], judging.mirror.age_seconds or 0.0)
        add_policy(families, node, judging.policy, judging.rules, judging.would_be_refused)
        add_audit(families, node, judging.audit)
