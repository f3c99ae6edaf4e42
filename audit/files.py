"""The audit files that lie in folders, whoever wrote, compressed or moved them.

Rule: all readers of the audit log list its files here, so that they read the same ones in the same
order.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .names import COMPRESSED, ENDINGS, in_order, is_compressed, plain_name, to_be_read


def audit_files(paths: Iterable[Path]) -> list[Path]:
    """List the audit files at these paths and directly in these folders, in the order of their
    names. A compressed copy of a listed file is left out. Raises OSError.
    """
    return sorted((file for file, *_ in _with_copies(paths)), key=lambda file: (*in_order(file.name), file))


def copies(paths: Iterable[Path]) -> dict[Path, Path]:
    """Map each compressed file that `audit_files` leaves out to the file that is read instead.
    Raises OSError.
    """
    return {copy: file for file, *others in _with_copies(paths) for copy in others}


def _with_copies(paths: Iterable[Path]) -> list[list[Path]]:
    """Group files with their compressed copies; the first of each group is the one to read."""
    groups: dict[Path, list[Path]] = {}
    for file in sorted(set(_at(paths)), key=lambda file: to_be_read(file.name)):
        plain = file.with_name(plain_name(file.name)) if is_compressed(file.name) else file
        groups.setdefault(plain, []).append(file)
    return list(groups.values())


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
    candidates = (file, *(file.with_name(plain_name(file.name) + ending) for ending in COMPRESSED))
    return next((path for path in candidates if path.exists()), file)
