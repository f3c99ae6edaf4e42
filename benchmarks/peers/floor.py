"""The layers below minicontroller: a bare socket and a bare ZooKeeper. They give context to the
figures and are not competitors.
"""

import sys
from pathlib import Path

from .base import Process, System, wait_for_ready_line
from .java import WithZooKeeper

READY_SECONDS = 10.0
PROGRAM = Path(__file__).parent / "trio_floor.py"


class Floor(System):
    """A trio server that answers as many bytes: what the socket alone costs in Python."""

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


class BareZooKeeper(WithZooKeeper):
    """A ZooKeeper server alone: the cost of storing through kazoo."""

    name = "zookeeper"
    title = "floor: a bare ZooKeeper"
    speaks_kafka = False
    chroot = ""

    def start(self) -> None:
        """It runs since it was prepared."""
