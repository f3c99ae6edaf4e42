"""Clients that create, alter, enlarge and delete topics of their own, and know at any time what each of them may look like.

Rule: an answer of success leaves one possibility, doubt leaves two, and a topic that is in doubt is not touched again.
"""

import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from minicontroller.protocol.error_codes import ErrorCode
from tests.support.nodes import Nodes
from tests.support.wire import Body, ConnectionEndedError, Wire

TIMEOUT_MS = 5_000
PATIENCE_SECONDS = 8.0
"""For an answer. A node that is frozen gives none."""
TOPIC_RESOURCE, SET = 2, 0


class Form(msgspec.Struct, frozen=True):
    """What a topic looks like."""

    partitions: int
    retention_ms: int


class Wisher:
    """One client, with topics that nobody else touches."""

    def __init__(self, name: str, nodes: Nodes, dice: random.Random) -> None:
        self.possible: dict[str, set[Form | None]] = {}
        """By topic: every form that it may have; None stands for no topic."""
        self.refusals: list[tuple[str, int]] = []
        self.acknowledged = 0
        self.in_doubt = 0
        self.failure: BaseException | None = None
        self._name = name
        self._nodes = nodes
        self._dice = dice

    def run(self, over: threading.Event) -> None:
        try:
            while not over.is_set():
                self._wish_somewhere(over)
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            self.failure = error

    def _wish_somewhere(self, over: threading.Event) -> None:
        address = self._dice.choice(list(self._nodes)).address
        if not address:  # it is just starting
            over.wait(0.05)
            return
        try:
            with Wire(address, timeout=PATIENCE_SECONDS) as wire:
                while not over.is_set():
                    self._wish(wire)
        except (ConnectionEndedError, OSError):
            over.wait(0.05)

    def _wish(self, wire: Wire) -> None:
        known = {topic: next(iter(forms)) for topic, forms in self.possible.items() if len(forms) == 1}
        alive = [topic for topic, form in known.items() if form is not None]
        kind = self._dice.choice((self._create, self._create, self._alter, self._enlarge, self._delete))
        if kind == self._create or not alive:
            self._create(wire, f"{self._name}-{len(self.possible)}", None)
        else:
            topic = self._dice.choice(alive)
            kind(wire, topic, known[topic])

    def _create(self, wire: Wire, topic: str, _form: Form | None) -> None:
        form = Form(self._dice.randint(1, 4), self._dice.randint(1, 10**6))
        wanted = {
            "name": topic,
            "num_partitions": form.partitions,
            "replication_factor": 2,
            "assignments": [],
            "configs": [{"name": "retention.ms", "value": str(form.retention_ms)}],
        }
        self._ask(topic, None, form, lambda: wire.ask("CreateTopics", 7, with_timeout({"topics": [wanted]}))["topics"])

    def _alter(self, wire: Wire, topic: str, form: Form | None) -> None:
        assert form is not None
        after = Form(form.partitions, self._dice.randint(1, 10**6))
        change = {"name": "retention.ms", "config_operation": SET, "value": str(after.retention_ms)}
        resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic, "configs": [change]}
        self._ask(
            topic, form, after, lambda: wire.ask("IncrementalAlterConfigs", 1, {"resources": [resource]})["responses"]
        )

    def _enlarge(self, wire: Wire, topic: str, form: Form | None) -> None:
        assert form is not None
        after = Form(form.partitions + 1, form.retention_ms)
        wanted = {"name": topic, "count": after.partitions, "assignments": None}
        self._ask(
            topic, form, after, lambda: wire.ask("CreatePartitions", 3, with_timeout({"topics": [wanted]}))["results"]
        )

    def _delete(self, wire: Wire, topic: str, form: Form | None) -> None:
        body = with_timeout({"topic_names": [topic]})
        self._ask(topic, form, None, lambda: wire.ask("DeleteTopics", 5, body)["responses"])

    def _ask(self, topic: str, before: Form | None, after: Form | None, ask: Callable[[], list[Body]]) -> None:
        self.possible[topic] = {before, after}
        self.in_doubt += 1
        (result,) = ask()
        code = result["error_code"]
        if code == ErrorCode.REQUEST_TIMED_OUT:
            return
        self.in_doubt -= 1
        if code == ErrorCode.NONE:
            self.possible[topic] = {after}
            self.acknowledged += 1
        else:
            self.possible[topic] = {before}
            self.refusals.append((topic, code))


def with_timeout(body: Mapping[str, Any]) -> Body:
    return {**body, "timeout_ms": TIMEOUT_MS}
