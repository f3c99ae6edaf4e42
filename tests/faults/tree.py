"""The contents of ZooKeeper, read by a client that is independent of the nodes."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import (  # type: ignore[import-untyped]
    ConnectionLoss,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.protocol.states import ZnodeStat  # type: ignore[import-untyped]

from tests.support.waiting import PATIENCE_SECONDS

Seen = TypeVar("Seen")

BROKERS, TOPICS, CONFIGS, CONTROLLER, CONTROLLER_EPOCH = (
    "/brokers",
    "/brokers/topics",
    "/config/topics",
    "/controller",
    "/controller_epoch",
)


class Tree:
    """The znodes below a chroot. The server of this session may be behind the others of an
    ensemble, so each look asks it first to catch up with what the nodes were told; and it may be
    gone, so each look is repeated until it is answered.
    """

    def __init__(self, connect: str, chroot: str, *, timeout: float = 30) -> None:
        self.client = KazooClient(connect, timeout=timeout)
        self._chroot = chroot

    def __enter__(self) -> Self:
        self.client.start(PATIENCE_SECONDS)
        self.client.chroot = self._chroot  # given before, it would have to be there, on this server too
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.stop()
        self.client.close()

    def json(self, path: str) -> Any:
        """None if there is no such znode."""
        (value,) = self.jsons([path])
        return value

    def jsons(self, paths: Sequence[str]) -> list[Any]:
        """Return the JSON documents of many znodes, all of them asked for before the first is
        waited for.
        """
        return patiently(partial(self._jsons, paths))

    def _jsons(self, paths: Sequence[str]) -> list[Any]:
        found: list[Any] = []
        self.catch_up()
        for answer in [self.client.get_async(path) for path in paths]:
            try:
                found.append(json.loads(answer.get()[0]))
            except NoNodeError:
                found.append(None)
        return found

    def catch_up(self) -> None:
        """Have what is asked next answered behind everything that was written before."""
        self.client.sync_async("/")

    def stat(self, path: str) -> ZnodeStat | None:
        self.catch_up()
        return patiently(partial(self.client.exists, path))

    def children(self, path: str) -> list[str]:
        """None if there is no such znode is the same as none."""
        self.catch_up()
        try:
            return sorted(patiently(partial(self.client.get_children, path)))
        except NoNodeError:
            return []

    # ------------------------------------------------------------------ Kafka's part of it

    @property
    def controller_id(self) -> int | None:
        claim = self.json(CONTROLLER)
        return None if claim is None else int(claim["brokerid"])

    @property
    def controller_epoch(self) -> int:
        self.catch_up()
        return int(patiently(partial(self.client.get, CONTROLLER_EPOCH))[0])

    @property
    def topics(self) -> list[str]:
        return self.children(TOPICS)

    def partitions(self) -> dict[str, dict[int, tuple[int, list[int], list[int]]]]:
        """Leader, ISR and replicas of every partition that has a state."""
        found: dict[str, dict[int, tuple[int, list[int], list[int]]]] = {}
        for topic, assignment in self.assignments().items():
            states = self.jsons([state_path(topic, number) for number in assignment])
            for (number, replicas), state in zip(assignment.items(), states, strict=True):
                if state is not None:
                    told = (state["leader"], sorted(state["isr"]), sorted(replicas))
                    found.setdefault(topic, {})[number] = told
        return found

    def assignments(self) -> dict[str, dict[int, list[int]]]:
        """The replicas of every partition of every topic."""
        topics = self.topics
        found = self.jsons([f"{TOPICS}/{topic}" for topic in topics])
        return {
            topic: {int(number): replicas for number, replicas in value["partitions"].items()}
            for topic, value in zip(topics, found, strict=True)
            if value is not None
        }

    def moving(self) -> list[str]:
        """The topics whose replicas are being moved."""
        topics = self.topics
        found = self.jsons([f"{TOPICS}/{topic}" for topic in topics])
        return [
            topic
            for topic, value in zip(topics, found, strict=True)
            if value is not None and (value.get("adding_replicas") or value.get("removing_replicas"))
        ]

    @property
    def brokers(self) -> set[int]:
        return {int(name) for name in self.children(f"{BROKERS}/ids")}

    def born(self) -> dict[int, int]:
        """Every broker that is registered, with the transaction of its registration."""
        stats = {broker_id: self.stat(f"{BROKERS}/ids/{broker_id}") for broker_id in self.brokers}
        return {broker_id: stat.czxid for broker_id, stat in stats.items() if stat is not None}

    def state(self, topic: str, partition: int = 0) -> Any:
        return self.json(state_path(topic, partition))

    def vacancy(self) -> "Vacancy":
        return Vacancy(self)

    def half_made(self) -> list[str]:
        """Return what a topic that exists lacks, and what exists without its topic: must be empty.
        A topic that is made or deleted during a look is whole at the next one.
        """
        flaws = self._half_made()
        still = set(self._half_made()) if flaws else set()
        return [flaw for flaw in flaws if flaw in still]

    def _half_made(self) -> list[str]:
        flaws = []
        assignments, configured = self.assignments(), set(self.children(CONFIGS))
        for topic, assignment in assignments.items():
            states = self.jsons([state_path(topic, number) for number in assignment])
            flaws += [
                f"{topic}-{number} has no state"
                for number, state in zip(assignment, states, strict=True)
                if state is None
            ]
        flaws += [f"{topic} has no configs" for topic in assignments.keys() - configured]
        return flaws + [f"configs of {topic}, which is no topic" for topic in configured - assignments.keys()]

    def written(self, path: str = "/") -> dict[str, int]:
        """The last transaction that changed each znode's data, all below this path."""
        self.catch_up()
        found: dict[str, int] = {}
        level = [path]
        while level:
            answers = [self.client.get_children_async(here, include_data=True) for here in level]
            below: list[str] = []
            for here, answer in zip(level, answers, strict=True):
                with suppress(NoNodeError):
                    children, stat = answer.get()
                    found[here] = stat.mzxid
                    below += [f"{here.rstrip('/')}/{child}" for child in children]
            level = below
        return found


def patiently(ask: Callable[[], Seen]) -> Seen:
    """Return the answer to a question, which is asked again while servers of the tree are away."""
    while True:
        try:
            return ask()
        except (ConnectionLoss, OperationTimeoutError, SessionExpiredError):
            time.sleep(0.1)


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


class Vacancy:
    """Tells when the controller's place becomes vacant, by a watch that is set now."""

    def __init__(self, tree: Tree) -> None:
        self.seen_at: float | None = None
        assert tree.client.exists(CONTROLLER, watch=self._note) is not None, "there is no controller now"

    def _note(self, _event: object) -> None:
        self.seen_at = time.monotonic()
