"""One broker-shaped node: what a handler may reach.

Rule: a node is a bag of parts, each of which knows its own business; nothing here decides anything.
"""

from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from ..audit.decisions import NodeDecisions, RecentDecisions
from ..broker.auto_creation import AutoCreation
from ..broker.topic_overrides import TopicOverrides
from ..config.node_config import NodeConfig
from ..metadata.cache import MetadataCache
from ..metadata.fragments import MetadataFragments
from ..observe.metrics import NodeMetrics
from ..policy.cluster_view import TopicStates
from ..store.base import SessionState, Store
from ..store.sessions import Absence

if TYPE_CHECKING:
    from ..active.active_controller import ActiveController
    from ..audit.log import AuditLog
    from ..broker.dynamic_configs import DynamicConfigs
    from ..policy.rule_files import RuleFiles
    from ..policy.runner import PolicyRunner


@dataclass(kw_only=True)
class Node:
    config: NodeConfig
    broker_id: int
    cluster_id: str
    store: Store
    dynamic_configs: "DynamicConfigs"
    """What `/config/brokers` says of this node and of all nodes, kept up to date."""
    cache: MetadataCache = field(default_factory=MetadataCache)
    metadata_fragments: MetadataFragments = field(default_factory=MetadataFragments)
    auto_creation: AutoCreation = field(default_factory=AutoCreation)
    controller: "ActiveController | None" = None
    """Set while this node is the elected controller and has loaded its state."""
    policy: "PolicyRunner | None" = None
    rule_files: "RuleFiles | None" = None
    audit: "AuditLog | None" = None
    """Where a controller on this node records what it decides."""
    local_nodes: "dict[int, Node]" = field(default_factory=dict)
    """The nodes of this process by id, this one included, while they run."""
    recent_decisions: RecentDecisions = field(default_factory=RecentDecisions)
    """The last decisions of this process, which its nodes share."""
    metrics: NodeMetrics = field(default_factory=NodeMetrics)
    broker_epoch: int = -1
    """The czxid of this node's registration, or of its last one; -1 before it has any."""
    registered_session: int = -1
    """The session of the store in which that registration was made, and with which it ends."""
    topic_states: TopicStates = field(default_factory=TopicStates)
    """What the policy has seen of the topics."""
    random: Random = field(default_factory=Random)
    """Where placements begin."""

    @cached_property
    def topic_overrides(self) -> TopicOverrides:
        """The overrides of topics as this node reads them when it is not the controller."""
        return TopicOverrides(self.store)

    @cached_property
    def request_timeout_ms(self) -> int:
        """The timeout of requests that bring none of their own."""
        return self.config.integer("request.timeout.ms")

    @cached_property
    def completion_is_cluster_wide(self) -> bool:
        """Whether a change is complete only when every live node has it (K4-6), and not this one
        alone.
        """
        return self.config.string("metadata.completion") == "cluster"

    def __post_init__(self) -> None:
        self.decisions = NodeDecisions(
            self.recent_decisions, broker_id=self.broker_id, cache=self.cache, counts=self.metrics.decisions
        )
        self.store_absence = Absence(self.store)

    @property
    def controller_here(self) -> "ActiveController | None":
        """The controller that this node follows, if it is in this process."""
        controllers = (node.controller for node in (self, *self.local_nodes.values()))
        epoch = self.cache.image.controller_epoch
        return next((each for each in controllers if each is not None and each.epoch == epoch), None)

    @property
    def is_registered(self) -> bool:
        return self.registered_session == self.store.session_id and self.store.session is not SessionState.EXPIRED

    def registered(self, broker_epoch: int) -> None:
        """Note that this node is registered in its present session."""
        self.broker_epoch, self.registered_session = broker_epoch, self.store.session_id
        for node in self.local_nodes.values():
            if node.controller is not None:  # it may have heard of the registration before this node did
                node.controller.local_node_registered()
