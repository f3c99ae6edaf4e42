"""The part of a node that the election and the active controller use.

Rule: this package knows a node by this protocol only, because nodes are made of packages above it.
"""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from ...admin.recording.log import AuditLog
from ...cluster.cache import MetadataCache
from ...process.observe.metrics import NodeMetrics
from ...process.settings.node_config import NodeConfig
from ...store.base import Store
from .local_nodes import DynamicConfigsView, FollowedEntities, LocalNode

C = TypeVar("C")


class EligibleNode(Protocol[C]):
    """A node that can be elected. `C` is the class of the controller that runs on it."""

    broker_id: int
    cluster_id: str
    config: NodeConfig
    store: Store
    cache: MetadataCache
    broker_epoch: int
    metrics: NodeMetrics
    audit: AuditLog | None
    controller: C | None
    """The active controller on this node while it serves, else None."""

    @property
    def dynamic_configs(self) -> DynamicConfigsView: ...

    @property
    def security(self) -> FollowedEntities: ...

    @property
    def local_nodes(self) -> Mapping[int, LocalNode]: ...

    @property
    def rule_files(self) -> object | None: ...
