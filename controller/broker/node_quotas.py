"""The quotas in force at one node, kept as the store has them, and what they count.

Rule: a quota is in force from the time slice in which `ClusterSecurity` learns of it. Quotas that
this program does not enforce are kept and shown, and the log says so once.
"""

import logging
from collections.abc import Callable

import trio

from ..config.node_config import NodeConfig
from ..metadata.entities import UNREADABLE
from ..quotas.client_quotas import ClientQuotas
from ..quotas.mutation_quota import MutationQuotas
from ..quotas.quota_keys import NOT_ENFORCED
from ..znodes.entity_names import client_entity_at
from .cluster_security import ClusterSecurity, EntityChanges

log = logging.getLogger("minicontroller.quotas")


def clock_ms() -> int:
    """Return the milliseconds of a clock that nobody can set back."""
    return int(trio.current_time() * 1000)


class NodeQuotas:
    """The quotas of a node."""

    def __init__(self, security: ClusterSecurity, config: NodeConfig, clock: Callable[[], int] = clock_ms) -> None:
        self.clients = ClientQuotas()
        samples = config.integer("controller.quota.window.num")
        self.changes = MutationQuotas(
            self.clients, samples * config.integer("controller.quota.window.size.seconds"), clock
        )
        self._is_said = False
        security.on_change(self._take)

    def _take(self, changes: EntityChanges) -> None:
        for path, found in changes.configs.items():
            entity = client_entity_at(path)
            if entity is None or found.version == UNREADABLE:
                continue  # what held before still holds
            self.clients.set(entity, found.configs)
            if not self._is_said and any(key in found.configs for key in NOT_ENFORCED):
                self._is_said = True
                log.warning(
                    "the quotas %s are kept for Kafka's brokers, and this program does not enforce them",
                    ", ".join(NOT_ENFORCED),
                )
