"""The types of literals, and those that operators take and give, in expressions of rules.

Rule: types that can never go together are a mistake, and so is a string that means something else
than its author thinks; nothing is said about a value of any type.
"""

from collections.abc import Iterator, Mapping

import cel

from ..interface import ANONYMOUS
from .syntax import SyntaxFault, SyntaxNode
from .vocabulary import ANY, BOOL, BYTES, DOUBLE, DURATION, INT, NULL, NUMBERS, STRING, TIMESTAMP, UINT, Type, list_of

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
LITERALS = {"bool": BOOL, "null": NULL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES}


def type_of_operation(node: SyntaxNode, one: Type, other: Type, *, joins_lists: bool) -> Type:
    """Return the type of an operator's result, given the types of both sides. `joins_lists` says
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


def literal_value(node: SyntaxNode) -> str:
    try:
        value = cel.compile(node.text).execute()
    except (ValueError, RuntimeError):
        raise SyntaxFault(node.at, "has an escape that CEL does not know") from None
    assert isinstance(value, str)
    return value


def literal_type(node: SyntaxNode) -> Type:
    if node.kind != "string":
        return LITERALS[node.kind]
    if "b" in node.text[:2].lower().split(node.text[-1])[0]:
        return BYTES
    if literal_value(node) == ANONYMOUS:  # such a condition would never be true for clients that are not authenticated
        raise SyntaxFault(
            node.at,
            f"names {ANONYMOUS}, a user of that name: for clients that are not authenticated, write principal == null",
        )
    return STRING


def operations_named(left: SyntaxNode, right: SyntaxNode) -> Iterator[tuple[str, int]]:
    """Yield the literals that `request.operation` is compared with, or looked for among."""
    for of, other in ((left, right), (right, left)):
        if of.kind == "select" and of.text == "operation" and of.parts[0].text == "request":
            literals = other.parts if other.kind == "list" else (other,)
            yield from (
                (literal_value(each), each.at)
                for each in literals
                if each.kind == "string" and literal_type(each) == STRING
            )
