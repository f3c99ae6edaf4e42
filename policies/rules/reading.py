"""Reads rule files, for a node, for `policy check` and for back-tests.

Rule: a file that cannot be read is a mistake like any other, reported with the file's name.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from .mistakes import MAX_BYTES, Mistake, RuleFileError, RuleSource
from .ruleset import RuleSet, load_rules


def read_rule_files(paths: Sequence[Path]) -> RuleSet:
    return rules_of((path, _content(path)) for path in paths)


def rules_of(contents: Iterable[tuple[Path, bytes | str]]) -> RuleSet:
    """Make rules of files, each given by its content or by the reason why it cannot be read. Raises
    RuleFileError.
    """
    sources, mistakes = [], []
    for path, held in contents:
        if isinstance(held, bytes):
            sources.append(RuleSource(str(path), held))
        else:
            mistakes.append(Mistake(str(path), 1, 1, f"the file cannot be read: {held}"))
    try:
        rules = load_rules(sources)
    except RuleFileError as error:
        raise RuleFileError([*mistakes, *error.mistakes]) from None
    if mistakes:
        raise RuleFileError(mistakes)
    return rules


def _content(path: Path) -> bytes | str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)  # one byte more shows that the file is too large
    except OSError as error:
        return error.strerror or str(error)
