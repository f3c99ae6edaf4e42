"""The types that operators take and give, in expressions of rules.

Rule: types that can never go together are a mistake; nothing is said about a value of any type.
"""

from collections.abc import Mapping

from .syntax import SyntaxFault, SyntaxNode
from .vocabulary import ANY, BOOL, BYTES, DURATION, NUMBERS, STRING, TIMESTAMP, Type, list_of

EQUALITY = frozenset({"==", "!="})
ORDER = frozenset({"<", "<=", ">", ">="})
ORDERED = NUMBERS | {"string", "bytes", "bool", "timestamp", "duration"}
SUMS: Mapping[tuple[str, str, str], Type] = {
    ("+", "string", "string"): STRING,
    ("+", "bytes", "bytes"): BYTES,
    ("+", "timestamp", "duration"): TIMESTAMP,
    ("+", "duration", "timestamp"): TIMESTAMP,
    ("+", "duration", "duration"): DURATION,
    ("-", "timestamp", "duration"): TIMESTAMP,
    ("-", "timestamp", "timestamp"): DURATION,
    ("-", "duration", "duration"): DURATION,
}


def type_of_operation(node: SyntaxNode, one: Type, other: Type, *, joins_lists: bool) -> Type:
    """Return the type of an operator's result, given the types of both sides. `joins_lists` tells
    whether + may make a list of two, which costs as much as they are long. Raises SyntaxFault.
    """
    if node.kind == "in":
        return _membership(node, one, other)
    if node.kind in EQUALITY:
        if not comparable(one, other):
            raise SyntaxFault(node.at, f"compares {an(one)} with {an(other)}, which are never equal{_hint(one, other)}")
        return BOOL
    if "any" in {one.name, other.name}:
        return BOOL if node.kind in ORDER else ANY
    if node.kind in ORDER:
        if one.name not in ORDERED or (one.name != other.name and not {one.name, other.name} <= NUMBERS):
            raise SyntaxFault(node.at, f"compares {an(one)} with {an(other)}{_hint(one, other)}")
        return BOOL
    return _arithmetic(node, one, other, joins_lists=joins_lists)


def _arithmetic(node: SyntaxNode, one: Type, other: Type, *, joins_lists: bool) -> Type:
    if one.name == other.name and one.name in NUMBERS:
        return one
    if node.kind == "+" and one.name == other.name == "list" and joins_lists:
        return one if one == other else list_of(ANY)
    kind = SUMS.get((node.kind, one.name, other.name))
    if kind is None:
        raise SyntaxFault(node.at, f"has {node.kind} between {an(one)} and {an(other)}{_hint(one, other)}")
    return kind


def _membership(node: SyntaxNode, one: Type, other: Type) -> Type:
    if other.name not in {"list", "map", "any"}:
        raise SyntaxFault(node.at, f"has in before {an(other)}, which holds nothing")
    inner = other.key if other.name == "map" else other.item
    if inner is not None and not comparable(one, inner):
        raise SyntaxFault(node.at, f"looks for {an(one)} in a {other}")
    return BOOL


def comparable(one: Type, other: Type) -> bool:
    """Whether values of these types can be equal."""
    names = {one.name, other.name}
    if "any" in names or one.name == other.name or names <= NUMBERS:
        return True
    return "null" in names and (one.nullable or other.nullable)


def _hint(one: Type, other: Type) -> str:
    names = {one.name, other.name}
    if "string" in names and names & NUMBERS:
        return ": convert with int(...) or string(...)"
    return ""


def an(kind: Type) -> str:
    """Return the name of a type with its article."""
    return f"an {kind}" if kind.name[0] in "aeiou" else f"a {kind}"
