"""Reads the tables of config keys.

Rule: a line is a key and five more columns. `-` stands for nothing, `""` for the empty text, and
`max` for the largest long.
"""

from collections.abc import Iterator

MAX_LONG = 2**63 - 1


def read_table(table: str) -> Iterator[list[str]]:
    """Yield the columns of each line that is neither empty nor a heading."""
    for line in table.splitlines():
        if line and not line.startswith("#"):
            columns = line.split(" | ")
            assert len(columns) == 6, line
            yield columns


def read_default(text: str) -> str | None:
    return {"-": None, '""': "", "max": str(MAX_LONG)}.get(text, text)
