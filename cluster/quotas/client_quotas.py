"""The quotas of users, clients and addresses, and which of them holds for a request.

Rule: the order is Kafka's (ClientQuotaManager): the pair of the user and the client, the user with
the default client, the user, then the same of the default user, then the client, then the default
client. Whoever is limited by a quota of a user shares it over all of their clients, and whoever is
limited by one of a client id shares it with all users of that client id.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from ..znodes.entity_names import CLIENT_ID, IP, USER, Entity
from .quota_keys import CONNECTION_CREATION_RATE, CONTROLLER_MUTATION_RATE, keys_of, quotas_in

EntityKey = tuple[tuple[str, str | None], ...]
"""The types and names of an entity, in the order of `TYPES`; None stands for the default."""
TYPES = (USER, CLIENT_ID, IP)

K = TypeVar("K")
V = TypeVar("V")


class Limit(msgspec.Struct, frozen=True):
    """The quota that holds for a request."""

    shared_by: tuple[str, str]
    """The user and the client id whose requests share the quota; empty stands for all of them."""
    rate: float


def entity_key(entity: Entity) -> EntityKey:
    return tuple((kind, entity[kind]) for kind in TYPES if kind in entity)


class ClientQuotas:
    def __init__(self) -> None:
        self.all: dict[EntityKey, dict[str, float]] = {}
        self._mutation_rates: dict[EntityKey, float] = {}
        self._connection_rates: dict[str | None, float] = {}

    def set(self, entity: Entity, configs: Mapping[str, str]) -> None:
        """Put the configs of an entity into force; none if there are none any more."""
        key = entity_key(entity)
        quotas = quotas_in(configs, keys_of(frozenset(entity)))
        _put(self.all, key, quotas or None)
        if IP in entity:
            _put(self._connection_rates, entity[IP], quotas.get(CONNECTION_CREATION_RATE))
        else:
            _put(self._mutation_rates, key, quotas.get(CONTROLLER_MUTATION_RATE))

    def mutation_limit(self, user: str, client_id: str) -> Limit | None:
        rates = self._mutation_rates
        if not rates:
            return None
        for key, shared_by in _candidates(user, client_id):
            rate = rates.get(key)
            if rate is not None:
                return Limit(shared_by, rate)
        return None

    def connection_rate(self, address: str) -> float | None:
        """Return how many connections a second an address may open; None if it has no limit."""
        rate = self._connection_rates.get(address)
        return self._connection_rates.get(None) if rate is None else rate


def _candidates(user: str, client_id: str) -> Iterator[tuple[EntityKey, tuple[str, str]]]:
    """Yield the entities whose quota may hold, the most specific first, each with those that share
    it. As in Kafka, a client without an id has the quotas of its user only.
    """
    if not client_id:
        for name in (user, None):
            yield ((USER, name),), (user, "")
        return
    for name in (user, None):
        yield ((USER, name), (CLIENT_ID, client_id)), (user, client_id)
        yield ((USER, name), (CLIENT_ID, None)), (user, client_id)
        yield ((USER, name),), (user, "")
    for client in (client_id, None):
        yield ((CLIENT_ID, client),), ("", client_id)


def _put(values: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
