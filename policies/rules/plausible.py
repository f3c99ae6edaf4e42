"""Finds conditions in an expression that no request can ever meet, or that fail for every request:
unknown APIs and configs, names that nothing has, times that CEL cannot read.

Rule: it knows what the fields of a request can hold, and says only what is certain. What only some
clusters have is a doubt. `checking.py` checks names and types, whatever the values are.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

import cel

from ..configs.canonical import canonical, type_of
from ..configs.known import NUMBERS, Strange, strange_key, wrong_value
from ..configs.values import KeyType
from . import possible
from .matching import compiled_regex
from .operators import EQUALITY, ORDER, literal_type, literal_value
from .syntax import SyntaxFault, SyntaxNode
from .vocabulary import STRING, TOPICS

Field = tuple[str, str, str]
"""Variable, field and key of a map; empty where there is none."""
CONFIGS = frozenset({"configs", "raw_configs", "effective_configs", "config_operations", "config_operation_kinds"})
CANONICAL = frozenset({"configs", "effective_configs", "config_operations"})
CONVERSIONS = frozenset({"timestamp", "duration", "int", "uint", "double"})
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
RANGES: Mapping[str, tuple[int, int]] = {
    "getMonth": (0, 11),
    "getDate": (1, 31),
    "getDayOfWeek": (0, 6),
    "getHours": (0, 23),
    "getMinutes": (0, 59),
    "getSeconds": (0, 59),
}
"""The values of the parts of a time."""
PREDICATES: Mapping[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
    "matches": lambda word, pattern: compiled_regex(pattern).search(word.encode()) is not None,
}
TESTS: Mapping[Field, Mapping[str, Callable[[str], str | None]]] = {
    ("principal", "", ""): {
        "==": possible.principal,
        "startsWith": possible.beginning_of_principal,
        "matches": possible.principal_regex,
    },
    ("request", "topic", ""): {
        "==": possible.topic,
        "startsWith": possible.part_of_topic,
        "endsWith": possible.part_of_topic,
        "contains": possible.part_of_topic,
        "matches": possible.topic_regex,
    },
    ("request", "client_host", ""): {
        "==": possible.host,
        "startsWith": possible.part_of_host,
        "endsWith": possible.part_of_host,
        "contains": possible.part_of_host,
        "matches": possible.host_regex,
    },
}
"""Why a text can never pass a test of a field, by the test."""
WHAT = {"api": "no API that rules judge", "kind": "no kind of resource", "election_type": "no kind of election"}


class Doubt(SyntaxFault):
    """What is strange only in some clusters."""


def implausible(tree: SyntaxNode, operations: frozenset[str]) -> Iterator[SyntaxFault]:
    """Yield what is implausible in an expression of a rule that judges these operations."""
    if tree.kind in {"&&", "||"}:
        yield from _never_then(tree) if tree.kind == "&&" else ()
    for part in tree.parts:
        yield from implausible(part, operations)
    for at, strange in _about(tree, operations):
        yield SyntaxFault(at, strange.text) if strange.is_certain else Doubt(at, strange.text)


def _about(node: SyntaxNode, operations: frozenset[str]) -> Iterator[tuple[int, Strange]]:
    if (field := _field(node)) is not None and field[2] and (found := _strange_key(field, operations)) is not None:
        yield node.parts[1].at, found
    if node.kind in EQUALITY | ORDER:
        left, right = node.parts
        yield from _compared(left, right, node.kind)
        yield from _compared(right, left, TURNED[node.kind])
    elif node.kind == "in":
        yield from _looked_for(node.parts[0], node.parts[1], operations)
    elif node.kind == "call" and node.is_method and node.text in PREDICATES and len(node.parts) == 2:
        of, text = node.parts
        if (
            _is_text(text)
            and (field := _field(of)) is not None
            and (why := _untrue(field, node.text, text)) is not None
        ):
            yield text.at, Strange(why)
    elif node.kind == "call" and not node.is_method and node.text in CONVERSIONS and len(node.parts) == 1:
        yield from _converted(node)
    elif node.kind in {"/", "%"} and node.parts[1].text == "0":
        yield node.parts[1].at, Strange("divides by 0, which fails for every request")


# ------------------------------------------------------------------ fields and configs


def _field(node: SyntaxNode) -> Field | None:
    """Return the field that a node reads: `principal`, `request.api`, `after.configs["x"]`."""
    if node.kind == "name" and node.text == "principal":
        return "principal", "", ""
    if node.kind == "select" and node.parts[0].kind == "name":
        return node.parts[0].text, node.text, ""
    if node.kind == "index" and _is_text(node.parts[1]) and (of := _field(node.parts[0])) is not None and not of[2]:
        return of[0], of[1], literal_value(node.parts[1])
    return None


def _is_text(node: SyntaxNode) -> bool:
    try:
        return node.kind == "string" and literal_type(node) == STRING
    except SyntaxFault:  # which is a mistake already
        return False


def _is_config(field: Field) -> bool:
    return field[1] in CONFIGS and bool(field[2])


def _strange_key(field: Field, operations: frozenset[str]) -> Strange | None:
    """Return what is strange about the key of a config, if the rule judges nothing but topics and
    brokers: keys of ACLs or loggers are others.
    """
    if field[1] not in CONFIGS or not operations <= TOPICS | {"alter_broker"}:
        return None
    found = strange_key(field[2], of_brokers="alter_broker" in operations)
    return None if found is None else Strange(f"names {field[2]}, which {found.text}", found.is_certain)


def _looked_for(left: SyntaxNode, right: SyntaxNode, operations: frozenset[str]) -> Iterator[tuple[int, Strange]]:
    """Yield what is strange about the operands of `in`."""
    of = _field(right)
    if of is not None and not of[2] and _is_text(left):
        found = _strange_key((of[0], of[1], literal_value(left)), operations)
        if found is not None:
            yield left.at, found
    if right.kind == "list":
        for each in right.parts:
            yield from _compared(left, each, "==")


def _compared(of: SyntaxNode, with_: SyntaxNode, sign: str) -> Iterator[tuple[int, Strange]]:
    """Yield what is strange about a value that is compared with a literal."""
    field = _field(of)
    if of.kind == "call" and of.is_method and of.text in RANGES and with_.kind == "int":
        low, high = RANGES[of.text]
        if not low <= _integer(with_.text) <= high + (sign in {"<", ">="}):
            yield with_.at, Strange(f"compares {of.text}(), which is {low} to {high}, with {with_.text}")
    if field is None or not _is_text(with_):
        return
    if sign in ORDER:
        if _is_config(field) and type_of(field[2]) in NUMBERS:
            yield with_.at, Strange(f"compares {field[2]} as text, in which 10 is less than 9: convert it with {_conversion(field[2])}(...)")  # fmt: skip
    elif (why := _untrue(field, "==", with_)) is not None:
        yield with_.at, Strange(why)


def _integer(text: str) -> int:
    return int(text, 16 if text[:2].lower() == "0x" else 10)


def _untrue(field: Field, test: str, literal: SyntaxNode) -> str | None:
    text = literal_value(literal)
    if field in TESTS:
        reason = TESTS[field].get(test)
        why = None if reason is None else reason(text)
        return None if why is None else f"names {text!r}, which {why}"
    if field[1] == "config_operation_kinds" and field[2]:
        return None if _fits(possible.OPERATION_KINDS, test, text) else f"names {text!r}, which is no kind of operation{possible.near(text, possible.OPERATION_KINDS)}"  # fmt: skip
    if field[0] == "request" and field[1] in possible.WORDS:
        words = possible.WORDS[field[1]]
        return (
            None
            if _fits(words, test, text)
            else f"names {text!r}, which is {WHAT[field[1]]}{possible.near(text, words)}"
        )
    if _is_config(field) and test == "==":
        return _wrong_value(field, text)
    return None


def _fits(words: tuple[str, ...], test: str, text: str) -> bool:
    return text in words if test == "==" else any(PREDICATES[test](word, text) for word in words)


def _wrong_value(field: Field, text: str) -> str | None:
    if field[1] == "config_operations" and type_of(field[2]) is KeyType.LIST:
        return None  # the operand of an append may be anything
    if (why := wrong_value(field[2], text)) is not None:
        return f"compares {field[2]} with what it never is: {why}"
    shown = canonical(field[2], text)
    if field[1] in CANONICAL and shown != text:
        return f"compares {field[2]} with {text!r}, which rules see as {shown!r}"
    return None


# ------------------------------------------------------------------ numbers and times


def _conversion(key: str) -> str:
    return "double" if type_of(key) is KeyType.DOUBLE else "int"


def _converted(node: SyntaxNode) -> Iterator[tuple[int, Strange]]:
    """Yield why a conversion fails for every request."""
    [of] = node.parts
    field = _field(of)
    if _is_text(of):
        if not _can_be_read(node.text, literal_value(of)):
            yield of.at, Strange(f"gives {node.text} {literal_value(of)!r}, which it cannot read{_example(node.text, literal_value(of))}")  # fmt: skip
    elif field is not None and _is_config(field) and node.text in {"int", "uint", "double"}:
        kind = type_of(field[2])
        if kind is KeyType.DOUBLE and node.text != "double":
            yield of.at, Strange(f"converts {field[2]} with {node.text}, but it has decimals: use double(...)")
        elif kind not in NUMBERS and kind is not KeyType.UNKNOWN:
            yield of.at, Strange(f"converts {field[2]} to a number, which is a {kind.name.lower()}")


def _can_be_read(function: str, text: str) -> bool:
    if function == "timestamp":
        try:
            return datetime.fromisoformat(text).tzinfo is not None and _engine_reads(function, text)
        except ValueError:
            return False
    return _engine_reads(function, text)


def _engine_reads(function: str, text: str) -> bool:
    try:
        context = cel.Context({}, {})
        context.add_variable("text", text)
        cel.compile(f"{function}(text)").execute(context)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
        return False
    return True


def _example(function: str, text: str) -> str:
    match function:
        case "timestamp":
            day = text[:10] if len(text) >= 10 and text[4:5] == "-" else "2026-12-01"
            return f": a time has a zone, such as {day}T00:00:00Z"
        case "duration":
            return ": a duration has the units h, m, s and ms, such as 36h or 1h30m"
    return ""


def _never_then(node: SyntaxNode) -> Iterator[SyntaxFault]:
    """Yield the mistake that the time of a request must be after one time and before an earlier
    one.
    """
    after: datetime | None = None
    before: tuple[datetime, int] | None = None
    for part in node.parts:
        for of, with_, sign in _sides(part):
            time = _literal_time(with_)
            if time is None or _field(of) != ("request", "time", ""):
                continue
            if sign in {">", ">="}:
                after = time if after is None else max(after, time)
            if sign in {"<", "<="} and (before is None or time < before[0]):
                before = time, with_.at
    if after is not None and before is not None and before[0] <= after:
        yield SyntaxFault(
            before[1], f"is about times before {before[0].isoformat()} and after {after.isoformat()}, which none is"
        )


def _sides(node: SyntaxNode) -> Iterator[tuple[SyntaxNode, SyntaxNode, str]]:
    if node.kind in ORDER:
        left, right = node.parts
        yield left, right, node.kind
        yield right, left, TURNED[node.kind]


def _literal_time(node: SyntaxNode) -> datetime | None:
    if node.kind != "call" or node.text != "timestamp" or len(node.parts) != 1 or not _is_text(node.parts[0]):
        return None
    text = literal_value(node.parts[0])
    return datetime.fromisoformat(text) if _can_be_read("timestamp", text) else None
