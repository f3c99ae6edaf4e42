"""`[[config_bounds]]`: what the configs of a topic may be.

Rule: numbers are compared as Kafka reads them, exactly and however large; what means no limit to Kafka is more than any number. A minimum and a
maximum are about what holds, so that a topic which says nothing must have a default within them.
"""

import re
from collections.abc import Callable, Mapping

from ..configs.canonical import TYPES, canonical
from ..configs.values import InvalidValueError, KeyType, parse_value
from .facts import Facts
from .rule import Rule, read_scope
from .tables import Table

INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
UNLIMITED_BELOW_ZERO = frozenset({"retention.bytes", "retention.ms", "local.retention.bytes", "local.retention.ms"})
"""Kafka keeps everything where one of these is negative."""


LOCAL = "local."
AS_RETENTION = "-2"
"""Of `local.retention.*`: as much as `retention.*` says."""
ABSENT = ("default", "allow")

Fault = Callable[[str | None, Mapping[str, str]], str | None]
"""What is wrong with a topic's own value, None for no value, beside all that would hold."""


class UnreadableConfigError(Exception):
    """A config that must be a number is none."""


def read_config_bounds(table: Table, name: str) -> Rule:
    scope = read_scope(table, name, ("create", "alter"))
    bounds: list[tuple[str, Fault]] = []
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
            found = fault(value, facts.after.effective_configs)
            if found is not None:
                return scope.message or found
        return None

    return scope.rule(judge)


def _read_bound(table: Table, key: str) -> Fault:
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
    absent = table.choice("absent", ABSENT)
    judges_default = absent == "default" or (absent is None and (least is not None or most is not None))
    table.finish()
    values = None if allowed is None else frozenset(canonical(key, text) for text in allowed)

    def fault(own: str | None, effective: Mapping[str, str]) -> str | None:
        if own is None and required:
            return f"{key} must be set."
        if own is not None and forbidden:
            return f"{key} must not be set."
        value = effective.get(key) if own is None and judges_default else own
        if value is None:
            return None
        shown = f"{key} {value}{' (the default)' if own is None else ''}"
        if allowed is not None and values is not None and value not in values:
            return f"{shown} is none of {', '.join(allowed)}."
        if least is None and most is None:
            return None
        if value == AS_RETENTION and key.startswith(LOCAL):
            value = effective[key.removeprefix(LOCAL)]
        number = _number(key, value)
        if least is not None and number < least and not _is_unlimited(key, number):
            return f"{shown} is less than {least}."
        if most is not None and (number > most or (most >= 0 and _may_be_unlimited(key, number))):
            return f"{shown} is more than {most}."
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
