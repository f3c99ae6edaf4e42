"""The cluster as one node shows it to clients."""

from dataclasses import dataclass, field

from ...cluster.cache import MetadataCache
from ...network.serving.fragments import MetadataFragments
from .dynamic_configs import DynamicConfigs


@dataclass(frozen=True)
class BrokerView:
    """The parts of a node that handlers of reads take: image, configs in force, ids."""

    broker_id: int
    cluster_id: str
    configs: DynamicConfigs
    """The configuration of this node, and the configs of brokers that override it."""
    cache: MetadataCache = field(default_factory=MetadataCache)
    """The current image, which the active controller updates."""
    encoded: MetadataFragments = field(default_factory=MetadataFragments)
    """Topics and brokers of the image as Metadata answers them."""
