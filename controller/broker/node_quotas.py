"""The quotas in force at one node, kept as the store has them, and what they count.

Rule: a quota is in force from the time slice in which the node's image has it. Quotas that this
program does not enforce are kept and shown, and the log says so once.
"""

import logging

import trio

from ...cluster.cache import ImageChanges
from ...cluster.entities import NO_ENTITY_CONFIGS, UNREADABLE
from ...cluster.entity_paths import CONFIGS
from ...cluster.image import Image
from ...cluster.quotas.client_quotas import ClientQuotas
from ...cluster.quotas.connection_rates import ConnectionRates
from ...cluster.quotas.mutation_quota import MutationQuotas
from ...cluster.quotas.quota_keys import NOT_ENFORCED
from ...cluster.quotas.rates import Windows
from ...cluster.quotas.write_quota import WriteQuota
from ...cluster.znodes.entity_names import client_entity_at
from ...process.settings.node_config import NodeConfig
from .dynamic_configs import DynamicConfigs

UNLIMITED = 2**31 - 1
"""Kafka's default of `max.connection.creation.rate`."""
log = logging.getLogger("minicontroller.quotas")


def clock_ms() -> int:
    """Return the milliseconds of a clock that nobody can set back."""
    return int(trio.current_time() * 1000)


class NodeQuotas:
    """The quotas of a node."""

    def __init__(self, configs: DynamicConfigs) -> None:
        config = configs.current
        self.clients = ClientQuotas()
        samples = config.integer("controller.quota.window.num")
        self.changes = MutationQuotas(
            self.clients, samples * config.integer("controller.quota.window.size.seconds"), clock_ms
        )
        self.writes = WriteQuota(clock_ms)
        self.connections = ConnectionRates(
            self.clients,
            lambda listener: _creation_rate(configs.current, listener),
            Windows(config.integer("quota.window.num"), config.integer("quota.window.size.seconds") * 1000),
            clock_ms,
        )
        self._is_said = False

    def publish(self, before: Image, after: Image, changes: ImageChanges) -> None:
        """Put the quotas of an image into force."""
        for path in changes.entities if after.configs is not before.configs else ():
            name = path.removeprefix(CONFIGS)
            entity = client_entity_at(name)
            found = after.configs.get(name, NO_ENTITY_CONFIGS)
            if entity is None or found == before.configs.get(name) or found.version == UNREADABLE:
                continue  # what held before still holds
            self.clients.set(entity, found.configs)
            if not self._is_said and any(key in found.configs for key in NOT_ENFORCED):
                self._is_said = True
                log.warning(
                    "the quotas %s are kept for Kafka's brokers, and this program does not enforce them",
                    ", ".join(NOT_ENFORCED),
                )


def _creation_rate(config: NodeConfig, listener: str) -> int | None:
    """Return the most connections a second of a listener or, if it is empty, of the node; None for
    no limit.
    """
    key = "max.connection.creation.rate"
    limit = config.optional_integer(f"listener.name.{listener.lower()}.{key}" if listener else key)
    return None if limit == UNLIMITED else limit
