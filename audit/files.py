"""The audit files that lie in folders, whoever wrote, compressed or moved them.

Rule: all readers of the audit log list its files here, so that they read the same ones in the same
order.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .names import COMPRESSED, ENDINGS, in_order, plain_name, with_copies


def audit_files(paths: Iterable[Path]) -> list[Path]:
    """List the audit files at these paths and directly in these folders, in the order of their
    names. A compressed copy of a listed file is left out. Raises OSError.
    """
    return in_order(file for file, *_ in with_copies(_at(paths)))


def copies(paths: Iterable[Path]) -> dict[Path, Path]:
    """Map each compressed file that `audit_files` leaves out to the file that is read instead.
    Raises OSError.
    """
    return {copy: file for file, *others in with_copies(_at(paths)) for copy in others}


def _at(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from files_in(path)
        else:
            yield path


def files_in(folder: Path) -> Iterator[Path]:
    """Yield every file directly in a folder that is an audit file by its name, compressed copies
    included. Raises OSError if the folder cannot be read.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(ENDINGS) and _is_file(entry):
                yield folder / entry.name


def _is_file(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file()
    except OSError:  # it was compressed or taken away in this moment
        return False


def current_path(file: Path) -> Path:
    """Return where a listed file lies now: it may have been compressed meanwhile."""
    candidates = (file, *(file.with_name(plain_name(file) + ending) for ending in COMPRESSED))
    return next((path for path in candidates if path.exists()), file)
