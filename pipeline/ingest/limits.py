"""What the tables can hold of an event: beyond it a line is no event for us, and why is told.

Rule: whatever a line says, it makes no folder of its own choosing, and no value that a reader of
the tables could not read.
"""

from datetime import UTC, datetime, timedelta

from ...audit.event import AuditEvent, Dropped, UnreadableLineError
from ...audit.lines import decode_line

MAX_CLUSTER_ID = 60
"""The name of a folder has 255 bytes at most, and a character may need four."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""In the name of a folder."""
MIN_MS = -62_135_596_800_000
"""The beginning of year 1."""
MAX_MS = 253_402_300_799_999
"""The end of year 9999."""
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class UnfitEventError(UnreadableLineError):
    """A line is an event that does not fit into the tables."""


def checked(line: bytes, *, is_too_long: bool = False) -> AuditEvent:
    """Decode a line to an event that fits into the tables. Raises UnreadableLineError."""
    event = decode_line(line, is_too_long=is_too_long)
    if not 0 <= event.epoch <= INT_MAX:
        raise UnfitEventError(f"epoch {event.epoch} is not in 0 to {INT_MAX}")
    if not 1 <= event.sequence <= LONG_MAX:
        raise UnfitEventError(f"sequence {event.sequence} is not in 1 to {LONG_MAX}")
    if not 0 < len(event.cluster_id) <= MAX_CLUSTER_ID:
        raise UnfitEventError(
            f"a cluster_id has 1 to {MAX_CLUSTER_ID} characters, this one has {len(event.cluster_id)}"
        )
    if event.cluster_id == NO_VALUE:
        raise UnfitEventError(f"the cluster_id {NO_VALUE} means that there is none")
    if not MIN_MS <= event.time_ms <= MAX_MS:
        raise UnfitEventError(f"time_ms {event.time_ms} is in no year that a calendar has")
    if isinstance(event, Dropped) and not 0 <= event.first_sequence <= event.last_sequence <= LONG_MAX:
        raise UnfitEventError(f"the places {event.first_sequence} to {event.last_sequence} are none")
    return event


def microseconds(ms: int) -> int:
    """Convert milliseconds. Raises ValueError if a table cannot hold the time."""
    if not MIN_MS <= ms <= MAX_MS:
        raise ValueError(f"the time {ms} ms is in no year that a calendar has")
    return ms * 1000


def moment(ms: int) -> datetime:
    return FIRST + timedelta(milliseconds=ms)


def folder_name(column: str, value: str) -> str:
    """Name the folder of a partition, in Hive's way: as Spark escapes it, and Arrow and DuckDB read
    it.
    """
    return f"{column}={''.join(map(_escaped, value))}"


def _escaped(character: str) -> str:
    if character in "\"#%'*/:=?\\{}[]^\x7f" or character < " ":
        return f"%{ord(character):02X}"
    return character
