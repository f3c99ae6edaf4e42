"""The schema part of docs/audit.md, generated from the structs by `python -m
tests.audit.document`.
"""

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from minicontroller.audit import event
from minicontroller.audit.event import (
    AuditEvent,
    EntityChange,
    Event,
    NamedState,
    PolicyDecision,
    RecordedState,
    Requested,
    RuleFinding,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "audit.md"
HEADING = "## Schema, version 1\n"
PARTS = (RecordedState, Requested, EntityChange, NamedState, PolicyDecision, RuleFinding)
NAMES = {"int": "number", "str": "string", "bool": "boolean", "NoneType": "null"}


def kinds() -> list[type[Event]]:
    return list(typing.get_args(AuditEvent))


def explanations(struct: type) -> dict[str, str]:
    """By field: what the source says below it."""
    body = next(
        node.body
        for node in ast.parse(inspect.getsource(event)).body
        if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    )
    found = {}
    for field, below in zip_longest(body, body[1:]):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = " ".join(str(below.value.value).split())
            found[field.target.id] = text
    return found


def shown(kind: object) -> str:
    """A type, as JSON has it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(map(shown, arguments))
    if origin is tuple:
        return f"array of {shown(arguments[0])}"
    if origin is dict:
        return f"object of {shown(arguments[1])}"
    assert isinstance(kind, type)
    if issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return NAMES.get(kind.__name__, "string")


def table(struct: type[msgspec.Struct], *, without: frozenset[str] = frozenset()) -> Iterator[str]:
    told = explanations(struct)
    hints = typing.get_type_hints(struct)
    fields = [name for name in struct.__struct_fields__ if name not in without]
    if fields:
        yield "\n| field | type | what |\n|---|---|---|\n"
    for name in fields:
        yield f"| `{name}` | {shown(hints[name])} | {told[name]} |\n"


def prose(struct: type) -> str:
    """A docstring as a paragraph, as wide as all prose is."""
    return textwrap.fill(" ".join((struct.__doc__ or "").split()), 100, break_on_hyphens=False)


def text() -> str:
    common = frozenset(Event.__struct_fields__)
    lines = ["\nEvery event has its `kind`, and:\n", *table(Event)]
    for struct in kinds():
        lines += [f"\n### `{struct.__struct_config__.tag}`\n\n{prose(struct)}\n", *table(struct, without=common)]
    for part in PARTS:
        lines += [f"\n### {part.__name__}\n\n{prose(part)}\n", *table(part)]
    return "".join(lines)


if __name__ == "__main__":
    DOCUMENT.write_text(DOCUMENT.read_text().partition(HEADING)[0] + HEADING + text())
