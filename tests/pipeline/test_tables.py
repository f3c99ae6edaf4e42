"""The tables' columns, and where they are told."""

import re
from pathlib import Path

import pytest

from minicontroller.pipeline.schemas import Table

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"


def documented(table: Table) -> set[str]:
    section = DOCUMENT.read_text(encoding="utf-8").partition(f"### `{table.value}`\n")[2].partition("\n### ")[0]
    rows = [line.split(" | ")[0] for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("table", Table)
def test_every_column_is_documented(table: Table) -> None:
    """docs/pipeline.md tells of every column of every table, and of no other (P-2c)."""
    assert documented(table) == set(table.schema.names)
