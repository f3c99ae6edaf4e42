"""Requests that tests send to a gateway and to its cluster, and the rules of the gateway."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from minicontroller.audit.event import AuditEvent, Decision
from minicontroller.audit.reading import read_all
from tests.support.wire import Wire

VIOLATION, UNKNOWN_TOPIC, EXISTS, UNKNOWN_SERVER_ERROR = 44, 3, 36, -1
NOT_CONTROLLER, NOT_LEADER = 41, 6
INVALID_REQUEST, INVALID_TOPIC = 42, 17
TOPIC, BROKER = 2, 4
SET = 0
NO_ID = str(UUID(int=0))
RULES = """
[[name_pattern]]
name = "lower case"
pattern = '[a-z0-9_.-]+'
message = "Names are in lower case."

[[partitions]]
max = 5

[[config_bounds]]
configs = { "retention.ms" = { min = 1000 } }

[[protected_topics]]
topics = ["kept*"]
operations = ["alter", "delete", "delete_records"]

[[quota]]
owned = "few-*"
max_topics = 3
"""


def topic(name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> dict[str, Any]:
    rows = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    return {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": rows}


def create(wire: Wire, *topics: Mapping[str, Any], version: int = 7, **fields: Any) -> list[tuple[str, int]]:
    answer = wire.ask("CreateTopics", version, {"topics": list(topics), "timeout_ms": 10_000, **fields})
    return [(row["name"], row["error_code"]) for row in answer["topics"]]


def shown(wire: Wire, *names: str) -> dict[str, tuple[int, int]]:
    """Error code and number of partitions of each topic."""
    asked = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
    return {
        row["name"]: (row["error_code"], len(row["partitions"])) for row in wire.ask("Metadata", 9, asked)["topics"]
    }


def decisions(folder: Path, *names: str) -> list[Decision]:
    """The decisions about topics of these names so far, in the order of the log."""
    return [event for event in events(folder) if isinstance(event, Decision) and event.name in names]


def events(folder: Path) -> list[AuditEvent]:
    return [each.event for each in read_all([folder / "audit"]) if each.event is not None]
