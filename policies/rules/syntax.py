"""Parses CEL to a tree with positions, which the checks of a rule work on.

Rule: the native engine sees an expression only after this parser accepted it. The grammar is CEL's
without messages, which rules do not have. Size and depth are bounded, because the native parser and
evaluator recurse: with a small stack, a chain of some hundred members or some fifty nested brackets
end the process by a segmentation fault.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

MAX_CHARACTERS = 4_000
MAX_DEPTH = 24
"""How deep brackets, operators and the links of a chain may be nested. A chain of `&&` or `||`
counts as one, however long it is.
"""

TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\r\n\f]|//[^\n]*+)++)
    |(?P<string>(?i:[rb]|rb|br)?(?:'''(?:[^'\\]|\\.|'(?!''))*+'''|\"\"\"(?:[^"\\]|\\.|"(?!""))*+\"\"\"|'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"))
    |(?P<double>\d++\.\d++(?:[eE][+-]?\d++)?|\d++[eE][+-]?\d++|\.\d++(?:[eE][+-]?\d++)?)
    |(?P<int>0[xX][0-9a-fA-F]++|\d++)(?P<uint>[uU])?
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
T = TypeVar("T")

WORDS = {"true": "bool", "false": "bool", "null": "null"}
RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
        "in",
    ]
)
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"<", "<=", ">", ">=", "==", "!=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)


class SyntaxFault(Exception):  # noqa: N818 - it is what is wrong with an expression
    """A mistake in an expression, at the character `at`. The message is a sentence without its
    subject.
    """

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


class SyntaxNode(msgspec.Struct, frozen=True):
    """A node of an expression's tree. `kind` is name, select, index, call, list, map, choice, a
    literal's type, or an operator.
    """

    kind: str
    at: int
    text: str = ""
    """The name, the field, the function, or the literal as written."""
    parts: tuple["SyntaxNode", ...] = ()
    is_method: bool = False
    """For a call: whether the first part is the object whose method is called."""
    depth: int = 1


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    at: int


def parse(text: str) -> SyntaxNode:
    """Return the tree of an expression. Raises SyntaxFault."""
    if len(text) > MAX_CHARACTERS:
        raise SyntaxFault(0, f"is longer than {MAX_CHARACTERS} characters")
    parser = _Parser(_tokens(text))
    tree = parser.expression()
    parser.expect("end")
    return tree


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise SyntaxFault(at, f"has {text[at]!r}, which CEL does not have")
        kind = str(found.lastgroup)
        if kind == "name" and found[0] in WORDS:
            kind = WORDS[found[0]]
        elif kind == "name" and found[0] in RESERVED:
            kind = "sign" if found[0] == "in" else "reserved"
        if kind != "space":
            tokens.append(_Token(kind, found[0], at))
        at = found.end()
    tokens.append(_Token("end", "", len(text)))
    return tokens


class _Parser:
    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._open = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _sees(self, sign: str) -> bool:
        return self._token.kind == "sign" and self._token.text == sign

    def expect(self, wanted: str) -> _Token:
        token = self._token
        if token.kind != wanted and not (token.kind == "sign" and token.text == wanted):
            seen = "ends" if token.kind == "end" else f"has {token.text}"
            raise SyntaxFault(token.at, f"{seen} where {_called(wanted)} is expected")
        return self._take()

    def expression(self) -> SyntaxNode:
        self._open += 1
        if self._open > MAX_DEPTH:
            raise _too_deep(self._token.at)
        condition = self._binary(0)
        if self._sees("?"):
            at = self._take().at
            then = self._binary(0)
            self.expect(":")
            condition = _node("choice", at, parts=(condition, then, self.expression()))
        self._open -= 1
        return condition

    def _binary(self, level: int) -> SyntaxNode:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        if level < 2:
            return self._chained(level, left)
        while self._token.kind == "sign" and self._token.text in LEVELS[level]:
            operator = self._take()
            left = _node(operator.text, operator.at, parts=(left, self._binary(level + 1)))
        return left

    def _chained(self, level: int, first: SyntaxNode) -> SyntaxNode:
        [operator] = LEVELS[level]
        at, parts = self._token.at, [first]
        while self._sees(operator):
            self._take()
            parts.append(self._binary(level + 1))
        return first if len(parts) == 1 else _node(operator, at, parts=tuple(parts))

    def _unary(self) -> SyntaxNode:
        signs = []
        while self._sees("!") or self._sees("-"):
            signs.append(self._take())
        if len(signs) > 1:
            raise SyntaxFault(signs[1].at, f"has {signs[0].text} twice: use brackets")
        inner = self._member()
        return _node(f"unary {signs[0].text}", signs[0].at, parts=(inner,)) if signs else inner

    def _member(self) -> SyntaxNode:
        node = self._primary()
        while True:
            if self._sees("."):
                self._take()
                name = self.expect("name")
                if self._sees("("):
                    node = _node("call", name.at, name.text, (node, *self._arguments("(", ")")), is_method=True)
                else:
                    node = _node("select", name.at, name.text, (node,))
            elif self._sees("["):
                at = self._take().at
                node = _node("index", at, parts=(node, self.expression()))
                self.expect("]")
            else:
                return node

    def _primary(self) -> SyntaxNode:
        token = self._token
        if token.kind == "name":
            self._take()
            if self._sees("("):
                return _node("call", token.at, token.text, tuple(self._arguments("(", ")")))
            return _node("name", token.at, token.text)
        if self._sees("("):
            self._take()
            inner = self.expression()
            self.expect(")")
            return inner
        if self._sees("["):
            return _node("list", token.at, parts=tuple(self._arguments("[", "]")))
        if self._sees("{"):
            return self._map()
        if token.kind in {"sign", "end", "reserved"}:
            self.expect("a value")
        self._take()
        return _node(token.kind, token.at, token.text)

    def _arguments(self, opening: str, closing: str) -> list[SyntaxNode]:
        self.expect(opening)
        return self._until(closing, self.expression)

    def _map(self) -> SyntaxNode:
        at = self.expect("{").at
        entries = self._until("}", self._entry)
        return _node("map", at, parts=tuple(part for entry in entries for part in entry))

    def _entry(self) -> tuple[SyntaxNode, SyntaxNode]:
        key = self.expression()
        self.expect(":")
        return key, self.expression()

    def _until(self, closing: str, item: Callable[[], T]) -> list[T]:
        items: list[T] = []
        while not self._sees(closing):
            if items:
                self.expect(",")
                if self._sees(closing) and closing != ")":
                    break
            items.append(item())
        self.expect(closing)
        return items


def _node(
    kind: str, at: int, text: str = "", parts: tuple[SyntaxNode, ...] = (), *, is_method: bool = False
) -> SyntaxNode:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise _too_deep(at)
    return SyntaxNode(kind, at, text, parts, is_method, depth)


def _too_deep(at: int) -> SyntaxFault:
    return SyntaxFault(at, f"is nested deeper than {MAX_DEPTH} levels: split the rule")


def _called(wanted: str) -> str:
    return {"end": "the end", "name": "a name", "a value": "a value"}.get(wanted, repr(wanted))
