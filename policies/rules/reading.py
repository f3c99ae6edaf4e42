"""Rule files, read and loaded: in a node, by `policy check`, for a back-test.

Rule: a file that cannot be read is a mistake like any other, told with its name.
"""

from collections.abc import Sequence
from pathlib import Path

from .ruleset import MAX_BYTES, Mistake, RuleFileError, RuleSet, Source, load


def read(paths: Sequence[Path]) -> RuleSet:
    """Raises RuleFileError."""
    sources, mistakes = [], []
    for path in paths:
        try:
            with path.open("rb") as file:
                sources.append(Source(str(path), file.read(MAX_BYTES + 1)))  # so much tells that it is too large
        except OSError as error:
            mistakes.append(Mistake(str(path), 1, 1, f"the file cannot be read: {error.strerror or error}"))
    if mistakes:
        raise RuleFileError(mistakes)
    return load(sources)
