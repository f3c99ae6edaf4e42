"""`[[config_bounds]]`: the values that configs of topics may have.

Rule: numbers are compared exactly, as Kafka reads them, however large. A value that means "no
limit" to Kafka is more than any number. A minimum and a maximum apply to the value that takes
effect, so the default of a config that a topic does not set must be within them. A change of the
default, in the configs of a broker or of all brokers, must be within the bounds for all topics that
would get it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from ..configs.canonical import TYPES, canonical, type_of
from ..configs.effective import SYNONYMS, EffectiveConfigs
from ..configs.known import NUMBERS, strange_key, wrong_value
from ..configs.values import InvalidValueError, KeyType, parse_value
from ..interface import NO_CONFIGS, AlterBrokerConfigsRequest
from .facts import Facts
from .rule import Rule, Scope, read_scope
from .tables import TomlTable
from .vocabulary import entry_of

OPERATIONS = ("create", "alter", "alter_broker")
INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
UNLIMITED_BELOW_ZERO = frozenset({"retention.bytes", "retention.ms", "local.retention.bytes", "local.retention.ms"})
"""Configs whose negative values mean no limit to Kafka."""
MEANT = MappingProxyType({"local.retention.ms": "retention.ms", "local.retention.bytes": "retention.bytes"})
"""Configs whose value AS_RETENTION means the value of another config."""
AS_RETENTION = "-2"
ABSENT = ("default", "allow")

Fault = Callable[[str | None, Mapping[str, str], str], str | None]
"""Returns the objection to a value, or None. Its arguments are the topic's own value, which may be
None, all effective configs, and the origin of the value as the message words it.
"""
Bound = tuple[str, Fault, bool]
"""A config, the objection to its values, and whether the bound does not apply to defaults."""


class UnreadableConfigError(Exception):
    """The value of a config that must be a number is not one."""


def read_config_bounds(table: TomlTable, name: str) -> Rule:
    scope = read_scope(table, name, OPERATIONS, OPERATIONS, sees_defaults=True)
    bounds: list[Bound] = []
    configs = table.table("configs")
    if configs is None:
        if not table.has("configs"):
            table.note("configs is missing: a table of config to its bounds")
    else:
        for key in configs.keys():  # noqa: SIM118 - a TomlTable is no mapping
            bound = configs.table(key)
            if (strange := strange_key(key)) is not None:
                (configs.note if strange.is_certain else configs.doubt)(f"{key} {strange.text}", key)
            if bound is not None:
                bounds.append((key, *_read_bound(bound, key)))
    table.finish()

    def judge(facts: Facts) -> str | None:
        if isinstance(facts.request, AlterBrokerConfigsRequest):
            found = _found_in_defaults(facts.request, facts, scope, bounds)
            return None if found is None else scope.message or found
        if facts.after is None:
            return None
        before = None if facts.before is None else facts.before.configs
        for key, fault, _ in bounds:
            value, effective = facts.after.configs.get(key), facts.after.effective_configs
            may_be_new = facts.may_set_unseen(key) or (key in MEANT and facts.may_set_unseen(MEANT[key]))
            if before is not None and before.get(key) == value and not may_be_new:
                held = EffectiveConfigs(before, facts.after.default_configs)
                if key not in MEANT or _meaning(key, held) == _meaning(key, effective):
                    continue
            found = fault(value, effective, "")
            if found is not None:
                return scope.message or found
        return None

    reads = {entry_of("after", "effective_configs", each) for key, *_ in bounds for each in (key, MEANT.get(key, key))}
    return msgspec.structs.replace(scope.rule(judge, reads), knows_defaults=True, lenient_to_existing=True)


def _found_in_defaults(
    request: AlterBrokerConfigsRequest, facts: Facts, scope: Scope, bounds: Sequence[Bound]
) -> str | None:
    """Return the objection to a change of the defaults of topics. The values are judged as they are
    written, since they may take effect at other nodes, and as they would take effect here. New
    topics get the default of all brokers; the configs of a single broker are judged by themselves.
    """
    before = EffectiveConfigs(NO_CONFIGS, request.default_configs_before)
    for key, fault, is_of_topics_alone in bounds:
        if is_of_topics_alone or key not in SYNONYMS:
            continue
        for source in (key, MEANT[key]) if key in MEANT else (key,):
            for value, where in _new_defaults(request, before, source, facts):
                origin = where or (" (the default)" if source == key else f" (by {source})")
                found = fault(value, request.effective_configs, origin)
                if found is not None and (
                    request.broker or _concerns(facts, scope, key, source, request.effective_configs)
                ):
                    return found
    return None


def _new_defaults(
    request: AlterBrokerConfigsRequest, before: Mapping[str, str], key: str, facts: Facts
) -> Iterator[tuple[str, str]]:
    """Yield the new defaults of a topic's config, each with the wording of the key that sets it."""
    may_be_new = False
    for each in SYNONYMS[key]:
        if each.name in request.config_operations and facts.may_set_unseen(each.name):
            may_be_new = True
        elif request.after.get(each.name) == request.before.get(each.name):
            continue
        if each.name in request.after:
            yield _converted(request.after[each.name], each.factor), f" (by {each.name})"
    if may_be_new or request.effective_configs[key] != before[key]:
        yield request.effective_configs[key], ""


def _meaning(key: str, effective: Mapping[str, str]) -> str | None:
    """Return the effective value of a key, which may be defined as the value of another key."""
    value = effective.get(key)
    return effective[MEANT[key]] if value == AS_RETENTION and key in MEANT else value


def _converted(text: str, factor: int) -> str:
    return str(int(text) * factor) if factor != 1 and INTEGER.fullmatch(text) else text


def _concerns(facts: Facts, scope: Scope, key: str, source: str, effective: Mapping[str, str]) -> bool:
    """Whether the rule applies to a topic whose `key` takes its default from `source`. A rule for
    all topics applies to future topics, too.
    """
    if scope.topics is None and (source == key or effective[key] == AS_RETENTION):
        return True
    for name in facts.cluster.topics(include_internal=True):
        state = facts.cluster.topic_state(name)
        if state is None or source in state.configs or not scope.has_topic(name, facts):
            continue
        if source == key or state.configs.get(key, effective[key]) == AS_RETENTION:
            return True
    return False


def _read_bound(table: TomlTable, key: str) -> tuple[Fault, bool]:
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
    _check_values(table, key, {"min": least, "max": most}, allowed or ())
    absent = table.choice("absent", ABSENT)
    judges_default = absent == "default" or (absent is None and (least is not None or most is not None))
    table.finish()
    values = None if allowed is None else frozenset(canonical(key, text) for text in allowed)

    def fault(own: str | None, effective: Mapping[str, str], where: str) -> str | None:
        if own is None and required:
            return f"{key} must be set."
        if own is not None and forbidden and not where:
            return f"{key} must not be set."
        value = effective.get(key) if own is None and judges_default else own
        if value is None:
            return None
        shown = f"{key} {value}{' (the default)' if own is None else where}"
        if allowed is not None and values is not None and value not in values:
            return f"{shown} is none of {', '.join(allowed)}."
        if least is None and most is None:
            return None
        if value == AS_RETENTION and key in MEANT:
            value = effective[MEANT[key]]
        number = _number(key, value)
        if least is not None and number < least and not _is_unlimited(key, number):
            return f"{shown} is less than {least}."
        if most is not None and (number > most or (most >= 0 and _may_be_unlimited(key, number))):
            return f"{shown} is more than {most}."
        return None

    return fault, absent == "allow" or (least is None and most is None and allowed is None)


def _check_values(table: TomlTable, key: str, limits: Mapping[str, int | None], allowed: Sequence[str]) -> None:
    kind, (least, most) = type_of(key), limits.values()
    for name, limit in limits.items():
        if limit is None:
            continue
        if kind not in NUMBERS and kind is not KeyType.UNKNOWN:
            table.note(f"{name} is a limit of numbers, but {key} is a {kind.name.lower()}: give allowed", name)
        elif (why := wrong_value(key, str(limit))) is not None:
            table.note(f"{name}: {why}", name)
    for index, text in enumerate(allowed):
        if (why := wrong_value(key, text)) is not None:
            table.note(f"allowed: {why}", *table.at("allowed", index))
        elif INTEGER.fullmatch(text) and (
            (least is not None and int(text) < least and not _is_unlimited(key, int(text)))
            or (most is not None and int(text) > most)
        ):
            table.note(f"allowed: {text} is outside of min and max", *table.at("allowed", index))


def _number(key: str, value: str) -> int | float:
    if INTEGER.fullmatch(value):
        return int(value)  # a float cannot tell 2^53 from 2^53 + 1
    try:
        number = parse_value(key, KeyType.DOUBLE, value)
    except InvalidValueError:
        raise UnreadableConfigError(f"{key} is no number") from None
    assert isinstance(number, float)
    return number


def _is_unlimited(key: str, number: float) -> bool:
    return number < 0 and key in UNLIMITED_BELOW_ZERO


def _may_be_unlimited(key: str, number: float) -> bool:
    """Whether a number means no limit, or may mean it, which is so for a negative value of an
    unknown key.
    """
    return number < 0 and (key in UNLIMITED_BELOW_ZERO or key not in TYPES)
