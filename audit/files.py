"""The audit files that lie in folders, whoever wrote, compressed or moved them: their names, which
give cluster, epoch, first sequence and node, and their order.

Rule: all readers of the audit log list its files here, so that they read the same ones in the same
order, which the names alone give. A file keeps its name when it is compressed; only an ending is
added. A plain file and its compressed copies are one file, of which the plain one is read, since
compression may not have ended.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".ndjson"
GZIP, ZSTANDARD = ".gz", ".zst"
COMPRESSED = (GZIP, ZSTANDARD)
ENDINGS = (SUFFIX, *(SUFFIX + ending for ending in COMPRESSED))
"""The endings of file names in a folder that make a file an audit file."""

NAME = re.compile(
    r"audit-(?P<cluster>.{22})-(?P<epoch>\d{10})-(?P<sequence>\d{12})-(?P<node>\d++)(?:\.(?P<again>\d++))?\.ndjson"
)


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


class NameParts(NamedTuple):
    """The parts of a name that a controller gave to a file, in the order that sorts files."""

    cluster_id: str
    epoch: int
    sequence: int
    """The sequence of the file's first event."""
    again: int
    """0, or a number from 1 on if there was a file of this name already."""
    node: int


def file_name(cluster_id: str, epoch: int, sequence: int, node: int) -> str:
    return f"audit-{cluster_id}-{epoch:010}-{sequence:012}-{node}{SUFFIX}"


def name_parts(name: str) -> NameParts | None:
    """Parse the plain name of a file; None if no controller gives such names."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    numbers = (int(match[part] or 0) for part in ("epoch", "sequence", "again", "node"))
    return NameParts(match["cluster"], *numbers)


def is_compressed(name: str) -> bool:
    return name.endswith(COMPRESSED)


def plain_name(name: str) -> str:
    """Return the name that an audit file had before it was compressed."""
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return name


def in_order(name: str) -> NameParts:
    """Return what sorts audit files by their names. A file with another name than a controller
    gives sorts by this name among the clusters' ids.
    """
    name = plain_name(name)
    return name_parts(name) or NameParts(name, 0, 0, 0, 0)


def to_be_read(name: str) -> tuple[bool, str]:
    """Return what sorts a file and its compressed copies: the lowest one is to be read."""
    return is_compressed(name), name
