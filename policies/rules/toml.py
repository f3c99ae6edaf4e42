"""Parses TOML, and says in plain words where a text is not TOML and what is missing there.

Rule: every text gives a document or a `TomlError` with a line and a column, both from 1. Where
something is not closed, that is the place where it begins.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import msgspec

from ...text import escaped

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*+)
      | (?P<text>"{3}(?:\\.|[^"\\]|"(?!""))*+"{3}"{0,2}+ | '{3}(?:[^']|'(?!''))*+'{3}'{0,2}+
               | "(?!"")(?:\\.|[^"\\\n])*+" | '(?!'')[^'\n]*+')
      | (?P<quote>"{3}|'{3}|"|')
      | (?P<sign>[\[\]{}\n])
      | (?P<other>[^"'\#\[\]{}\n]++)""",
    re.VERBOSE | re.DOTALL,
)
_LINE_END = re.compile(r"\n")
_PLACE = re.compile(r"\(at line (?P<line>[0-9]{1,9}), column (?P<column>[0-9]{1,9})\)\Z")
_WORD = re.compile(r"[^\s,\]}#=]{1,40}+")
_KEY = re.compile(r"[^=\n]{1,80}+")
_CLOSING = {"[": "]", "{": "}"}
_NAMES = {"[": "list", "{": "table"}
_ONCE = "a key stands once in its table, and a table that is repeated is [[name]] each time"
_NO_ESCAPE = (
    r'a \ between " begins an escape such as \\ or \n, and here it begins none: '
    r"write \\, or put the text between single quotes"
)
_TOO_DEEP = "it is nested too deeply, or has a number that is too large"

_PLAIN = (
    ("Expected '=' after a key", "after the key here, = and its value are missing"),
    ("Expected ']' at the end", "the ] that ends the name of a table is missing here"),
    ("Expected ']]' at the end", "the ]] that ends the name of a table is missing here"),
    (
        "Expected newline or end",
        (
            "what follows here does not belong to the value before it: "
            "each key has a line of its own, and text stands between quotes"
        ),
    ),
    (
        "Invalid statement",
        (
            "here a key or the name of a table must begin; "
            "a name with other characters than letters, digits, - and _ stands between quotes"
        ),
    ),
    ("Invalid initial character for a key", "a key is missing here"),
    ("Cannot mutate", "the table that this key belongs to was closed by its } already"),
    ("Invalid hex value", "after \\u four hexadecimal digits are missing here, after \\U eight"),
    ("Escaped character is not", "the escape that ends here is no character"),
    ("Invalid date", "the date or time that ends here does not exist"),
)
"""How tomllib's messages begin, and what is said instead."""


class TomlError(Exception):
    """A text is not TOML. The message is the end of a sentence about the place."""

    def __init__(self, line: int, column: int, said: str) -> None:
        super().__init__(said)
        self.line = line
        self.column = column


class _Open(msgspec.Struct):
    """The brackets and the quote that are not closed at a place of a text."""

    brackets: list[int]
    quote: int | None = None
    statement: int = 0
    """The beginning of the statement at this place."""


def decoded(data: bytes) -> str:
    """Return the content of a file as text, without a byte order mark and with plain line ends.
    Raises TomlError.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start]
        kind = ", but UTF-16: save it as UTF-8" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise TomlError(line, len(before.decode(errors="replace")) + 1, f"the file is not UTF-8{kind}") from None


def parse_toml(text: str) -> Mapping[str, Any]:
    """Parse a text that `decoded` returned. Raises TomlError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _explained(text, str(error)) from None
    except (RecursionError, ValueError):
        raise TomlError(1, 1, f"this is not TOML that can be read: {_TOO_DEEP}") from None


def _explained(text: str, message: str) -> TomlError:
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    place = _PLACE.search(message)
    offset = len(text) if place is None else starts[int(place["line"]) - 1] + int(place["column"]) - 1
    at, said = _said(text, offset, message, starts)
    line, column = _line_column(starts, at)
    return TomlError(line, column, f"this is not TOML: {said}")


def _line_column(starts: list[int], offset: int) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


def _said(text: str, offset: int, message: str, starts: list[int]) -> tuple[int, str]:
    """Return the place of a mistake that tomllib found at `offset`, and what it is."""
    is_open = _open_at(text, offset)
    if is_open.quote is not None:
        return is_open.quote, _unclosed_text(text, is_open.quote)
    ends = offset >= len(text.rstrip()) and text[is_open.statement : is_open.statement + 1] != "["
    if is_open.brackets and (ends or message.startswith(("Unclosed array", "Unclosed inline table"))):
        return _unclosed(text, is_open.brackets[-1], offset, starts)
    if message.startswith(("Cannot overwrite", "Cannot declare")):
        key = _KEY.match(text, is_open.statement)
        name = escaped(key[0].strip()) if key else "this key"
        return is_open.statement, f"{name} is there already: {_ONCE}"
    if message.startswith("Unescaped '\\'"):
        return text.rfind("\\", 0, offset), _NO_ESCAPE
    if message.startswith(("Illegal character", "Found invalid character")):
        return offset, _no_character(text[offset : offset + 1])
    hint = ""
    if is_open.brackets and text[is_open.statement] != "[":
        begun = is_open.brackets[0]
        hint = f"; or the {_begun(text, begun, starts)} lacks its {_CLOSING[text[begun]]}"
    if message.startswith("Invalid value"):
        return offset, _no_value(text, offset) + hint
    plain = next((said for begin, said in _PLAIN if message.startswith(begin)), message.partition(" (at ")[0])
    return offset, plain + hint


def _open_at(text: str, offset: int) -> _Open:
    found = _Open([])
    position = 0
    while position < offset and (token := _TOKEN.match(text, position)) is not None:
        if token["quote"]:
            found.quote = position
            return found
        sign = token["sign"]
        if sign == "\n" and not found.brackets:
            found.statement = position + 1
        elif sign in _CLOSING:
            found.brackets.append(position)
        elif sign in ("]", "}") and found.brackets:
            found.brackets.pop()
        position = token.end()
    return found


def _unclosed_text(text: str, quote: int) -> str:
    mark = text[quote] * (3 if text.startswith(text[quote] * 3, quote) else 1)
    return f"the text that begins here is not closed: its {mark} is missing{'' if len(mark) == 3 else ' on this line'}"


def _unclosed(text: str, begun: int, offset: int, starts: list[int]) -> tuple[int, str]:
    sign = text[begun]
    closing = f"its {_CLOSING[sign]} is missing"
    if offset >= len(text.rstrip()):
        return begun, f"the {_NAMES[sign]} that begins here is not closed: {closing}"
    if sign == "{" and text[offset] == "\n":
        return (
            begun,
            f"the {_NAMES[sign]} that begins here is not closed: {closing} on this line, on which all of it stands",
        )
    return offset, f"a comma is missing here, or the {_begun(text, begun, starts)} is not closed: {closing}"


def _begun(text: str, begun: int, starts: list[int]) -> str:
    line, column = _line_column(starts, begun)
    return f"{_NAMES[text[begun]]} that begins at line {line}, column {column}"


def _no_value(text: str, offset: int) -> str:
    word = _WORD.match(text, offset)
    if word is None:
        return "a value is missing here"
    if word[0][0] in "\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb":
        return f'{word[0][0]} is no quote of TOML: write "'
    if not word[0][0].isprintable():
        return _no_character(word[0][0])
    return f'{escaped(word[0])} is no value: text stands between quotes, as in "text"'


def _no_character(character: str) -> str:
    return f"the character U+{ord(character or chr(0)):04X} cannot stand here"
