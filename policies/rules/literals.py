"""The types and values of literals in expressions.

Rule: a string that means something else than its author thinks is a mistake.
"""

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
