"""The parts of a node that handlers of changes take."""

from dataclasses import dataclass
from functools import cached_property

from ...admin.policy.runner import PolicyRunner
from ...admin.recording.decisions import NodeDecisions
from ...admin.recording.log import AuditLog
from ...cluster.cache import MetadataCache
from ...cluster.quotas.write_quota import WriteQuota
from ...store.base import Store
from ..active.active_controller import LocalController
from ..broker.dynamic_configs import DynamicConfigs


@dataclass
class ControllerPort:
    """The active controller as changes reach it on this node, and the parts that decide with it."""

    controller: LocalController
    store: Store
    cache: MetadataCache
    """The node's image, which shows when a change is complete."""
    configs: DynamicConfigs
    """The configs of this node and of the cluster, from which topics take their defaults."""
    decisions: NodeDecisions
    writes: WriteQuota
    """Bounds what the changes of one user write to the store."""
    policy: PolicyRunner | None = None
    """The configured policy (`topic.management.policy.class.name`) with the rules, if there is one.
    """
    audit: AuditLog | None = None
    """The audit log that an active controller on this node writes; None if it is off."""

    @cached_property
    def broker_id(self) -> int:
        return self.configs.static.integer("broker.id")

    @cached_property
    def request_timeout_ms(self) -> int:
        """The timeout in milliseconds for requests that carry none (`request.timeout.ms`)."""
        return self.configs.static.integer("request.timeout.ms")

    @cached_property
    def completion_is_cluster_wide(self) -> bool:
        """Whether a change is complete only when every live node shows it (K4-6), and not already
        when the active controller's node does.
        """
        return self.configs.static.string("metadata.completion") == "cluster"
