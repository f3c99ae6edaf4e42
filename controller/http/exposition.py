"""The Prometheus metrics of nodes at `/metrics`, collected when they are scraped."""

from collections.abc import Iterable

import trio
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ...network.http.families import Families, add_audit, add_decisions, add_policy, add_server, outcome_name
from ...network.http.listener import HttpListener
from ...network.http.topic_statistics import TopicStatistics, TopicTotals
from ...network.serving.request_metrics import NEWER_THAN_OURS
from ...protocol.acls import kafka_name
from ...store.base import SessionState
from ...version import __version__
from ..node.app import RunningNode
from .process import Process


class Exposition:
    """The Prometheus metrics of one process, in a registry of its own."""

    def __init__(self, process: Process, listener: HttpListener, statistics: TopicStatistics) -> None:
        self._process = process
        self._statistics = statistics
        self._nodes = NodesCollector(listener)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self._nodes)
        ProcessCollector(registry=self._registry)

    async def text(self, *, event_listeners: int) -> bytes:
        nodes = list(self._process.nodes)
        figures = [await self._statistics.figures(running.node.cache.image) for running in nodes]
        ready = {each.node for each in self._process.health().nodes if each.ready}
        self._nodes.prepare(nodes, figures, ready, event_listeners)
        return generate_latest(self._registry)


class NodesCollector(Collector):
    """Reads the counters of the nodes at the moment of the scrape."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._nodes: list[tuple[RunningNode, TopicTotals]] = []
        self._ready: set[int] = set()
        self._event_listeners = 0

    def prepare(
        self, nodes: list[RunningNode], figures: list[TopicTotals], ready: set[int], event_listeners: int
    ) -> None:
        """Take the totals that were counted before the scrape, which itself never waits."""
        self._nodes = list(zip(nodes, figures, strict=True))
        self._ready, self._event_listeners = ready, event_listeners

    def collect(self) -> Iterable[Metric]:
        families = Families()
        families.add("info", [__version__], 1)
        families.add("tasks", [], trio.lowlevel.current_statistics().tasks_living)
        families.add("http_connections", [], len(self._listener.connections))
        families.add("http_event_listeners", [], self._event_listeners)
        families.add("http_evicted_connections", [], self._listener.evicted)
        for running, figures in self._nodes:
            node = str(running.node.broker_id)
            families.add("ready", [node], running.node.broker_id in self._ready)
            _requests(families, node, running)
            add_server(families, node, running.server)
            families.add("unread_answer_bytes", [node], running.server.memory.of_answers)
            for limit, count in running.node.quotas.connections.throttled.items():
                families.add("throttled_connections", [node, limit], count)
            _controller(families, node, running)
            _image(families, node, running, figures)
            _store(families, node, running)
            would_be_refused = running.node.metrics.would_be_refused
            add_policy(families, node, running.node.policy, running.node.rule_files, would_be_refused)
            add_audit(families, node, running.node.metrics.audit)
        return families.made()


def _requests(families: Families, node: str, running: RunningNode) -> None:
    dispatcher, failures = running.dispatcher, running.server.failures
    name = dispatcher.routes.registry.name
    totals: dict[tuple[str, str, str], int] = {}
    for (api_key, version, code), count in dispatcher.metrics.outcomes.items():
        labels = (name(api_key), "newer" if version == NEWER_THAN_OURS else str(version), outcome_name(code))
        totals[labels] = totals.get(labels, 0) + count
    for labels, count in sorted(totals.items()):
        families.add("requests", [node, *labels], count)
    for api_key, latencies in sorted(dispatcher.metrics.latencies.items()):
        families.histogram("request_seconds", [node, name(api_key)], latencies)
    for api_key, count in dispatcher.metrics.throttled_requests.items():
        families.add("throttled_requests", [node, name(api_key)], count)
    for api_key, seconds in dispatcher.metrics.throttled_seconds.items():
        families.add("throttled_seconds", [node, name(api_key)], seconds)
    add_decisions(families, node, running.node.metrics.decisions)
    families.add("refused_forwardings", [node], dispatcher.counters.forged_forwarding)
    families.add("refused_node_requests", [node], dispatcher.counters.forged_node_requests)
    for (operation, resource_type), count in sorted(running.node.metrics.authorization.denied.items()):
        families.add("denied_actions", [node, kafka_name(operation), kafka_name(resource_type)], count)
    families.add("authorizer_faults", [node], running.node.metrics.authorization.faults)
    families.add("leftover_requests", [node], dispatcher.counters.leftover_requests)
    families.add("unexpected_errors", [node], dispatcher.counters.unexpected_errors)
    for mechanism, count in sorted(failures.failed_authentications.items()):
        families.add("failed_authentications", [node, mechanism], count)
    if running.forwarder is not None:
        for result, count in sorted(running.forwarder.outcomes.items()):
            families.add("forwarded_requests", [node, result], count)


def _controller(families: Families, node: str, running: RunningNode) -> None:
    controller, metrics, image = running.node.controller, running.node.metrics, running.node.cache.image
    families.add("is_controller", [node], controller is not None)
    families.add("controller_id", [node], image.controller_id)
    families.add("controller_epoch", [node], image.controller_epoch)
    families.add("elections_won", [node], metrics.elections_won)
    families.add("unclean_leader_elections", [node], metrics.unclean_elections)
    families.add("writer_waiting_requests", [node], 0 if controller is None else len(controller.writer.queue))
    families.add("writer_held_requests", [node], 0 if controller is None else controller.writer.queue.outside)
    families.add("writer_given_up_requests", [node], 0 if controller is None else controller.writer.queue.given_up)
    families.add("writer_commits_in_flight", [node], 0 if controller is None else controller.writer.in_flight)
    families.add("commits", [node], metrics.commits)
    families.add("committed_elements", [node], metrics.committed_elements)
    moving = 0 if controller is None else controller.reassignments.count_moving()
    families.add("reassigning_partitions", [node], moving)
    families.add("nodes_behind", [node], 0 if controller is None else controller.propagation.behind)


def _image(families: Families, node: str, running: RunningNode, figures: TopicTotals) -> None:
    families.add("brokers", [node], len(running.node.cache.image.brokers))
    for kind, count in running.node.reader.counts().items():
        families.add("entities", [node, kind], count)
    families.add("topics", [node], figures.topics)
    families.add("partitions", [node], figures.partitions)
    families.add("leaderless_partitions", [node], figures.leaderless)
    families.add("partitions_not_led_as_preferred", [node], figures.not_led_as_preferred)


def _store(families: Families, node: str, running: RunningNode) -> None:
    for state in SessionState:
        families.add("store_session", [node, state.value], running.node.store.session is state)
        families.add("store_session_changes", [node, state.value], running.node.metrics.session_changes[state.value])
