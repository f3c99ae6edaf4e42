"""The data of the page: the state of the cluster, a page of topics, and one topic.

Rule: every answer has a bounded size. Names are sent as they are; the page must never take them for
HTML.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ...admin.policy.runner import PolicyRunner
from ...admin.recording.log import AuditLog
from ...cluster.entities import Partition, Topic
from ...cluster.image import Image
from ...cluster.znodes.topics import uuid_text
from ...process.observe.metrics import FAILED
from .topic_statistics import TopicStatistics, leaderless_partitions

MAX_ROWS = 100
"""The most topics or partitions in one answer."""
MAX_NODES = 200
MAX_RULES = 200
MAX_RULE_NAME = 200


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


class RuleRow(msgspec.Struct, frozen=True):
    """A rule in force, and how often it found something since the process started, or since it is
    in force.
    """

    name: str
    action: str
    found: int
    failed: int


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
    gateway: list[str] = []
    """Sentences about how a gateway judges."""
    rules: list[RuleRow] = []
    """The rules in force, also those that never found anything."""


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


def rule_rows(policies: Iterable[PolicyRunner | None]) -> list[RuleRow]:
    """Return the rules of some policies in their order, with the findings of all together."""
    runners = [each for each in policies if each is not None and each.rules is not None]
    actions = {name: action for each in runners if each.rules for name, action in each.rules.rule_actions.items()}
    found = sum((each.metrics.findings for each in runners), Counter())
    return [
        RuleRow(name[:MAX_RULE_NAME], action.value, found[name, action.value], found[name, FAILED])
        for name, action in list(actions.items())[:MAX_RULES]
    ]


def audit_trouble(audit: AuditLog | None) -> str:
    """Return what is wrong with the audit log; empty if it refuses and has dropped nothing."""
    if audit is None:
        return ""
    if audit.refusal is not None:
        return f"{audit.refusal} Requests refused because of it: {audit.refused_requests}."
    if not audit.dropped_events:
        return ""
    now = "" if audit.failure is None else f"The audit log cannot be written ({audit.failure}). "
    return f"{now}Events dropped from the audit log: {audit.dropped_events}."


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


def topic(image: Image, name: str, offset: int, configs: Mapping[str, str] | None) -> TopicView:
    """Return a topic with a page of its partitions; `configs` are None if nobody knows them."""
    found = image.topic(name)
    if found is None:
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
        configs=configs,
    )


def _partition_row(index: int, partition: Partition) -> PartitionRow:
    return PartitionRow(index, partition.leader, partition.leader_epoch, partition.replicas, partition.isr)
