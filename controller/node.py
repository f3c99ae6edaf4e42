"""One broker-shaped node: what a handler may reach.

Rule: a node is a bag of parts, each of which knows its own business; nothing here decides anything.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .cluster.auto_creation import AutoCreation
from .cluster.metadata_cache import MetadataCache
from .cluster.metadata_fragments import MetadataFragments
from .config.node_config import NodeConfig
from .store.base import Store

if TYPE_CHECKING:
    from .cluster.active_controller import ActiveController
    from .config.dynamic import DynamicConfigs
    from .forwarding import Forwarder
    from .policy_runner import PolicyRunner


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
    forwarder: "Forwarder | None" = None
    policy: "PolicyRunner | None" = None
    broker_epoch: int = -1
    """The czxid of this node's registration; -1 while it has none."""
