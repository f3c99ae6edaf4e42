"""The clock of the wall, as Kafka counts: for timestamps that outlive the process.

Rule: durations and deadlines are measured by `trio.current_time`, which nobody can set back.
"""

import time


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000
