"""Checks changes of a node's own configs that concern its listeners and their TLS.

Rule: only the node itself has the addresses that it would bind and the files that its configs name,
so it tries them when it receives the request, as Kafka's brokers do; the controller decides the
rest.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import trio

from ...admin.changes import Outcome
from ...admin.config_permissions import ALTER_CONFIGS_OF_CLUSTER
from ...admin.configs.alterations import altered_broker
from ...admin.requested_changes import configured_resource
from ...cluster.errors import ConfigurationError, Refusal
from ...network.server import check_addresses
from ...network.serving.context import RequestContext
from ...process.settings.in_force import added_listeners, fault_of_change, in_force
from ...process.settings.node_config import NodeConfig
from ...protocol.config_resources import ResourceType
from ...protocol.error_codes import ErrorCode
from ...security.caller import TlsOfListener
from ...security.listeners import server_listener
from ...security.mechanisms import LoginSources
from ..broker.topic_overrides import TopicOverrides
from .controller_port import ControllerPort


@dataclass
class OwnConfigs:
    """The parts of a node that its own changes of configs concern."""

    overrides: TopicOverrides
    """The configs of topics that it has read, some of which it forgets when it changes them."""
    tls: Callable[[], Sequence[TlsOfListener]]
    """Returns the TLS of those of its listeners that have it."""


async def refused_of_own(
    port: ControllerPort,
    context: RequestContext,
    resources: Sequence[Any],
    own: OwnConfigs,
    *,
    refused: Collection[int],
) -> dict[int, Outcome]:
    """Return the resources, by their index in the request, after whose change this node could not
    listen, could not make the TLS of a listener, or would show the certificate of somebody else.
    Those in `refused` are left out.
    """
    found: dict[int, Outcome] = {}
    for index, resource in enumerate(resources):
        if index in refused or resource.resource_type != ResourceType.BROKER or not resource.resource_name:
            continue
        try:
            context.check_cluster(ALTER_CONFIGS_OF_CLUSTER)  # who may not change anything learns nothing of our files
            configs = altered_broker(port.configs.of_node, resource, port.configs.current)
        except Refusal:
            continue  # the controller says so
        reason = await _fault(port, own, configs)
        if reason is not None:
            found[index] = Outcome(configured_resource(resource), refusal=Refusal(ErrorCode.INVALID_REQUEST, reason))
    return found


async def _fault(port: ControllerPort, own: OwnConfigs, configs: Mapping[str, str]) -> str | None:
    before = port.configs.current
    if (fault := fault_of_change(before, configs)) is not None:
        return fault
    after = in_force(port.configs.static, configs, port.configs.of_cluster)
    added = added_listeners(before, after)
    try:
        listeners = await trio.to_thread.run_sync(
            lambda: [server_listener(after, each, LoginSources()) for each in added]
        )
        held = {listener.port for listener in before.listeners}  # a listener that moves or goes frees its own
        await check_addresses(
            msgspec.structs.replace(each, port=0) if each.port in held else each for each in listeners
        )
    except (ConfigurationError, OSError) as error:
        return str(error)
    return await trio.to_thread.run_sync(partial(_fault_of_stores, own.tls(), after))


def _fault_of_stores(stores: Sequence[TlsOfListener], config: NodeConfig) -> str | None:
    names = {listener.name for listener in config.listeners}
    for tls in stores:
        try:
            if tls.name in names:
                tls.check(config)
        except ConfigurationError as error:
            return f"Validation of dynamic config update of SSLFactory failed: {error}"
    return None
