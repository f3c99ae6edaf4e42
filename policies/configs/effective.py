"""What holds for a topic: its own configs, and where it says nothing what the cluster says, or
Kafka.

Rule: of the cluster's defaults only those are told that are otherwise than Kafka's own, since
nearly none are. All are canonical.
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
"""Of every config that a topic can have."""


class Synonym(msgspec.Struct, frozen=True):
    """A key of the node from which a topic's key takes its default."""

    name: str
    factor: int = 1
    """Of the node's unit to the topic's."""


def _synonym(text: str) -> Synonym:
    name, _, factor = text.partition("*")
    return Synonym(name, int(factor or 1))


SYNONYMS: Mapping[str, tuple[Synonym, ...]] = MappingProxyType(
    {name: tuple(map(_synonym, [] if keys == "-" else keys.split())) for name, _, _, _, keys, _ in read_table(TABLE)}
)
"""By key of a topic: the first that has a value holds."""


class EffectiveConfigs(Mapping[str, str]):
    """A topic's configs with the defaults for what it does not say. Free to make: nothing is
    copied.
    """

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
    """Return the defaults of topics where a broker, or all brokers, have these configs beside those
    of their files.
    """
    changed = dict(defaults)
    for key, synonyms in SYNONYMS.items():
        first = next((each for each in synonyms if each.name in configs), None)
        if first is not None:
            value = canonical(first.name, configs[first.name])
            changed[key] = str(int(value) * first.factor) if first.factor != 1 else value
    return otherwise_than_kafka(changed)


def otherwise_than_kafka(defaults: Mapping[str, str]) -> Mapping[str, str]:
    """Return those of a cluster's defaults that are not Kafka's."""
    return MappingProxyType({name: text for name, text in defaults.items() if KAFKA_DEFAULTS.get(name) != text})
