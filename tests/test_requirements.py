"""docs/requirements.md and the tests tell of the same requirements."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCUMENT = (TESTS.parent / "docs" / "requirements.md").read_text()
ROWS = re.findall(r"^\| (K[\w-]+) \|", DOCUMENT, re.MULTILINE)
FAMILIES = r"\bK(?:4|590|201)-[A-Z]?\d+\b"
"""Of the documents that the table is about."""


def docstrings() -> Iterator[str]:
    """Of every test."""
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                yield ast.get_docstring(node) or ""


NAMED = {requirement for text in docstrings() for requirement in re.findall(FAMILIES, text)}


@pytest.mark.parametrize("requirement", ROWS)
def test_a_requirement_is_held_by_a_test(requirement: str) -> None:
    """Each row of the table stands there once, and some test says in its docstring that it holds it."""
    assert ROWS.count(requirement) == 1
    assert requirement in NAMED


def test_what_tests_name_is_explained() -> None:
    """Whoever reads an id in a docstring finds in the document what it means."""
    assert not [requirement for requirement in NAMED if not re.search(rf"\b{requirement}\b", DOCUMENT)]
