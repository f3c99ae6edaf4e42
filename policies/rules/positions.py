"""The positions of keys and values in a TOML file, which `tomllib` does not report.

Rule: it reads only texts that `toml.py` accepted, so it need not check them. A key that is not
found is at the beginning of the file.
"""

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

BARE_KEY = re.compile(r"[A-Za-z0-9_-]++")
PLAIN_VALUE = re.compile(r"[^,\]}#\n]*+")
SPACE = re.compile(r"[ \t]*+")
BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*+)*+")
ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
LINE_CONTINUED = re.compile(r"\\[ \t]*+\r?\n[ \t\r\n]*+")


class Positions:
    """The positions of the keys and values of one file."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """How many tables of each array of tables were read so far."""
        self._at = 0
        self._scan()

    def line_column(self, path: Path, *, character: int | None = None) -> tuple[int, int]:
        """Return the line and column, from 1, of a key, or of the `character`-th character of its
        value, which is a string.
        """
        if character is not None and path in self._values:
            return self._place(self._character(self._values[path], character))
        while path and path not in self._keys and path not in self._values:
            path = path[:-1]
        return self._place(self._keys.get(path, self._values.get(path, 0)))

    def _place(self, offset: int) -> tuple[int, int]:
        start = self._text.rfind("\n", 0, offset) + 1
        return self._text.count("\n", 0, offset) + 1, offset - start + 1

    def _character(self, offset: int, wanted: int) -> int:
        quote = self._text[offset]
        if quote not in "\"'":
            return offset
        triple = self._text.startswith(quote * 3, offset)
        offset += 3 if triple else 1
        if triple and self._text.startswith("\n", offset):
            offset += 1
        for _ in range(wanted):
            offset = self._next(offset, escapes=quote == '"')
        return self._continued(offset) if quote == '"' else offset

    def _next(self, offset: int, *, escapes: bool) -> int:
        if not escapes:
            return offset + 1
        offset = self._continued(offset)
        escape = ESCAPE.match(self._text, offset)
        return offset + 1 if escape is None else escape.end()

    def _continued(self, offset: int) -> int:
        continued = LINE_CONTINUED.match(self._text, offset)
        return offset if continued is None else continued.end()

    # ------------------------------------------------------------------ scanning

    def _scan(self) -> None:
        table: Path = ()
        while True:
            self._skip(BLANK)
            if self._at >= len(self._text):
                return
            if self._looking_at("[["):
                table = self._header("[[", "]]", array=True)
            elif self._looking_at("["):
                table = self._header("[", "]", array=False)
            else:
                self._key_value(table)

    def _header(self, opening: str, closing: str, *, array: bool) -> Path:
        begin = self._at
        self._at += len(opening)
        keys = [key for key, _ in self._dotted_key()]
        self._at += len(closing)
        path: Path = ()
        for index, key in enumerate(keys):
            path = (*path, key)
            if array and index == len(keys) - 1:
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
            self._keys.setdefault(path, begin)
        return path

    def _key_value(self, table: Path) -> None:
        path = table
        for key, offset in self._dotted_key():
            path = (*path, key)
            self._keys.setdefault(path, offset)
        self._at += 1  # the equals sign
        self._value(path)

    def _dotted_key(self) -> Iterator[tuple[str, int]]:
        while True:
            self._skip(SPACE)
            begin = self._at
            if self._text[begin : begin + 1] in {'"', "'"}:
                yield self._quoted(), begin
            else:
                bare = BARE_KEY.match(self._text, begin)
                self._at = begin + 1 if bare is None else bare.end()
                yield "" if bare is None else bare[0], begin
            self._skip(SPACE)
            if not self._looking_at("."):
                return
            self._at += 1

    def _value(self, path: Path) -> None:
        self._skip(BLANK)
        self._values[path] = self._at
        if self._looking_at("["):
            self._array(path)
        elif self._looking_at("{"):
            self._inline_table(path)
        elif self._text[self._at : self._at + 1] in {'"', "'"}:
            self._quoted()
        else:
            self._skip(PLAIN_VALUE)

    def _array(self, path: Path) -> None:
        self._at += 1
        index = 0
        while self._more("]"):
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._more("}"):
            self._key_value(path)

    def _more(self, closing: str) -> bool:
        self._skip(BLANK)
        while self._looking_at(","):
            self._at += 1
            self._skip(BLANK)
        if self._looking_at(closing):
            self._at += 1
            return False
        return self._at < len(self._text)

    def _quoted(self) -> str:
        """Read the text between quotes. Escapes in keys stay as they are written."""
        quote = self._text[self._at]
        triple = self._text.startswith(quote * 3, self._at)
        fence = quote * 3 if triple else quote
        begin = self._at = self._at + len(fence)
        while self._at < len(self._text) and not self._looking_at(fence):
            self._at += 2 if quote == '"' and self._looking_at("\\") else 1
        while triple and self._looking_at(quote * 4):
            self._at += 1  # quotes that end the text itself
        text = self._text[begin : self._at]
        self._at += len(fence)
        return text

    def _looking_at(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        assert found is not None  # each of them matches nothing too
        self._at = found.end()
