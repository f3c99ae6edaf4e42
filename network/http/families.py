"""The families of the Prometheus metrics, and those that nodes and gateways fill alike.

Rule: every family is declared once, in `FAMILIES`, and docs/operations.md lists them all. Label
values come from our own tables (APIs, error codes, node ids, states) or from the operator
(listeners, policies, rules), and never from a client.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ...admin.apis import SPECS
from ...admin.policy.rule_files import RuleFiles
from ...admin.policy.runner import PolicyRunner
from ...process.observe.metrics import BOUNDS, AuditState, LatencyHistogram
from ...protocol.error_codes import ErrorCode
from ...protocol.registry import KAFKA
from ..server import Server

PREFIX = "minicontroller_"

USUAL_CODES = (ErrorCode.NONE, ErrorCode.POLICY_VIOLATION)
"""The outcomes of decisions that are counted from 0 on, whatever was decided."""
UNJUDGED = ("", "")
"""The labels `policy` and `rule` of what nothing could judge."""

Declared = Mapping[str, tuple[type[Metric], str, tuple[str, ...]]]
"""Metric families by name, each with its kind, its text, and the names of its labels."""

FAMILIES: Declared = {
    "info": (GaugeMetricFamily, "Always 1; the version is in the label.", ("version",)),
    "tasks": (GaugeMetricFamily, "Tasks of the process: each connection has some, and each node some more.", ()),
    "ready": (
        GaugeMetricFamily,
        "1 if the node serves, is registered, knows the controller and reaches ZooKeeper.",
        ("node",),
    ),
    "requests": (
        CounterMetricFamily,
        "Requests answered, by API, version and outcome: the first error code in the answer, or NONE.",
        ("node", "api", "version", "outcome"),
    ),
    "request_seconds": (HistogramMetricFamily, "The time from a request's arrival to its answer.", ("node", "api")),
    "throttled_requests": (
        CounterMetricFamily,
        "Requests whose clients had to wait afterwards because of a quota.",
        ("node", "api"),
    ),
    "throttled_seconds": (
        CounterMetricFamily,
        "The time that clients had to wait because of a quota.",
        ("node", "api"),
    ),
    "decisions": (
        CounterMetricFamily,
        "Topics and resources that this node decided on as the controller, by API and outcome.",
        ("node", "api", "outcome"),
    ),
    "forwarded_requests": (
        CounterMetricFamily,
        "Requests sent on to the controller: answered, not_reached, too_large, in_doubt or timed_out.",
        ("node", "result"),
    ),
    "refused_forwardings": (
        CounterMetricFamily,
        "Requests that claimed to be forwarded and did not come from a node of the cluster.",
        ("node",),
    ),
    "refused_node_requests": (
        CounterMetricFamily,
        "Requests that only nodes send, from clients that had not proved to be one.",
        ("node",),
    ),
    "denied_actions": (
        CounterMetricFamily,
        "Actions on resources named by clients that the authorizer denied, by Kafka's operation and resource type.",
        ("node", "operation", "resource_type"),
    ),
    "authorizer_faults": (
        CounterMetricFamily,
        "Failures of an authorizer in Python; each denies what it was asked about.",
        ("node",),
    ),
    "leftover_requests": (
        CounterMetricFamily,
        "Requests with bytes after their end, which are ignored.",
        ("node",),
    ),
    "unexpected_errors": (CounterMetricFamily, "Requests answered with UNKNOWN_SERVER_ERROR: see the log.", ("node",)),
    "protocol_errors": (CounterMetricFamily, "Connections closed because of what was sent on them.", ("node",)),
    "failed_authentications": (
        CounterMetricFamily,
        "SASL authentications that failed; none stands for mechanisms that are not offered.",
        ("node", "mechanism"),
    ),
    "failed_handshakes": (CounterMetricFamily, "TLS handshakes that failed, by reason.", ("node", "reason")),
    "certificate_seconds": (
        GaugeMetricFamily,
        "The seconds until the certificate of a listener expires.",
        ("node", "listener"),
    ),
    "connections": (GaugeMetricFamily, "Open connections.", ("node", "listener")),
    "request_bytes": (
        GaugeMetricFamily,
        "The bytes of large requests that come in or are carried out (queued.max.request.bytes).",
        ("node",),
    ),
    "connections_without_room": (
        GaugeMetricFamily,
        "Connections that are not read until there is room for their large request (queued.max.request.bytes).",
        ("node",),
    ),
    "unread_answer_bytes": (GaugeMetricFamily, "The bytes of responses that clients have not read yet.", ("node",)),
    "throttled_connections": (
        CounterMetricFamily,
        "Connections that had to wait for the rate of a listener or the node, or were refused by that of an address.",
        ("node", "limit"),
    ),
    "connections_closed_for_memory": (
        CounterMetricFamily,
        "Connections closed because other connections needed their memory.",
        ("node",),
    ),
    "requests_waiting": (GaugeMetricFamily, "Requests that wait for something, such as the controller.", ("node",)),
    "is_controller": (GaugeMetricFamily, "1 if this node is the elected controller and serves.", ("node",)),
    "controller_id": (GaugeMetricFamily, "The id of the controller that this node knows; -1 for none.", ("node",)),
    "controller_epoch": (GaugeMetricFamily, "The epoch of the controller that this node knows.", ("node",)),
    "elections_won": (CounterMetricFamily, "Elections that this node won.", ("node",)),
    "unclean_leader_elections": (
        CounterMetricFamily,
        "Partitions that this node as the controller gave a leader that was not in sync: records may be lost.",
        ("node",),
    ),
    "writer_waiting_requests": (GaugeMetricFamily, "Changes that wait to be planned.", ("node",)),
    "writer_held_requests": (
        GaugeMetricFamily,
        "Changes that wait for room in the writer's queue (queued.max.requests): their connections are not read.",
        ("node",),
    ),
    "writer_given_up_requests": (
        CounterMetricFamily,
        "Changes dropped before they were planned because their clients no longer waited.",
        ("node",),
    ),
    "writer_commits_in_flight": (GaugeMetricFamily, "Commits that were sent and have no result yet.", ("node",)),
    "commits": (CounterMetricFamily, "Commits that took effect.", ("node",)),
    "committed_elements": (CounterMetricFamily, "Topics and resources changed by commits that took effect.", ("node",)),
    "nodes_behind": (
        GaugeMetricFamily,
        "Nodes in other processes that have not acknowledged all updates of this controller.",
        ("node",),
    ),
    "brokers": (GaugeMetricFamily, "Registered nodes in this node's image.", ("node",)),
    "entities": (
        GaugeMetricFamily,
        "ACLs, configs, tokens and groups that this node knows; unreadable ACLs and configs in ZooKeeper deny access.",
        ("node", "kind"),
    ),
    "topics": (GaugeMetricFamily, "Topics in this node's image.", ("node",)),
    "partitions": (GaugeMetricFamily, "Partitions in this node's image.", ("node",)),
    "reassigning_partitions": (
        GaugeMetricFamily,
        "Partitions whose replicas are being moved; 0 on nodes that are not the controller.",
        ("node",),
    ),
    "leaderless_partitions": (GaugeMetricFamily, "Partitions without a leader in this node's image.", ("node",)),
    "partitions_not_led_as_preferred": (
        GaugeMetricFamily,
        "Partitions in this node's image that another replica leads than their first one, or nobody.",
        ("node",),
    ),
    "store_session": (GaugeMetricFamily, "1 for the state of this node's session with the store.", ("node", "state")),
    "store_session_changes": (
        CounterMetricFamily,
        "Changes of the state of this node's session with the store, by the new state.",
        ("node", "state"),
    ),
    "policy_verdicts": (
        CounterMetricFamily,
        "Verdicts of the policy (allowed, violated or broken), by rule if the policy has rules.",
        ("node", "policy", "rule", "decision"),
    ),
    "policy_findings": (
        CounterMetricFamily,
        "Findings of rules, by action: deny, warn, audit, or failed if a rule could not be evaluated.",
        ("node", "rule", "action"),
    ),
    "would_be_refused": (
        CounterMetricFamily,
        "Changes that were carried out though a rule or a policy objects that is not enforced, or none could judge.",
        ("node", "policy", "rule"),
    ),
    "policy_seconds": (HistogramMetricFamily, "How long the policy took for one element.", ("node",)),
    "policy_restarts": (
        CounterMetricFamily,
        "Restarts of the process of a policy in Python, which took too long or ended.",
        ("node",),
    ),
    "rules": (GaugeMetricFamily, "Rules in force.", ("node",)),
    "rule_loads": (
        CounterMetricFamily,
        "Loads of rule files, including the one at the start, by result: in force, or refused for a mistake.",
        ("node", "result"),
    ),
    "rule_files_valid": (
        GaugeMetricFamily,
        "1 if the rule files are in force; 0 if they have a mistake, so that the previous rules remain in force.",
        ("node",),
    ),
    "rule_files_loaded_timestamp_seconds": (
        GaugeMetricFamily,
        "When the rule files were last read without a mistake, since 1970.",
        ("node",),
    ),
    "audit_events": (CounterMetricFamily, "Events written to the audit log.", ("node",)),
    "audit_dropped_events": (CounterMetricFamily, "Events that are missing from the audit log.", ("node",)),
    "audit_syncs": (CounterMetricFamily, "Syncs (fsync) of the audit log.", ("node",)),
    "audit_waiting_events": (GaugeMetricFamily, "Decisions that are not yet in the audit log.", ("node",)),
    "audit_lag_seconds": (
        GaugeMetricFamily,
        "The age of the oldest decision that is not yet in the audit log.",
        ("node",),
    ),
    "audit_failed_writes": (CounterMetricFamily, "Attempts to write the audit log that failed.", ("node",)),
    "audit_refused_requests": (
        CounterMetricFamily,
        "Requests refused because the audit log could not be written.",
        ("node",),
    ),
    "http_connections": (GaugeMetricFamily, "Open HTTP connections of this process.", ()),
    "http_event_listeners": (GaugeMetricFamily, "Open pages that receive events.", ()),
    "http_evicted_connections": (CounterMetricFamily, "HTTP connections closed to make room for new ones.", ()),
}
"""All metrics of this process beside those of Python's ProcessCollector. Names of counters get
`_total` at their end.
"""


class Families:
    """The metric families of one scrape, in the order of their declaration."""

    def __init__(self, declared: Declared = FAMILIES) -> None:
        self._made = {
            name: kind(PREFIX + name, text, labels=labels)  # type: ignore[call-arg] # every one of these kinds takes labels
            for name, (kind, text, labels) in declared.items()
        }

    def add(self, name: str, labels: list[str], value: float) -> None:
        family = self._made[name]
        assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)
        family.add_metric(labels, value)

    def histogram(self, name: str, labels: list[str], latencies: LatencyHistogram) -> None:
        family = self._made[name]
        assert isinstance(family, HistogramMetricFamily)
        counts = accumulate(latencies.buckets)
        bounds = [*map(str, BOUNDS), "+Inf"]
        family.add_metric(labels, buckets=list(zip(bounds, counts, strict=True)), sum_value=latencies.seconds)

    def made(self) -> Iterator[Metric]:
        return iter(self._made.values())


def outcome_name(code: int) -> str:
    """Return the label `outcome` of an error code. Unknown codes, which only a newer controller
    sends, share the label UNKNOWN.
    """
    try:
        return ErrorCode(code).name
    except ValueError:
        return "UNKNOWN"


def add_decisions(families: Families, node: str, counts: Mapping[tuple[int, int], int]) -> None:
    """Add the decisions by API and error code, from 0 on for those that alerts are about."""
    known = {
        (int(key), int(code)): 0 for key, spec in SPECS.items() if spec.changes is not None for code in USUAL_CODES
    }
    for (api_key, code), count in sorted((known | dict(counts)).items()):
        families.add("decisions", [node, KAFKA.name(api_key), outcome_name(code)], count)


def add_server(families: Families, node: str, server: Server) -> None:
    counts = dict.fromkeys(server.ports, 0)
    waiting = 0
    for connection in server.connections:
        counts[connection.caller.listener.name] += 1
        waiting += connection.running
    for listener, count in counts.items():
        families.add("connections", [node, listener], count)
    for each in server.listeners:
        if each.tls is not None:
            families.add("certificate_seconds", [node, each.name], each.tls.seconds_left())
    families.add("requests_waiting", [node], waiting)
    families.add("request_bytes", [node], server.memory.of_requests)
    families.add("connections_without_room", [node], server.memory.waiting)
    families.add("connections_closed_for_memory", [node], server.memory.closed)
    families.add("protocol_errors", [node], server.failures.protocol_errors)
    for reason, count in sorted(server.failures.failed_handshakes.items()):
        families.add("failed_handshakes", [node, reason], count)


def add_policy(
    families: Families,
    node: str,
    policy: PolicyRunner | None,
    files: RuleFiles | None,
    would_be_refused: Mapping[tuple[str, str], int],
) -> None:
    if policy is not None:
        for labels, count in sorted(policy.metrics.verdicts.items()):
            families.add("policy_verdicts", [node, *labels], count)
        for found, count in sorted(policy.metrics.findings.items()):
            families.add("policy_findings", [node, *found], count)
        for by in sorted({UNJUDGED, *((said_by, rule) for said_by, rule, _ in policy.metrics.verdicts)}):
            families.add("would_be_refused", [node, *by], would_be_refused.get(by, 0))
        families.histogram("policy_seconds", [node], policy.metrics.latencies)
        families.add("policy_restarts", [node], policy.restarts)
    if policy is not None and files is not None:
        families.add("rules", [node], 0 if policy.rules is None else len(policy.rules.rule_actions))
        families.add("rule_loads", [node, "in_force"], files.loads)
        families.add("rule_loads", [node, "refused"], files.failures)
        families.add("rule_files_valid", [node], files.mistake is None)
        families.add("rule_files_loaded_timestamp_seconds", [node], files.loaded_at)


def add_audit(families: Families, node: str, audit: AuditState | None) -> None:
    if audit is not None:
        families.add("audit_events", [node], audit.written_events)
        families.add("audit_dropped_events", [node], audit.dropped_events)
        families.add("audit_syncs", [node], audit.syncs)
        families.add("audit_waiting_events", [node], audit.waiting_events)
        families.add("audit_lag_seconds", [node], audit.lag_seconds)
        families.add("audit_failed_writes", [node], audit.failed_writes)
        families.add("audit_refused_requests", [node], audit.refused_requests)
