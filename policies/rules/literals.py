"""The types and values of literals in expressions.

Rule: a string that means something else than its author thinks is a mistake.
"""

from collections.abc import Iterator

import cel

from ..interface import ANONYMOUS
from .syntax import SyntaxFault, SyntaxNode
from .vocabulary import BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT, Type

LITERALS = {"bool": BOOL, "null": NULL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES}


def literal_value(node: SyntaxNode) -> str:
    """Return the value of a string literal, as the engine reads it."""
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
