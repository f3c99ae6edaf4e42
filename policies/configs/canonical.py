"""Canonical values of configs, so that a policy judges what takes effect and not how it is written.

Rule: texts that Kafka takes for the same value of a key have the same canonical text, which is the
one that Kafka would show: ` TRUE` is `true`, `+05` is `5`, `compact, compact` is `compact`. The
value of an unknown key, or one that Kafka would refuse, stays as it is.

A gateway learns keys that no table has from a cluster that says they are no secrets. A process has
one cluster, so what it learns holds for all that it judges. Nothing that a table has is learned,
and no more than MOST keys are.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from .broker_keys import TABLE as BROKER_TABLE
from .newer_keys import NEWER_KEYS
from .tables import read_table
from .topic_keys import TABLE as TOPIC_TABLE
from .values import InvalidValueError, KeyType, parse_value, render_value

TYPES: Mapping[str, KeyType] = MappingProxyType(
    {
        **NEWER_KEYS,
        **{
            name: KeyType[kind.upper()] for table in (BROKER_TABLE, TOPIC_TABLE) for name, kind, *_ in read_table(table)
        },
    }
)
"""The types of all keys that this program knows. No key has another meaning for something else."""
SETS = frozenset(
    {
        "cleanup.policy",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "log.cleanup.policy",
    }
)
"""Lists that Kafka uses as sets, in which an element that is repeated counts once."""
LISTENER_PREFIX = "listener.name."
REMEMBERED = 64
"""The longest texts, in characters, whose canonical form is cached."""
MOST = 2_000
LEARNED: dict[str, KeyType] = {}


def canonical(name: str, text: str) -> str:
    """Return the canonical form of a config's value, for a key of a topic or of a broker."""
    return _short(name, text) if len(text) <= REMEMBERED and len(name) <= REMEMBERED else _canonical(name, text)


def canonical_configs(configs: Mapping[str, str]) -> Mapping[str, str]:
    """Return configs with canonical values. It is the same object if all are canonical already."""
    changed = {name: value for name, text in configs.items() if (value := canonical(name, text)) != text}
    return {**configs, **changed} if changed else configs


def canonical_operands(operations: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the operands of a request in canonical form; None stays None."""
    return {name: None if text is None else canonical(name, text) for name, text in operations.items()}


def type_of(name: str) -> KeyType:
    """Return the type of a key. A key with a listener's prefix has the type of the key
    without it.
    """
    kind = TYPES.get(name) or LEARNED.get(name)
    if kind is None and name.startswith(LISTENER_PREFIX):
        kind = TYPES.get(name.removeprefix(LISTENER_PREFIX).partition(".")[2])
    return KeyType.UNKNOWN if kind is None else kind


def learn_keys(keys: Mapping[str, KeyType]) -> None:
    """Remember the types of keys that a cluster has and that are no secrets."""
    new = [
        (name, kind)
        for name, kind in keys.items()
        if name not in TYPES and name not in LEARNED and kind is not KeyType.PASSWORD
    ]
    if new and len(LEARNED) < MOST:
        LEARNED.update(new[: MOST - len(LEARNED)])
        _short.cache_clear()


def _canonical(name: str, text: str) -> str:
    kind = type_of(name)
    if kind in {KeyType.UNKNOWN, KeyType.PASSWORD}:
        return text
    try:
        value = parse_value(name, kind, text)
    except InvalidValueError:
        return text
    if isinstance(value, tuple) and name in SETS:
        value = tuple(dict.fromkeys(value))
    if isinstance(value, float):
        value += 0.0  # turns -0.0 into 0.0
    return render_value(value) or ""


_short = lru_cache(maxsize=4096)(_canonical)
