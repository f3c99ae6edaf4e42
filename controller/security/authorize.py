"""Decides whether a caller may use an API, before a handler sees the request. Today it only tells
nodes of the cluster from other callers; ACLs will be checked here.

Only what the caller has proved on this connection counts. A caller at the inter-broker listener
that has proved nothing is treated like any other client.
"""

from ...protocol.error_codes import ErrorCode
from ..errors import NotANode
from .caller import Caller


def authorize(caller: Caller, *, nodes_only: bool) -> None:
    """Raise NotANode if only nodes of the cluster may use the API and the caller is not one."""
    if nodes_only and not caller.from_peer:
        raise NotANode(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
