"""The names of audit files, which tell cluster, epoch, first sequence and node, and their order.

Rule: audit files are in the order of what happened in them, which their names alone give. A file
keeps its name when it is compressed; only an ending is added. A plain file and its compressed
copies are one file, of which the plain one is read, since compression may not have ended.
"""

import re
from typing import NamedTuple

SUFFIX = ".ndjson"
GZIP, ZSTANDARD = ".gz", ".zst"
COMPRESSED = (GZIP, ZSTANDARD)
ENDINGS = (SUFFIX, *(SUFFIX + ending for ending in COMPRESSED))
"""The endings of file names in a folder that make a file an audit file."""

NAME = re.compile(
    r"audit-(?P<cluster>.{22})-(?P<epoch>\d{10})-(?P<sequence>\d{12})-(?P<node>\d++)(?:\.(?P<again>\d++))?\.ndjson"
)


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
    """Return the name of the audit file that begins with this event."""
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
