"""The systems that are measured. Each is a class with the same few methods, and this table is all
that knows them by name.
"""

from .base import System
from .floor import BareZooKeeper, Floor
from .kafka import Kafka
from .kfake import Kfake
from .kraft import KRaft
from .minicontroller import OnMemory, OnZooKeeper, Processes

SYSTEMS: dict[str, type[System]] = {
    cls.name: cls for cls in (OnMemory, OnZooKeeper, Processes, Kafka, KRaft, Kfake, Floor, BareZooKeeper)
}

__all__ = ["SYSTEMS", "System"]
