"""The table of threats in docs/security.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "security.md").read_text().partition("## Threats")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| what")
]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:60])
def test_a_threat_has_its_tests(row: str) -> None:
    """Each row names at least one test, and every test that it names exists."""
    named = TEST.findall(row)
    assert named
    for file, test in named:
        assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"
