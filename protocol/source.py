"""The source of a generated function while it is written: indented lines, and the constants that
they use, which are defined once at the top.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .schema import WireStruct

NAMES = {"?": "bool"}  # codes of the `struct` module that cannot be part of an identifier


class Source:
    """Collects the lines and constants of one Python source."""

    def __init__(self) -> None:
        self.constants: dict[str, str] = {}
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head:` and indent the lines that are written within the block."""
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
    """Return codes of the `struct` module in a form that can be part of a name."""
    return "".join(NAMES.get(code, code) for code in codes)


def literal(default: object) -> str:
    """Return a field's default as Python source, which names the class of a struct."""
    return f"{type(default).__name__}()" if isinstance(default, WireStruct) else repr(default)
