"""A node as its handlers see it: the parts that they read, and those that carry out changes.

Rule: a node holds its parts and connects them; each decision is made in one of the parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from ...admin.policy.cluster_view import TopicStates
from ...admin.policy.rule_files import RuleFiles
from ...admin.policy.runner import PolicyRunner
from ...admin.recording.decisions import NodeDecisions, RecentDecisions
from ...admin.recording.log import AuditLog
from ...cluster.cache import MetadataCache
from ...network.serving.fragments import MetadataFragments
from ...network.serving.kept_rows import Fragments, Joined, KeptRows, LatestAnswers
from ...process.observe.metrics import NodeMetrics
from ...process.settings.node_config import NodeConfig
from ...security.authorizer import Authorization
from ...security.caller import TlsOfListener
from ...security.delegation_tokens import token_key
from ...store.base import SessionState, Store
from ...store.sessions import Absence
from ..active.active_controller import ActiveController
from ..broker.auto_creation import AutoCreation
from ..broker.delegation_tokens import DelegationTokens
from ..broker.dynamic_configs import DynamicConfigs
from ..broker.image_reader import ImageReader
from ..broker.log_dirs import LogDirs
from ..broker.node_quotas import NodeQuotas
from ..broker.node_security import NodeSecurity
from ..broker.producer_ids import ProducerIds
from ..broker.topic_overrides import TopicOverrides


@dataclass(kw_only=True)
class Node:
    """One node of the cluster: a broker that can be elected as the active controller."""

    config: NodeConfig
    """The static configuration."""
    broker_id: int
    """Kafka's `broker.id`."""
    cluster_id: str
    """The id in `/cluster/id`, which clients see in Metadata."""
    store: Store
    """The node's connection to the store, with a session of its own."""
    dynamic_configs: DynamicConfigs
    """The broker configs that `/config/brokers` overrides, for this node and for the cluster."""

    tls: Sequence[TlsOfListener] = ()
    """The TLS of this node's listeners that have it."""
    security: NodeSecurity = field(init=False)
    """The index of ACLs and the SCRAM credentials."""
    reader: ImageReader = field(init=False)
    """Reads configs, ACLs, tokens and groups into the image."""
    delegation_tokens: DelegationTokens = field(init=False)
    """The delegation tokens by their HMACs, and as credentials of clients."""

    # The parts that every node answers from
    cache: MetadataCache = field(default_factory=MetadataCache)
    """The node's view of the cluster, updated by the active controller."""
    metadata_fragments: MetadataFragments = field(default_factory=MetadataFragments)
    """Encoded topics that Metadata responses are made of."""
    described_replicas: Fragments = field(default_factory=Fragments)
    """Encoded topics with this node's replicas, by version, directory and name."""
    described_log_dirs: KeptRows[Joined] = field(default_factory=KeptRows)
    """Encoded directories with all replicas of this node."""
    listed_offsets: LatestAnswers = field(default_factory=LatestAnswers)
    """Encoded topics for ListOffsets, by version and name."""
    described_patterns: Fragments = field(default_factory=Fragments)
    """Encoded ACLs of single resource patterns, by version and pattern."""
    described_acls: KeptRows[Joined] = field(default_factory=KeptRows)
    """Encoded ACLs by resource pattern."""
    log_dirs: LogDirs = field(init=False)
    """The directories of this node, in which its replicas would lie."""
    producer_ids: ProducerIds = field(default_factory=ProducerIds)
    """The ids that this node has for producers."""
    auto_creation: AutoCreation = field(default_factory=AutoCreation)
    """Automatic creations of topics that are under way at this node."""
    recent_decisions: RecentDecisions = field(default_factory=RecentDecisions)
    """The most recent decisions of all nodes in this process."""
    metrics: NodeMetrics = field(default_factory=NodeMetrics)
    """The node's counters for `/metrics`."""

    # The registration in `/brokers/ids`
    broker_epoch: int = -1
    """The broker epoch (czxid) of the newest registration; -1 before the first one."""
    registered_session: int = -1
    """The store's session to which that registration belongs; -1 before the first one."""

    authorization: Authorization | None = None
    """Decides what clients may do; None if everybody may do everything."""

    # The active controller, and the parts that it decides with
    controller: ActiveController | None = None
    """The active controller, if it runs on this node and has loaded its state."""
    local_nodes: "dict[int, Node]" = field(default_factory=dict)
    """The running nodes of this process by broker id, this one included."""
    policy: PolicyRunner | None = None
    """The configured policy (`topic.management.policy.class.name`) with the rules, if there is one.
    """
    rule_files: RuleFiles | None = None
    """The rule files that the policy follows, if any are configured."""
    topic_states: TopicStates = field(default_factory=TopicStates)
    """The topics in the form that the policy sees, kept between requests."""
    audit: AuditLog | None = None
    """The audit log that an active controller on this node writes; None if it is off."""
    random: Random = field(default_factory=Random)
    """The source of randomness for the placement of replicas."""

    @cached_property
    def topic_overrides(self) -> TopicOverrides:
        """The configs of topics, read from the store by nodes other than the controller."""
        return TopicOverrides(self.store)

    @cached_property
    def request_timeout_ms(self) -> int:
        """The timeout in milliseconds for requests that carry none (`request.timeout.ms`)."""
        return self.config.integer("request.timeout.ms")

    @cached_property
    def completion_is_cluster_wide(self) -> bool:
        """Whether a change is complete only when every live node shows it (K4-6), and not already
        when the active controller's node does.
        """
        return self.config.string("metadata.completion") == "cluster"

    def __post_init__(self) -> None:
        self.security = NodeSecurity(allow_everyone=self.config.boolean("allow.everyone.if.no.acl.found"))
        self.quotas = NodeQuotas(self.dynamic_configs)
        self.delegation_tokens = DelegationTokens(token_key(self.config))
        for publisher in (self.dynamic_configs, self.quotas, self.security, self.delegation_tokens):
            self.cache.on_change(publisher.publish)
        self.reader = ImageReader(self.cache, self.broker_id)
        self.log_dirs = LogDirs(self.config)
        self.decisions = NodeDecisions(
            self.recent_decisions,
            broker_id=self.broker_id,
            epoch=lambda: self.cache.image.controller_epoch,
            counts=self.metrics.decisions,
            would_be_refused=self.metrics.would_be_refused,
        )
        self.store_absence = Absence(self.store)

    @property
    def controller_here(self) -> ActiveController | None:
        """The active controller that this node follows, if it runs in this process."""
        controllers = (node.controller for node in (self, *self.local_nodes.values()))
        epoch = self.cache.image.controller_epoch
        return next((each for each in controllers if each is not None and each.epoch == epoch), None)

    @property
    def is_registered(self) -> bool:
        """Whether the node is registered in the present session of the store."""
        return self.registered_session == self.store.session_id and self.store.session is not SessionState.EXPIRED

    def registered(self, broker_epoch: int) -> None:
        """Note the broker epoch of a registration in the present session."""
        self.broker_epoch, self.registered_session = broker_epoch, self.store.session_id
        for node in self.local_nodes.values():
            if node.controller is not None:  # it may have seen the registration before this node did
                node.controller.local_node_registered()
