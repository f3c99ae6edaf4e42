"""The text of a generated function while it grows: lines at a depth, and the constants they use,
each named once at the top.
"""

from collections.abc import Iterator
from contextlib import contextmanager

NAMES = {"?": "bool"}  # letters of the `struct` module that no identifier can hold


class Source:
    """A Python source in the making."""

    def __init__(self) -> None:
        self.constants: dict[str, str] = {}
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head:` and indent what is written inside."""
        self.line(head + ":")
        self.depth += 1
        yield
        self.depth -= 1

    def constant(self, name: str, value: str) -> str:
        self.constants[name] = value
        return name

    def packer(self, codes: str) -> str:
        return self.constant(f"pack_{identifier(codes)}", f'Struct(">{codes}").pack')

    def unpacker(self, codes: str) -> str:
        return self.constant(f"unpack_{identifier(codes)}", f'Struct(">{codes}").unpack_from')

    def text(self) -> str:
        head = [f"{name} = {value}" for name, value in self.constants.items()]
        return "\n".join([*head, "", *self.lines, ""])


def identifier(codes: str) -> str:
    """Return type letters as part of a name."""
    return "".join(NAMES.get(code, code) for code in codes)


def literal(default: object) -> str:
    """Return a field's default as Python source."""
    return repr(default)
