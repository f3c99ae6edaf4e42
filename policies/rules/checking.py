"""Checks an expression before it is used: its names, fields and types, and the cost of evaluating
it.

Rule: only what is certainly wrong is a mistake; nothing is said about unknown types. Cost is
bounded in advance, because the native engine holds Python's interpreter lock while it evaluates. A
comprehension within another one may only go over what the outer one yields, so that the cost grows
with the size of the request and not with its square.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import msgspec
import re2

from .matching import compiled_regex
from .operators import LITERALS, an, comparable, literal_type, literal_value, operations_named, type_of_operation
from .plausible import Doubt, implausible
from .syntax import SyntaxFault, SyntaxNode, parse
from .vocabulary import (
    ANY,
    BOOL,
    FLAT,
    FUNCTIONS,
    INT,
    MACROS,
    METHODS,
    OPERATIONS,
    STRING,
    VARIABLES,
    Type,
    entry_of,
    list_of,
    map_of,
    or_null,
)

MAX_LITERAL_LIST = 32
"""How many elements a literal list may have that an inner comprehension goes over."""
MAX_NESTED = 3
"""How deep comprehensions may be nested."""

CONFIG_MAPS = frozenset({"configs", "raw_configs", "effective_configs", "config_operations", "config_operation_kinds"})


class ExpressionFaults(Exception):  # noqa: N818 - they are what is wrong with an expression
    """The mistakes in an expression, in the order in which they were found."""

    def __init__(self, faults: Sequence[SyntaxFault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)


class Checked(msgspec.Struct, frozen=True):
    text: str
    """The expression for the engine. Each field is a variable of its own there, and `matches` is
    replaced by a function of ours.
    """
    fields: frozenset[tuple[str, str]]
    """The pairs (variable, field) that it reads; only these are given to the engine. A field may be
    followed by FLAT and a key in hexadecimal, which means this entry of a map, and by FLAT at the
    end, which means whether the field or entry exists.
    """
    regexes: tuple[str, ...]
    compared_with_null: frozenset[str]
    operations: tuple[tuple[str, int], ...] = ()
    """The operations that it compares `request.operation` with, each with its place."""
    doubts: tuple[SyntaxFault, ...] = ()
    """What is strange in some clusters only."""


def check(text: str, wanted: Type, operations: frozenset[str] = frozenset(OPERATIONS)) -> Checked:
    """Check an expression, which must have the type `wanted`, of a rule that judges these
    operations. Raises ExpressionFaults with every mistake, or with only the first mistake in
    grammar.
    """
    checker = _Checker(text)
    try:
        tree = parse(text)
    except SyntaxFault as fault:
        raise ExpressionFaults([fault]) from None
    found = checker.type_of(tree)
    if found.name not in {wanted.name, "any"}:
        checker.faults.append(SyntaxFault(tree.at, f"is {an(found)}, but must be {an(wanted)}"))
    strange = list(implausible(tree, operations))
    checker.faults += [each for each in strange if not isinstance(each, Doubt)]
    if checker.faults:
        raise ExpressionFaults(checker.faults)
    return Checked(
        checker.engine_text(),
        frozenset(checker.fields),
        tuple(checker.regexes),
        frozenset(checker.compared_with_null),
        tuple(checker.operations),
        tuple(each for each in strange if isinstance(each, Doubt)),
    )


class _Checker:
    def __init__(self, text: str) -> None:
        self.faults: list[SyntaxFault] = []
        self._engine = EngineText(text)
        self.fields: set[tuple[str, str]] = set()
        self.regexes: list[str] = []
        self.compared_with_null: set[str] = set()
        self.operations: list[tuple[str, int]] = []
        self._bound: list[tuple[str, Type]] = []

    def engine_text(self) -> str:
        return self._engine.rewritten()

    def type_of(self, node: SyntaxNode) -> Type:
        """Return the type of a node. A faulty node has any type, so that its mistake is reported
        once.
        """
        try:
            return self._type_of(node)
        except SyntaxFault as fault:
            self.faults.append(fault)
            return ANY

    def _type_of(self, node: SyntaxNode) -> Type:
        if node.kind in LITERALS:
            return literal_type(node)
        special = getattr(self, f"_{node.kind}", None)
        if special is not None:
            kind: Type = special(node)
            return kind
        if node.kind.startswith("unary"):
            return self._unary(node)
        if node.kind in {"||", "&&"}:
            for part in node.parts:
                self._demand(part, BOOL, f"{node.kind} takes")
            return BOOL
        return self._operator(node)

    def _demand(self, node: SyntaxNode, wanted: Type, why: str) -> None:
        found = self.type_of(node)
        if found.name not in {wanted.name, "any"}:
            self.faults.append(SyntaxFault(node.at, f"has {an(found)} where {why} {an(wanted)}"))

    # ------------------------------------------------------------------ names and fields

    def _name(self, node: SyntaxNode) -> Type:
        for name, kind in reversed(self._bound):
            if name == node.text:
                return kind
        if node.text == "principal":
            self.fields.add(("principal", ""))
            return or_null(STRING)
        if node.text in VARIABLES:
            raise SyntaxFault(node.at, f"takes {node.text} as a whole: name one of its fields, or compare it with null")
        raise SyntaxFault(
            node.at, f"names {node.text}, which is unknown{_nearest(node.text, [*VARIABLES, 'principal'])}"
        )

    def _select(self, node: SyntaxNode) -> Type:
        [of] = node.parts
        if self._is_variable(of):
            return self._field(of.text, node)
        kind = self.type_of(of)
        if kind.name == "map" and kind.key in {STRING, ANY}:
            return kind.item or ANY
        if kind.name == "any":
            return ANY
        hint = ""
        if of.kind == "select" and self._is_configs(of):
            hint = f'; a config is written ["{of.text}.{node.text}"]'
        raise SyntaxFault(node.at, f"reads {node.text} of {an(kind)}, which does not have it{hint}")

    def _is_variable(self, node: SyntaxNode) -> bool:
        return node.kind == "name" and node.text in VARIABLES and all(name != node.text for name, _ in self._bound)

    def _is_configs(self, node: SyntaxNode) -> bool:
        return node.parts[0].kind == "select" and node.parts[0].text in CONFIG_MAPS

    def _field(self, variable: str, node: SyntaxNode) -> Type:
        kind = VARIABLES[variable].get(node.text)
        if kind is None:
            raise SyntaxFault(node.at, f"{variable} has no {node.text}{_nearest(node.text, VARIABLES[variable])}")
        self.fields.add((variable, node.text))
        self._engine.replace(node.parts[0].at, node.at, f"{variable}{FLAT}")
        if self._bound and kind.name == "list":
            raise SyntaxFault(node.at, f"takes {variable}.{node.text} within a comprehension: once for each element")
        return kind

    def _index(self, node: SyntaxNode) -> Type:
        of, index = node.parts
        if (
            self._is_entry(of, index)
            and (end := self._engine.after(index, "]"))
            and self._engine.between(of, index) == "["
        ):
            return self._entry(of, index, "", of.parts[0].at, end)
        kind, by = self.type_of(of), self.type_of(index)
        if kind.name == "any":
            return ANY
        if kind.name not in {"list", "map"}:
            raise SyntaxFault(node.at, f"looks with [] into {an(kind)}")
        key = INT if kind.name == "list" else kind.key or ANY
        if not comparable(key, by):
            raise SyntaxFault(index.at, f"looks for {an(by)} in a {kind}")
        return kind.item or ANY

    # ------------------------------------------------------------------ entries of maps

    def _is_entry(self, of: SyntaxNode, key: SyntaxNode) -> bool:
        """Whether an expression looks up a literal key in a map, so that only this entry has to be
        given to the engine.
        """
        return (
            of.kind == "select"
            and self._is_variable(of.parts[0])
            and VARIABLES[of.parts[0].text].get(of.text, ANY).key == STRING
            and key.kind == "string"
            and literal_type(key) == STRING
            and bool(literal_value(key))
        )

    def _entry(self, of: SyntaxNode, key: SyntaxNode, ending: str, begin: int, end: int) -> Type:
        variable, field = entry_of(of.parts[0].text, of.text, literal_value(key), ending)
        self.fields.add((variable, field))
        self._engine.replace(begin, end, f"{variable}{FLAT}{field}")
        return VARIABLES[variable][of.text].item or ANY

    # ------------------------------------------------------------------ operators

    def _choice(self, node: SyntaxNode) -> Type:
        condition, then, otherwise = node.parts
        self._demand(condition, BOOL, "? takes")
        one, other = self.type_of(then), self.type_of(otherwise)
        return one if one == other else ANY

    def _unary(self, node: SyntaxNode) -> Type:
        [inner] = node.parts
        if node.kind == "unary !":
            self._demand(inner, BOOL, "! takes")
            return BOOL
        kind = self.type_of(inner)
        if kind.name not in {"int", "double", "any"}:
            raise SyntaxFault(inner.at, f"has {an(kind)} where - takes a number")
        return kind

    def _operator(self, node: SyntaxNode) -> Type:
        left, right = node.parts
        if node.kind in {"==", "!="} and self._null_test(left, right):
            return BOOL
        if node.kind == "in" and self._is_entry(right, left) and self._engine.between(left, right.parts[0]) == "in":
            self._entry(right, left, FLAT, left.at, right.at + len(right.text))
            return BOOL
        one, other = self.type_of(left), self.type_of(right)
        self.operations += operations_named(left, right)
        return type_of_operation(node, one, other, joins_lists=not self._bound)

    def _null_test(self, left: SyntaxNode, right: SyntaxNode) -> bool:
        """Whether two nodes are compared as in `before == null`, the only use of a variable without
        a field.
        """
        for of, null in ((left, right), (right, left)):
            if null.kind == "null" and of.kind == "name" and of.text in {"before", "after"}:
                self.compared_with_null.add(of.text)
                self.fields.add((of.text, ""))
                return True
        return False

    # ------------------------------------------------------------------ calls

    def _call(self, node: SyntaxNode) -> Type:
        if node.text == "has" and not node.is_method:
            return self._has(node)
        if node.is_method and node.text in MACROS and len(node.parts) > 1:
            return self._comprehension(node)
        table = METHODS if node.is_method else FUNCTIONS
        if node.text not in table:
            other = FUNCTIONS if node.is_method else METHODS
            how = f": write {node.text}(...)" if node.is_method else f": write ....{node.text}(...)"
            known = how if node.text in other else _nearest(node.text, [*table, *(MACROS if node.is_method else ())])
            raise SyntaxFault(node.at, f"calls {node.text}, which is unknown{known}")
        takes, gives = table[node.text]
        if len(takes) != len(node.parts):
            raise SyntaxFault(node.at, f"calls {node.text} with {_counted(len(node.parts) - node.is_method)}")
        for allowed, part in zip(takes, node.parts, strict=True):
            kind = self.type_of(part)
            if kind.name not in allowed and kind.name != "any":
                raise SyntaxFault(part.at, f"calls {node.text} with {an(kind)}")
        if node.text == "matches":
            self._regex(node)
        return gives

    def _regex(self, node: SyntaxNode) -> None:
        pattern = node.parts[1]
        if pattern.kind != "string":
            raise SyntaxFault(
                pattern.at, "gives matches a pattern that is not written out: it must be known beforehand"
            )
        try:
            compiled_regex(literal_value(pattern))
        except re2.error as error:
            raise SyntaxFault(pattern.at, f"has a bad regular expression: {_said(error)}") from None
        self.regexes.append(literal_value(pattern))
        self._engine.replace(node.at, node.at, "_")

    def _has(self, node: SyntaxNode) -> Type:
        if len(node.parts) != 1 or node.parts[0].kind != "select":
            raise SyntaxFault(node.at, 'gives has something that is not a field; keys are looked for with "key" in map')
        [field] = node.parts
        [of] = field.parts
        if of.kind == "name" and of.text in VARIABLES and field.text in VARIABLES[of.text]:
            self.fields |= {(of.text, field.text), (of.text, f"{field.text}{FLAT}")}
            self._engine.replace(node.at, node.at + len(node.text), "")
            self._engine.replace(of.at, field.at + len(field.text), f"{of.text}{FLAT}{field.text}{FLAT}")
            return BOOL
        self.type_of(field)
        return BOOL

    def _comprehension(self, node: SyntaxNode) -> Type:
        over, variable, *bodies = node.parts
        if variable.kind != "name" or len(bodies) not in ({1, 2} if node.text == "map" else {1}):
            raise SyntaxFault(node.at, f"calls {node.text} otherwise than as {node.text}(x, ...)")
        if variable.text in VARIABLES or variable.text == "principal" or FLAT in variable.text:
            raise SyntaxFault(variable.at, f"calls its own variable {variable.text}, which is taken")
        kind = self.type_of(over)
        if kind.name not in {"list", "map", "any"}:
            raise SyntaxFault(over.at, f"calls {node.text} on {an(kind)}")
        self._bound_cost(node, over)
        item = (kind.key if kind.name == "map" else kind.item) or ANY
        self._bound.append((variable.text, item))
        for condition in bodies[:-1] if node.text == "map" else bodies:
            self._demand(condition, BOOL, f"{node.text} takes")
        made = self.type_of(bodies[-1]) if node.text == "map" else BOOL
        self._bound.pop()
        return {"map": list_of(made), "filter": list_of(item)}.get(node.text, BOOL)

    def _bound_cost(self, node: SyntaxNode, over: SyntaxNode) -> None:
        if len(self._bound) >= MAX_NESTED:
            raise SyntaxFault(node.at, f"has more than {MAX_NESTED} comprehensions within each other")
        if not self._bound or (over.kind == "list" and len(over.parts) <= MAX_LITERAL_LIST):
            return
        if _root(over) != self._bound[-1][0]:
            raise SyntaxFault(
                node.at, f"goes over the same for each element: {node.text} may go over what the outer one yields"
            )

    def _list(self, node: SyntaxNode) -> Type:
        kinds = {self.type_of(part) for part in node.parts}
        return list_of(kinds.pop() if len(kinds) == 1 else ANY)

    def _map(self, node: SyntaxNode) -> Type:
        keys = {self.type_of(part) for part in node.parts[::2]}
        items = {self.type_of(part) for part in node.parts[1::2]}
        return map_of(keys.pop() if len(keys) == 1 else ANY, items.pop() if len(items) == 1 else ANY)


def _root(node: SyntaxNode) -> str:
    while node.kind in {"select", "index"} or (node.kind == "call" and node.is_method):
        node = node.parts[0]
    return node.text if node.kind == "name" else ""


def _counted(arguments: int) -> str:
    return "one argument" if arguments == 1 else f"{arguments or 'no'} arguments"


def _nearest(name: str, known: Mapping[str, object] | list[str]) -> str:
    near = get_close_matches(name, list(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(_sorted(known))}"


def _sorted(known: Mapping[str, object] | list[str]) -> Iterator[str]:
    return iter(sorted(known))


def _said(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


class EngineText:
    """The text of an expression as the engine gets it, with replacements that are made all at once.

    An expression is checked as its author wrote it, and positions are those of that text. The
    engine's text has no maps, which it would copy key by key, and no regular expressions, which it
    would compile for each evaluation.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._edits: list[tuple[int, int, str]] = []
        """Replacements in the text: begin, end, and the new text."""

    def replace(self, begin: int, end: int, words: str) -> None:
        self._edits.append((begin, end, words))

    def rewritten(self) -> str:
        text = self._text
        for start, end, words in sorted(self._edits, reverse=True):
            text = f"{text[:start]}{words}{text[end:]}"
        return text

    def between(self, left: SyntaxNode, right: SyntaxNode) -> str:
        """Return the text between two nodes. With parentheses or comments it is more than the
        operator.
        """
        return self._text[left.at + len(left.text) : right.at].strip()

    def after(self, node: SyntaxNode, closing: str) -> int:
        """Return the offset after the closing sign that follows the node; 0 if another text
        follows.
        """
        rest = self._text[node.at + len(node.text) :]
        return len(self._text) - len(rest.lstrip()) + 1 if rest.lstrip().startswith(closing) else 0
