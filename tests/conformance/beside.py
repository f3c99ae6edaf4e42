"""Puts the same requests to a real Kafka and to ours, one after another, and compares each answer
and what it leaves behind.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.conformance.case import Case
from tests.conformance.compare import differing
from tests.conformance.differences import concerning, state_difference, with_sorted_isr
from tests.conformance.normal import Normaliser
from tests.conformance.scenario import READS, Outcome, Performer
from tests.conformance.state import State, StateOf, differing_keys, topic_of
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.kafka import KafkaCluster, running_kafka
from tests.support.waiting import at_last
from tests.support.wire import Login
from tests.support.znodes import ZnodeWatcher

OURS = "/ours"
"""Our znodes are below this path, in the ZooKeeper of the real Kafka. Those below `/minicontroller`
are for ourselves.
"""
NODE = 1
"""The node that is asked; it is Kafka's controller."""
SETTLE_SECONDS = 3.0
"""Longer than either takes for what it does after it has answered."""
TEXT = "error_message"


@dataclass
class Compared:
    """A request that was put to both clusters, and the differences."""

    case: Case
    answer: list[str] = field(default_factory=list)
    """By path: codes and all other fields but texts."""
    text: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """The differences on purpose that concern it."""
    unnamed: list[str] = field(default_factory=list)
    """The differences that none on purpose explains."""


@dataclass(frozen=True)
class Side:
    """One of the two clusters."""

    performer: Performer
    normaliser: Normaliser
    state: StateOf

    def normal(self, outcome: Outcome) -> Any:
        """The answer, normalised. Kafka throttles by the time that requests have cost it, and its
        replicas come into the ISR in any order.
        """
        answer = outcome.answer
        normal = outcome.ended if answer is None else self.normaliser.normal(outcome.case, answer)
        if isinstance(normal, dict) and "throttle_time_ms" in normal:
            normal["throttle_time_ms"] = 0
        return with_sorted_isr(normal)


class Both:
    """A real Kafka and ours."""

    def __init__(self, theirs: Side, ours: Side) -> None:
        self._theirs, self._ours = theirs, ours
        self.state: State = {}
        """Kafka's."""
        self._known: set[str] = set()
        """Entries of the state that differ since an earlier request."""

    @property
    def topic_ids(self) -> set[str]:
        """The topics whose ids both have told."""
        return self._theirs.performer.topic_ids.keys() & self._ours.performer.topic_ids.keys()

    @property
    def tokens(self) -> set[str]:
        """The cases that made delegation tokens, with their versions."""
        return self._theirs.performer.tokens.keys() & self._ours.performer.tokens.keys()

    def put(self, case: Case) -> Compared:
        """Put one request to both."""
        compared = Compared(case)
        look: Callable[[], tuple[Any, Any]] = partial(self._answers, case)
        may_ask_again = case.settles or (case.api in READS and not case.body.get("allow_auto_topic_creation", True))
        theirs, ours = at_last(look, right=same, within=SETTLE_SECONDS if may_ask_again else 0)
        for side in (self._theirs, self._ours):
            side.state.placements.learn(case, theirs)
        for line in differing(theirs, ours):
            (compared.text if line.partition(":")[0].endswith(TEXT) else compared.answer).append(line)
        if compared.text or compared.answer:
            compared.names, expected = concerning(case, theirs)
            compared.unnamed += differing(expected, ours)
        self._compare_states(compared)
        return compared

    def _answers(self, case: Case) -> tuple[Any, Any]:
        theirs = self._theirs.normal(self._theirs.performer.perform(case))
        return theirs, self._ours.normal(self._ours.performer.perform(case))

    def begin(self) -> list[str]:
        """Take what differs now as known, and return it."""
        compared = Compared(Case("the beginning", "Metadata", 12))
        self._compare_states(compared)
        return compared.unnamed

    def _compare_states(self, compared: Compared) -> None:
        topics: set[str] = set()

        def look() -> tuple[State, State]:
            states = self._theirs.state.refresh(topics), self._ours.state.refresh(topics)
            topics.clear()
            topics.update(topic for key in self._new(*states) if (topic := topic_of(key)))
            return states

        theirs, ours = at_last(look, right=lambda states: not self._new(*states), within=SETTLE_SECONDS)
        for key in sorted(differing_keys(theirs, ours) - self._known):
            line = f"{key}: {ours.get(key)}, Kafka: {theirs.get(key)}"
            name = state_difference(key, theirs.get(key), ours.get(key))
            compared.state.append(line)
            compared.names |= {name} if name else set()
            compared.unnamed += [] if name else [line]
        self.state, self._known = theirs, differing_keys(theirs, ours)

    def _new(self, theirs: State, ours: State) -> set[str]:
        """Return the entries that no difference explains, and that were equal until now."""
        keys = differing_keys(theirs, ours) - self._known
        return {key for key in keys if not state_difference(key, theirs.get(key), ours.get(key))}


def same(answers: tuple[Any, Any]) -> bool:
    return not any(differing(*answers))


@contextmanager
def running_both(
    kafkas: Mapping[str, str] | None = None, ours: Mapping[str, str] | None = None, user: Login | None = None
) -> Iterator[Both]:
    """Fresh clusters."""
    with ExitStack() as stack:
        kafka = stack.enter_context(running_kafka(settings=kafkas, login=user))
        store = f"zookeeper://{kafka.zookeeper.connect}{OURS}"
        mini = stack.enter_context(running_cluster(store=store, settings=ours, login=user))
        at = kafka.zookeeper.connect
        watchers = ZnodeWatcher(at, without=("/zookeeper", OURS)), ZnodeWatcher(at, OURS, without=("/minicontroller",))
        their_znodes, our_znodes = (stack.enter_context(each) for each in watchers)
        yield Both(side(stack, kafka, their_znodes, user), side(stack, mini, our_znodes, user))


def side(stack: ExitStack, cluster: KafkaCluster | MiniCluster, watcher: ZnodeWatcher, user: Login | None) -> Side:
    address = cluster.addresses[NODE]
    performer = Performer(address)
    state = StateOf(watcher, address, performer.tokens, user)
    stack.callback(performer.close)
    stack.callback(state.close)
    return Side(performer, Normaliser(cluster.addresses, performer.topic_ids, performer.tokens), state)
