"""Checks changes of a node's own configs that concern the TLS of its listeners.

Rule: only the node itself has the files that its configs name, so it reads them when it receives
the request, as Kafka's brokers do; the controller decides the rest.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import trio

from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ..errors import ConfigurationError, Refusal
from ..requests.context import RequestContext
from .config_changes import ALTER_CONFIGS_OF_CLUSTER, Alteration
from .node import Node
from .planning import PlannedChange


async def refused_stores(
    node: Node,
    context: RequestContext,
    resources: Sequence[Any],
    alteration_of: Callable[[Node, Any], Alteration],
    refused: Collection[int],
) -> dict[int, PlannedChange]:
    """Return the resources, by their index in the request, after whose change a listener could not
    make its TLS or would show the certificate of somebody else. Those in `refused` are left out.
    """
    found: dict[int, PlannedChange] = {}
    if not node.tls:
        return found
    for index, resource in enumerate(resources):
        if index in refused or resource.resource_type != ResourceType.BROKER or not resource.resource_name:
            continue
        alteration = alteration_of(node, resource)
        try:
            context.check_cluster(ALTER_CONFIGS_OF_CLUSTER)  # who may not change anything learns nothing of our files
            configs = alteration.broker_configs(node.dynamic_configs.of_node)
        except Refusal:
            continue  # the controller says so
        fault = await trio.to_thread.run_sync(_fault, node, configs)
        if fault is not None:
            reason = f"Validation of dynamic config update of SSLFactory failed: {fault}"
            found[index] = alteration.changed(refusal=Refusal(ErrorCode.INVALID_REQUEST, reason))
    return found


def _fault(node: Node, configs: Mapping[str, str]) -> str | None:
    config = node.config.with_dynamic(configs, node.dynamic_configs.of_cluster)
    for tls in node.tls:
        try:
            tls.check(config)
        except ConfigurationError as error:
            return str(error)
    return None
