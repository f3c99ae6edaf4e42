r"""Parses Kafka's configuration files, which have the format of java.util.Properties with comments,
continued lines and escapes.

Rule: every text gives a result with the line of each key, or a `PropertiesError`. The result is the
one of java.util.Properties, except that an unpaired surrogate is refused, because no configuration
can need one.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*+\\?", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*+[=:]?[ \t\f]*+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class PropertiesError(Exception):
    """A text is not in this format. The message is a sentence that names the file and the line."""


class Property(msgspec.Struct, frozen=True):
    """A key and its value. `line` is the line of the key, from 1."""

    key: str
    value: str
    line: int


class Properties(msgspec.Struct, frozen=True):
    entries: Mapping[str, Property]
    """The properties by key. Of a key that is repeated, the last one counts."""
    warnings: tuple[str, ...] = ()
    """A sentence for each key that is repeated."""


def parse_properties(text: str, name: str = "properties") -> Properties:
    """Parse the text of a file, which errors call `name`. Raises PropertiesError."""
    entries: dict[str, Property] = {}
    warnings = []
    for line, content in _logical_lines(text):
        entry = _property(content, line, name)
        before = entries.get(entry.key)
        if before is not None:
            warnings.append(f"{name}, line {line}: {entry.key} stands on line {before.line} already; this one holds.")
        entries[entry.key] = entry
    return Properties(entries, tuple(warnings))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, with continued lines joined, each with its first
    line's number.
    """
    begun, first, continued = "", 0, False
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        content = natural.lstrip(_BLANK)
        if not begun:
            # After a lone backslash nothing has begun yet: a comment may still follow, an empty
            # line ends nothing more.
            if not content or content[0] in "#!":
                continued = continued and not content
                continue
            first = first if continued else number
        if _is_continued(content):
            begun, continued = begun + content[:-1], True
            continue
        yield first, begun + content
        begun, continued = "", False
    if begun or (continued and _ends_in_backslash(text)):
        yield first, begun


def _ends_in_backslash(text: str) -> bool:
    """Whether a text ends with a lone backslash, which is an empty key to Java."""
    return text.endswith(("\\", "\\\n", "\\\r"))


def _is_continued(content: str) -> bool:
    return (len(content) - len(content.rstrip("\\"))) % 2 == 1


def _property(content: str, line: int, name: str) -> Property:
    key = _KEY.match(content)
    end = key.end() if key else 0
    separator = _SEPARATOR.match(content, end)
    start = separator.end() if separator else end
    where = f"{name}, line {line}"
    return Property(_unescaped(content[:end], where), _unescaped(content[start:], where), line)


def _unescaped(text: str, where: str) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: _unescape(match[1], where), text)
    if _HALF_PAIR.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "\ufffd" in text:
            raise PropertiesError(f"{where}: \\uD800 to \\uDFFF are written in pairs, and here is only half of one.")
    return text


def _unescape(escape: str, where: str) -> str:
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if escape == "u":
        raise PropertiesError(f"{where}: after \\u four hexadecimal digits must follow.")
    return _ESCAPED.get(escape, escape)
