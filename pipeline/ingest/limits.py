"""The limits of what the tables can hold of an event: a line beyond them is no event for us, and
the reason is reported.

Rule: whatever a line says, it makes no folder of its own choosing, and no value that a reader of
the tables could not read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...audit.event import SCHEMA_VERSION, UnreadableLineError

MAX_CLUSTER_ID = 60
"""How many characters a cluster id has at most: a folder's name has at most 255 bytes, and a
character may need four.
"""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The value that stands for null in the name of a partition's folder."""
MIN_MS = -62_135_596_800_000
"""The beginning of year 1."""
MAX_MS = 253_402_300_799_999
"""The end of year 9999."""
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
BOUNDS = (
    ("epoch", 0, INT_MAX, f"is not in 0 to {INT_MAX}"),
    ("sequence", 1, LONG_MAX, f"is not in 1 to {LONG_MAX}"),
    ("time_ms", MIN_MS, MAX_MS, "is in no year that a calendar has"),
)


class UnfitEventError(UnreadableLineError):
    """A line is an event that does not fit into the tables."""


MISFITS = (UnfitEventError, ValueError, OverflowError)
"""The exceptions that are raised where the values of events do not fit; pa.ArrowInvalid is a
ValueError.
"""


def check(values: Mapping[str, Sequence[Any]]) -> None:
    """Raise UnfitEventError if one of the events, whose values are given by name, does not fit."""
    if versions := set(values["schema_version"]) - {SCHEMA_VERSION}:
        raise UnfitEventError(f"schema version {max(versions)} is unknown")
    for name, low, high, text in BOUNDS:
        for value in (min(values[name]), max(values[name])):
            if not low <= value <= high:
                raise UnfitEventError(f"{name} {value} {text}")
    for cluster_id in set(values["cluster_id"]):
        if not 0 < len(cluster_id) <= MAX_CLUSTER_ID:
            raise UnfitEventError(f"a cluster_id has 1 to {MAX_CLUSTER_ID} characters, this one has {len(cluster_id)}")
        if cluster_id == NO_VALUE:
            raise UnfitEventError(f"the cluster_id {NO_VALUE} means that there is none")
    for first, last in set(zip(values["first_sequence"], values["last_sequence"], strict=True)):
        if first is not None and not 1 <= first <= last <= LONG_MAX:
            raise UnfitEventError(f"the sequence numbers {first} to {last} are invalid")


def reason(error: Exception) -> str:
    """Say why an event does not fit, by what was raised."""
    return str(error) if isinstance(error, UnfitEventError) else f"a value does not fit into its column: {error}"


def microseconds(ms: int) -> int:
    """Convert milliseconds. Raises ValueError if a table cannot hold the time."""
    if not MIN_MS <= ms <= MAX_MS:
        raise ValueError(f"the time {ms} ms is in no year that a calendar has")
    return ms * 1000
