"""How much memory processes hold: resident, and proportional, which counts pages shared between
them once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KIB_PER_MIB = 1024


@dataclass(frozen=True)
class Memory:
    """In MiB."""

    resident: float
    proportional: float


def of(pids: Iterable[int]) -> Memory:
    """The sum over the processes, as the kernel reports it now."""
    resident = proportional = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                resident += int(line.split()[1])
            elif line.startswith("Pss:"):
                proportional += int(line.split()[1])
    return Memory(resident / KIB_PER_MIB, proportional / KIB_PER_MIB)
