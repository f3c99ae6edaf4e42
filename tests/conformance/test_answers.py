"""Ours against what a real Kafka 3.9.1 answered: the same requests in the same order, on both
stores, at the controller and elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pytest

from tests.conformance.case import Case
from tests.conformance.cases.acl_requests import ADMIN
from tests.conformance.compare import Comparison
from tests.conformance.differences import state_difference
from tests.conformance.normal import Normaliser
from tests.conformance.recording import read_recording
from tests.conformance.scenario import (
    KAFKA_SETTINGS,
    SCENARIOS,
    SECURED,
    SECURED_SETTINGS,
    SETTLE_SECONDS,
    SILENCE_SECONDS,
    Outcome,
    Performer,
    login,
)
from tests.conformance.state import State, StateOf, differing_keys, read_changes, topic_of
from tests.support.cluster import ON_KAFKA, Cluster, MiniCluster, controller_id, other_ids, running_any
from tests.support.waiting import PATIENCE_SECONDS, at_last
from tests.support.wire import Login
from tests.support.znodes import ZnodeWatcher
from tests.support.zookeeper import ZooKeeperServer

WAYS = (
    ["kafka-controller"]
    if ON_KAFKA
    else ["memory-controller", "memory-other", "zookeeper-controller", "zookeeper-other"]
)

SECURED_WAYS = ["kafka-controller"] if ON_KAFKA else ["memory-controller", "zookeeper-controller", "zookeeper-other"]

Findings = dict[str, list[str]]


@pytest.fixture(scope="module", params=WAYS)
def findings(request: pytest.FixtureRequest) -> Iterator[Findings]:
    """By scenario: every difference found on a fresh cluster."""
    store, way = store_of(request, "conformance")
    with running_any(store) as cluster:
        yield all_found(cluster, way, SCENARIOS)


@pytest.fixture(scope="module", params=SECURED_WAYS)
def secured_findings(request: pytest.FixtureRequest) -> Iterator[Findings]:
    """The findings of a fresh cluster whose clients log in and need ACLs."""
    store, way = store_of(request, "secured")
    with running_any(store, KAFKA_SETTINGS if ON_KAFKA else SECURED_SETTINGS, login(ADMIN)) as cluster:
        yield all_found(cluster, way, SECURED, login(ADMIN))


def store_of(request: pytest.FixtureRequest, chroot: str) -> tuple[str, str]:
    """Return the store that the parameter chooses, and which node is asked."""
    store, _, way = request.param.partition("-")
    if store == "zookeeper":
        zookeeper: ZooKeeperServer = request.getfixturevalue("zookeeper")
        store = f"zookeeper://{zookeeper.connect}/{chroot}-{way}"
    return store, way


def all_found(
    cluster: Cluster, way: str, scenarios: Mapping[str, Sequence[Case]], user: Login | None = None
) -> Findings:
    node = controller_id(cluster, user) if way == "controller" else other_ids(cluster, user)[0]
    # Ours answers everything, if the machine lets it.
    silence_seconds = SILENCE_SECONDS if ON_KAFKA else PATIENCE_SECONDS
    performer = Performer(cluster.addresses[node], every_read_settles=way == "other", silence_seconds=silence_seconds)
    ours = Normaliser(cluster.addresses, performer.topic_ids, performer.tokens)
    findings: Findings = {}
    with ExitStack() as stack:
        stack.callback(performer.close)
        left = left_behind(stack, cluster, performer, user) if way == "controller" and node == 1 else None
        before: State = {}
        known: set[str] = set()
        for name, cases in scenarios.items():
            findings[name] = []
            comparison = Comparison(read_recording(name), ours, to_the_letter=ON_KAFKA)
            for case in cases:
                if node == 1 or not case.node_1:
                    outcome, lines = found(performer, comparison, case)
                    findings[name] += lines
                    if left:
                        left.placements.learn(case, outcome.answer)
                        left.keep_alive()
            before = read_changes(name, before)
            findings[name] += unlike(left, before, known) if left else ()
    return findings


def left_behind(stack: ExitStack, cluster: Cluster, performer: Performer, user: Login | None) -> StateOf | None:
    """Return what reads the state of a cluster, if it has a ZooKeeper. Other nodes than 1 are not
    asked everything, so they leave another state.
    """
    if not isinstance(cluster, MiniCluster) or not cluster.store.startswith("zookeeper://"):
        return None
    connect, _, chroot = cluster.store.removeprefix("zookeeper://").partition("/")
    watcher = stack.enter_context(ZnodeWatcher(connect, f"/{chroot}", without=("/minicontroller",)))
    state = StateOf(watcher, performer.address, performer.tokens, user)
    stack.callback(state.close)
    return state


def unlike(left: StateOf, recorded: State, known: set[str]) -> list[str]:
    """Return the differences between the state and Kafka's after the same requests, once it has
    settled. What is told once is `known`.
    """
    again: set[str] = set()

    def look() -> list[str]:
        lines, ours = [], left.refresh(again)
        again.clear()
        for key in sorted(differing_keys(recorded, ours) - known):
            if not state_difference(key, recorded.get(key), ours.get(key)):
                lines.append(f"{key}: {ours.get(key)}, Kafka: {recorded.get(key)}")
                again.update(filter(None, [topic_of(key)]))
        return lines

    lines = at_last(look, right=lambda lines: not lines, within=SETTLE_SECONDS)
    known |= differing_keys(recorded, left.refresh()) if lines else set()
    return lines


def found(performer: Performer, comparison: Comparison, case: Case) -> tuple[Outcome, list[str]]:
    outcome: Outcome = performer.perform(case, comparison.agrees)
    return outcome, [f"{case.key} {difference}" for difference in comparison.differences(outcome)]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_as_kafka(findings: Findings, scenario: str) -> None:
    """Every answer equals the one of Kafka 3.9.1, or differs as docs/conformance.md says."""
    assert not findings[scenario], "\n" + "\n".join(findings[scenario])


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SECURED)
def test_answers_users_as_kafka(secured_findings: Findings, scenario: str) -> None:
    """Every user gets the answer of Kafka 3.9.1, with whichever ACLs there are."""
    assert not secured_findings[scenario], "\n" + "\n".join(secured_findings[scenario])
