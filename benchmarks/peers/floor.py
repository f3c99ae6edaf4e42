"""What the socket alone costs in Python: `trio_floor.py` as a process. Context for the figures, not a competitor."""

import sys
from pathlib import Path

from .base import Process, System, wait_for_ready_line

READY_SECONDS = 10.0
PROGRAM = Path(__file__).parent / "trio_floor.py"


class Floor(System):
    name = "floor"
    title = "floor: a bare trio server"
    speaks_kafka = False

    @classmethod
    def missing(cls) -> str | None:
        return None

    def start(self) -> None:
        log = self.folder / "log.txt"
        log.unlink(missing_ok=True)
        process = Process([sys.executable, str(PROGRAM)], log=log)
        self.nodes[0] = process
        self.addresses = wait_for_ready_line(process, READY_SECONDS)
