"""What ZooKeeper holds, seen by a client that has nothing to do with the nodes."""

import json
import time
from types import TracebackType
from typing import Any, Self

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import NoNodeError  # type: ignore[import-untyped]
from kazoo.protocol.states import ZnodeStat  # type: ignore[import-untyped]

BROKERS, TOPICS, CONFIGS, CONTROLLER, CONTROLLER_EPOCH = (
    "/brokers",
    "/brokers/topics",
    "/config/topics",
    "/controller",
    "/controller_epoch",
)


class Tree:
    """The znodes below a chroot."""

    def __init__(self, connect: str, chroot: str) -> None:
        self.client = KazooClient(connect + chroot, timeout=30)

    def __enter__(self) -> Self:
        self.client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.stop()
        self.client.close()

    def json(self, path: str) -> Any:
        """None if there is no such znode."""
        try:
            data, _ = self.client.get(path)
        except NoNodeError:
            return None
        return json.loads(data)

    def stat(self, path: str) -> ZnodeStat | None:
        return self.client.exists(path)

    def children(self, path: str) -> list[str]:
        """None if there is no such znode is the same as none."""
        try:
            return sorted(self.client.get_children(path))
        except NoNodeError:
            return []

    # ------------------------------------------------------------------ Kafka's part of it

    @property
    def controller_id(self) -> int | None:
        claim = self.json(CONTROLLER)
        return None if claim is None else int(claim["brokerid"])

    @property
    def controller_epoch(self) -> int:
        return int(self.client.get(CONTROLLER_EPOCH)[0])

    @property
    def topics(self) -> list[str]:
        return self.children(TOPICS)

    def partitions(self) -> dict[str, dict[int, tuple[int, list[int], list[int]]]]:
        """Leader, ISR and replicas of every partition that has a state."""
        found: dict[str, dict[int, tuple[int, list[int], list[int]]]] = {}
        for topic in self.topics:
            assignment = self.json(f"{TOPICS}/{topic}")
            for number, replicas in {} if assignment is None else assignment["partitions"].items():
                state = self.state(topic, int(number))
                if state is not None:
                    told = (state["leader"], sorted(state["isr"]), sorted(replicas))
                    found.setdefault(topic, {})[int(number)] = told
        return found

    @property
    def brokers(self) -> set[int]:
        return {int(name) for name in self.children(f"{BROKERS}/ids")}

    def state(self, topic: str, partition: int = 0) -> Any:
        return self.json(f"{TOPICS}/{topic}/partitions/{partition}/state")

    def vacancy(self) -> "Vacancy":
        return Vacancy(self)

    def half_made(self) -> list[str]:
        """What a topic that exists lacks, and what exists without its topic: must be empty."""
        flaws = []
        topics = self.children(TOPICS)
        for topic in topics:
            if self.stat(f"{CONFIGS}/{topic}") is None:
                flaws.append(f"{topic} has no configs")
            partitions = self.json(f"{TOPICS}/{topic}")["partitions"]
            flaws += [
                f"{topic}-{number} has no state" for number in partitions if self.state(topic, int(number)) is None
            ]
        return flaws + [f"configs of {topic}, which is no topic" for topic in set(self.children(CONFIGS)) - {*topics}]

    def written(self, path: str = "/") -> dict[str, int]:
        """The last transaction that changed each znode's data, all below this path."""
        found: dict[str, int] = {}
        waiting = [path]
        while waiting:
            here = waiting.pop()
            stat = self.stat(here)
            if stat is not None:
                found[here] = stat.mzxid
                waiting += [f"{here.rstrip('/')}/{child}" for child in self.children(here)]
        return found


class Vacancy:
    """When the controller's place becomes vacant: told by a watch that is set now."""

    def __init__(self, tree: Tree) -> None:
        self.seen_at: float | None = None
        assert tree.client.exists(CONTROLLER, watch=self._note) is not None, "there is no controller now"

    def _note(self, _event: object) -> None:
        self.seen_at = time.monotonic()
