"""The folders and modules of the program."""

from collections.abc import Iterator
from pathlib import Path

from tests.structure.tree import program_folders

ROOT = Path(__file__).parents[2]
FOLDERS = tuple(program_folders((ROOT / "pyproject.toml").read_text()))


def modules(*folders: str) -> Iterator[Path]:
    """Yield the modules in these folders, or in all of the program, and those of the root."""
    for folder in folders or FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))
    if not folders:
        yield from sorted(ROOT.glob("*.py"))
