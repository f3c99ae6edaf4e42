"""Whether a caller may ask what they ask. ACLs will be asked here; today only nodes are told from
everyone else.

Rule: this is decided before a handler sees the request, on what the connection proved. Where
nothing is proved nothing is believed, also where nodes meet.
"""

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ..errors import NoNode
from .caller import Caller

CLUSTER_ACTION_APIS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ENVELOPE,
    }
)
"""Advertised to everyone, as Kafka's brokers in ZooKeeper mode do, and answered to nodes of the
cluster only.
"""


def authorize(caller: Caller, api_key: int) -> None:
    """Raise NoNode if the request is for nodes only and the caller is none."""
    if api_key in CLUSTER_ACTION_APIS and not caller.from_peer:
        raise NoNode(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
