"""Whether a caller may ask what they ask. ACLs will be asked here; today only nodes are told from
everyone else.

This is decided before a handler sees the request, by what the connection proved. Where nothing is
proved nothing is believed, not even at a listener where nodes meet.
"""

from ...protocol.error_codes import ErrorCode
from ..errors import NotANode
from .caller import Caller


def authorize(caller: Caller, *, nodes_only: bool) -> None:
    """Raise NotANode if the request is for nodes only and the caller is none."""
    if nodes_only and not caller.from_peer:
        raise NotANode(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
