"""The cluster as one node shows it to clients, with the encoded rows that it keeps of it.

Rule: no encoded row is the only copy of anything. Each kind of response has a cache of its own, so
that one cannot push out the other.
"""

from dataclasses import dataclass, field

from ...cluster.cache import MetadataCache
from ...network.serving.fragments import MetadataFragments
from ...network.serving.kept_rows import Fragments, Joined, KeptRows, LatestAnswers
from .dynamic_configs import DynamicConfigs


class EncodedRows:
    def __init__(self) -> None:
        self.topics = MetadataFragments()
        """Topics and brokers for Metadata."""
        self.offsets = LatestAnswers()
        """Topics for ListOffsets, by version and name."""
        self.replicas = Fragments()
        """Topics with this node's replicas for DescribeLogDirs, by version, directory and name."""
        self.log_dirs: KeptRows[Joined] = KeptRows()
        """Directories with all replicas of this node."""
        self.acl_patterns = Fragments()
        """ACLs of single resource patterns, by version and pattern."""
        self.acls: KeptRows[Joined] = KeptRows()
        """ACLs by resource pattern."""


@dataclass(frozen=True)
class BrokerView:
    """The parts of a node that handlers of reads take: image, configs in force, ids."""

    broker_id: int
    cluster_id: str
    configs: DynamicConfigs
    """The configuration of this node, and the configs of brokers that override it."""
    cache: MetadataCache = field(default_factory=MetadataCache)
    """The current image, which the active controller updates."""
    encoded: EncodedRows = field(default_factory=EncodedRows)
    """Rows of answers that were made of the image."""
