"""The parts of one node, made and connected: here they meet, and no handler sees more than it takes
(`controller/apis.py`).

Rule: a node decides nothing; each decision is made in one of the parts.
"""

from random import Random

from ...admin.policy.rule_files import RuleFiles
from ...admin.policy.runner import PolicyRunner
from ...admin.recording.decisions import NodeDecisions, RecentDecisions
from ...admin.recording.log import AuditLog
from ...cluster.cache import MetadataCache
from ...cluster.image import Image
from ...network.limits import MOST_CONNECTIONS, connection_limits
from ...network.server import Server
from ...process.observe.metrics import NodeMetrics
from ...process.settings.node_config import NodeConfig
from ...store.base import Store
from ...store.sessions import Absence
from ..active.active_controller import ActiveController, LocalController
from ..broker.auto_creation import AutoCreation
from ..broker.data import DataParts, KeepData, no_records
from ..broker.dynamic_configs import DynamicConfigs
from ..broker.image_reader import ImageReader
from ..broker.node_quotas import NodeQuotas
from ..broker.node_security import NodeSecurity
from ..broker.producer_ids import ProducerIds
from ..broker.registration import BrokerEpoch
from ..broker.topic_overrides import TopicOverrides
from ..broker.view import BrokerView
from ..handlers.control import ElectedController
from ..handlers.controller_port import ControllerPort
from ..handlers.own_changes import OwnConfigs
from .controller_requests import AskController, ControllerRequests, nobody_to_ask


class Node:
    """One node of the cluster: a broker that can be elected as the active controller."""

    def __init__(
        self,
        config: NodeConfig,
        cluster_id: str,
        store: Store,
        *,
        security: NodeSecurity | None = None,
        cache: MetadataCache | None = None,
        ask_controller: AskController = nobody_to_ask,
        room: int = MOST_CONNECTIONS,
        local_nodes: "dict[int, Node] | None" = None,
        recent_decisions: RecentDecisions | None = None,
        policy: PolicyRunner | None = None,
        rule_files: RuleFiles | None = None,
        audit: AuditLog | None = None,
        random: Random | None = None,
        keep_data: KeepData = no_records,
    ) -> None:
        """`store` is the node's connection to the store, with a session of its own. `local_nodes`
        are the running nodes of this process by broker id. `security` and `cache` are made here
        unless the parts that `ask_controller` needs have them already. `room` is the number of
        connections for which the process has file descriptors. `keep_data` makes what the node has
        of records, groups and transactions.
        """
        self.config = config
        self.broker_id = config.integer("broker.id")
        self.cluster_id = cluster_id
        self.store = store
        self.local_nodes = {} if local_nodes is None else local_nodes
        self.rule_files = rule_files
        self.random = Random() if random is None else random  # noqa: S311 - it places replicas
        self.metrics = NodeMetrics(audit)
        self.store_absence = Absence(store)
        self.place = LocalController()
        self.epoch = BrokerEpoch(store)

        configs = self.dynamic_configs = DynamicConfigs(config, self.broker_id)
        self.cache = MetadataCache() if cache is None else cache
        self.view = BrokerView(self.broker_id, cluster_id, configs, self.cache)
        self.security = NodeSecurity(config) if security is None else security
        self.quotas = NodeQuotas(configs)
        for publisher in (configs, self.quotas, self.security):
            self.cache.on_change(publisher.publish)
        self.server = Server(connection_limits(config, room), self.quotas.connections)
        configs.follow(lambda config: self.server.limit(connection_limits(config, room)))
        self.reader = ImageReader(self.cache, self.broker_id)
        self.requests = ControllerRequests(self.broker_id, self.cache, self.epoch, self.place, ask_controller)
        self.producer_ids = ProducerIds(self.requests.producer_ids)
        self.topic_overrides = TopicOverrides(store, self._controllers_image)
        self.data = keep_data(DataParts(config, self.view, self.topic_overrides, self.producer_ids))
        self.reader.on_notified(self.topic_overrides.notified)
        self.own_configs = OwnConfigs(
            self.topic_overrides, lambda: [each.tls for each in self.server.listeners if each.tls is not None]
        )
        self.elected = ElectedController(self.cache, self.reader, store, self.epoch)

        self.recent_decisions = RecentDecisions() if recent_decisions is None else recent_decisions
        self.decisions = NodeDecisions(
            self.recent_decisions,
            broker_id=self.broker_id,
            epoch=lambda: self.cache.image.controller_epoch,
            counts=self.metrics.decisions,
            would_be_refused=self.metrics.would_be_refused,
        )
        self.auto_creation = AutoCreation(config, self.decisions.refused)
        self.port = ControllerPort(
            self.place, store, self.cache, configs, self.decisions, self.quotas.writes, policy, audit
        )

    # ------------------------------------------------------------------ the active controller

    @property
    def controller(self) -> ActiveController | None:
        """The active controller, if it runs on this node and has loaded its state."""
        return self.place.active

    @property
    def policy(self) -> PolicyRunner | None:
        return self.port.policy

    @property
    def audit(self) -> AuditLog | None:
        return self.port.audit

    def _controllers_image(self) -> Image | None:
        """Return the image of the active controller that this node follows, if it runs in this
        process.
        """
        controllers = (node.controller for node in (self, *self.local_nodes.values()))
        epoch = self.cache.image.controller_epoch
        return next((each.image for each in controllers if each is not None and each.epoch == epoch), None)

    # ------------------------------------------------------------------ the registration

    @property
    def broker_epoch(self) -> int:
        return self.epoch.current

    def registered(self, broker_epoch: int) -> None:
        """Note the broker epoch of a registration in the present session."""
        self.epoch.registered(broker_epoch)
        for node in self.local_nodes.values():
            if node.controller is not None:  # it may have seen the registration before this node did
                node.controller.local_node_registered()
