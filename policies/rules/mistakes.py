"""The content of rule files and the mistakes in it, without the engines that evaluate rules: these
take 20 MiB, which only a node with rules pays for.
"""

from collections.abc import Sequence

import msgspec

MAX_BYTES = 1_000_000
"""The largest size of a rule file."""


class RuleSource(msgspec.Struct, frozen=True):
    """The content of a rule file, as it was read."""

    name: str
    data: bytes


class Mistake(msgspec.Struct, frozen=True):
    """A mistake in a rule file, with its line and column, both from 1."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}"


class RuleFileError(Exception):
    """The rule files cannot be used because of their mistakes."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)
