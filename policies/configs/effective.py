"""The configs that take effect for a topic: its own, otherwise the cluster's defaults, otherwise
Kafka's.

Rule: only those defaults of a cluster are kept that differ from Kafka's own, since hardly any does.
All values are canonical.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from .canonical import canonical
from .tables import read_default, read_table
from .topic_keys import TABLE

KAFKA_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {name: canonical(name, read_default(default) or "") for name, _, default, *_ in read_table(TABLE)}
)
"""Kafka's default of every config that a topic can have."""


class Synonym(msgspec.Struct, frozen=True):
    """A key of brokers from which a topic's key takes its default."""

    name: str
    factor: int = 1
    """The factor that converts the broker's unit to the topic's."""


def _synonym(text: str) -> Synonym:
    name, _, factor = text.partition("*")
    return Synonym(name, int(factor or 1))


SYNONYMS: Mapping[str, tuple[Synonym, ...]] = MappingProxyType(
    {name: tuple(map(_synonym, [] if keys == "-" else keys.split())) for name, _, _, _, keys, _ in read_table(TABLE)}
)
"""The synonyms of each key of topics. The first that has a value takes effect."""


class EffectiveConfigs(Mapping[str, str]):
    """A topic's own configs together with the defaults of all others. Nothing is copied."""

    __slots__ = ("_defaults", "_own")

    def __init__(self, own: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        self._own = own
        self._defaults = defaults

    def __getitem__(self, name: str) -> str:
        value = self._own.get(name)
        if value is None:
            value = self._defaults.get(name)
        return KAFKA_DEFAULTS[name] if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*KAFKA_DEFAULTS, *self._defaults, *self._own)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


def defaults_with(configs: Mapping[str, str], defaults: Mapping[str, str]) -> Mapping[str, str]:
    """Return the defaults of topics for a broker, or all brokers, with these dynamic configs.
    `defaults` are those without them.
    """
    changed = dict(defaults)
    for key, synonyms in SYNONYMS.items():
        first = next((each for each in synonyms if each.name in configs), None)
        if first is not None:
            value = canonical(first.name, configs[first.name])
            changed[key] = str(int(value) * first.factor) if first.factor != 1 else value
    return differing_from_kafka(changed)


def differing_from_kafka(defaults: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: text for name, text in defaults.items() if KAFKA_DEFAULTS.get(name) != text})
