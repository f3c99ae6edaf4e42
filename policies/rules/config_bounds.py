"""`[[config_bounds]]`: what the configs of a topic may be.

Rule: numbers are compared as Kafka reads them, exactly and however large; what means no limit to Kafka is more than any number.
"""

import re
from collections.abc import Callable

from ..configs.canonical import TYPES, canonical
from ..configs.values import InvalidValueError, KeyType, parse_value
from .facts import Facts
from .rule import Rule, read_scope
from .tables import Table

INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
UNLIMITED_BELOW_ZERO = frozenset({"retention.bytes", "retention.ms", "local.retention.bytes", "local.retention.ms"})
"""Kafka keeps everything where one of these is negative. (Of `local.retention.*` -2 is as much as `retention.*`, which has bounds of its own.)"""


class UnreadableConfigError(Exception):
    """A config that must be a number is none."""


def read_config_bounds(table: Table, name: str) -> Rule:
    scope = read_scope(table, name, ("create", "alter"))
    bounds: list[tuple[str, Callable[[str | None], str | None]]] = []
    configs = table.table("configs")
    if configs is None:
        if not table.has("configs"):
            table.note("configs is missing: a table of config to its bounds")
    else:
        for key in configs.keys():  # noqa: SIM118 - a Table is no mapping
            bound = configs.table(key)
            if bound is not None:
                bounds.append((key, _read_bound(bound, key)))
    table.finish()

    def judge(facts: Facts) -> str | None:
        if facts.after is None:
            return None
        before = None if facts.before is None else facts.before.configs
        for key, fault in bounds:
            value = facts.after.configs.get(key)
            if before is not None and before.get(key) == value:
                continue
            found = fault(value)
            if found is not None:
                return scope.message or found
        return None

    return scope.rule(judge)


def _read_bound(table: Table, key: str) -> Callable[[str | None], str | None]:
    least, most, required, forbidden = (
        table.integer("min"), table.integer("max"), table.boolean("required"), table.boolean("forbidden")
    )  # fmt: skip
    allowed = table.texts("allowed")
    if least is not None and most is not None and least > most:
        table.note(f"min {least} is more than max {most}, so that nothing is ever allowed", "min")
    if not any(map(table.has, ("min", "max", "allowed", "required", "forbidden"))):
        table.note(f"{key} has no bound: give min, max, allowed, required or forbidden")
    if forbidden and required:
        table.note(f"{key} is both required and forbidden", "forbidden")
    table.finish()
    values = None if allowed is None else frozenset(canonical(key, text) for text in allowed)

    def fault(value: str | None) -> str | None:
        if value is None:
            return f"{key} must be set." if required else None
        if forbidden:
            return f"{key} must not be set."
        if allowed is not None and values is not None and value not in values:
            return f"{key} {value} is none of {', '.join(allowed)}."
        if least is None and most is None:
            return None
        number = _number(key, value)
        if least is not None and number < least and not _is_unlimited(key, number):
            return f"{key} {value} is less than {least}."
        if most is not None and (number > most or (most >= 0 and _may_be_unlimited(key, number))):
            return f"{key} {value} is more than {most}."
        return None

    return fault


def _number(key: str, value: str) -> int | float:
    if INTEGER.fullmatch(value):
        return int(value)  # a float knows no difference between 2^53 and 2^53 + 1
    try:
        number = parse_value(key, KeyType.DOUBLE, value)
    except InvalidValueError:
        raise UnreadableConfigError(f"{key} is no number") from None
    assert isinstance(number, float)
    return number


def _is_unlimited(key: str, number: float) -> bool:
    return number < 0 and key in UNLIMITED_BELOW_ZERO


def _may_be_unlimited(key: str, number: float) -> bool:
    """Of a key that nobody knows a negative value may mean whatever it likes."""
    return number < 0 and (key in UNLIMITED_BELOW_ZERO or key not in TYPES)
