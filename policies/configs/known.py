"""Which config keys and values there are, for those who write rules about them.

Rule: what no cluster can ever have is a mistake; what only some clusters can have is a doubt. A key
that nothing resembles may be one of another distribution of Kafka, and is a doubt.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

from .broker_keys import TABLE as BROKER_TABLE
from .canonical import LISTENER_PREFIX, type_of
from .newer_keys import CLIENT_METRICS_KEYS, GROUP_KEYS, NEWER_BROKER_KEYS, NEWER_TOPIC_KEYS
from .tables import read_table
from .topic_keys import TABLE as TOPIC_TABLE
from .validators import validator_of
from .values import InvalidValueError, KeyType, parse_value

NOTATIONS: Mapping[str, str] = MappingProxyType(
    {name: notation for table in (BROKER_TABLE, TOPIC_TABLE) for name, _, _, notation, *_ in read_table(table)}
)
TOPIC_KEYS = frozenset(name for name, *_ in read_table(TOPIC_TABLE))
BROKER_KEYS = frozenset(name for name, *_ in read_table(BROKER_TABLE))
OF_BROKERS: Mapping[str, str] = MappingProxyType(
    {key.partition("*")[0]: name for name, _, _, _, keys, _ in read_table(TOPIC_TABLE) for key in keys.split()}
)
"""By the key of brokers that gives a default: the key of topics."""
NUMBERS = frozenset({KeyType.INT, KeyType.SHORT, KeyType.LONG, KeyType.DOUBLE})
LIKENESS = 0.8
"""How alike two names are of which one is taken for a slip of the pen."""


class Strange(NamedTuple):
    """What is strange about a key or a value."""

    text: str
    """The end of a sentence that begins with the key or the value."""
    is_certain: bool = True
    """Whether it is a mistake; otherwise it is a doubt."""


def strange_key(name: str, *, of_brokers: bool = False) -> Strange | None:
    """Return what is strange about the name of a topic's config or, with `of_brokers`, about that
    of a topic or a broker.
    """
    if name in TOPIC_KEYS or (of_brokers and (name in BROKER_KEYS or name.startswith(LISTENER_PREFIX))):
        return None
    if name in NEWER_TOPIC_KEYS or (of_brokers and name in NEWER_BROKER_KEYS):
        return Strange(
            "is a config that Kafka has since 4.0: nodes do not have it, and 3.9 refuses it", is_certain=False
        )
    if name in BROKER_KEYS:
        its = OF_BROKERS.get(name)
        return Strange("is a key of brokers, which no topic has" + (f"; did you mean {its}?" if its else ""))
    for keys, what in ((NEWER_BROKER_KEYS, "brokers"), (GROUP_KEYS, "groups"), (CLIENT_METRICS_KEYS, "client metrics")):
        if name in keys:
            return Strange(f"is a key of {what}, which no topic has")
    known = [*TOPIC_KEYS, *NEWER_TOPIC_KEYS, *(BROKER_KEYS if of_brokers else ())]
    near = get_close_matches(name.lower().replace("_", ".").replace("-", "."), sorted(known), 1, LIKENESS)
    if near:
        return Strange(f"is no config of Kafka; did you mean {near[0]}?")
    return Strange("is no config of Kafka up to 4.4: only another kind of cluster can have it", is_certain=False)


def wrong_value(name: str, text: str) -> str | None:
    """Return why Kafka refuses a value of a key, as the end of a sentence; None if it takes it, or
    if nobody knows.
    """
    kind, notation = type_of(name), NOTATIONS.get(name, "-")
    if kind in {KeyType.UNKNOWN, KeyType.PASSWORD}:
        return None
    try:
        value = parse_value(name, kind, text)
        validate = validator_of("" if notation == "-" else notation)
        if validate is not None and value is not None:
            validate(name, value)
    except InvalidValueError as error:
        return f"{text!r} is no value of {name}{_hint(text, kind, notation) or ': ' + _reason(error)}"
    return None


def _hint(text: str, kind: KeyType, notation: str) -> str:
    """Name the nearest of the words that a key takes, or all of them."""
    words = ["true", "false"] if kind is KeyType.BOOLEAN else notation.split("|") if "|" in notation else []
    if not words:
        return ""
    slip = next((each.strip() for each in text.split(",") if each.strip() not in words), text)
    near = get_close_matches(slip.lower(), words, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else f", which takes {', '.join(words)}"


def _reason(error: InvalidValueError) -> str:
    text = str(error).partition(": ")[2]
    return text[:1].lower() + text[1:]
