"""Ours against what a real Kafka 3.9.1 answered: the same requests in the same order, on both
stores, at the controller and elsewhere.
"""

from collections.abc import Iterator

import pytest

from tests.conformance.case import Case
from tests.conformance.compare import Comparison
from tests.conformance.normal import Normaliser
from tests.conformance.recording import read_recording
from tests.conformance.scenario import SCENARIOS, Outcome, Performer
from tests.support.cluster import ON_KAFKA, controller_id, other_ids, running_any
from tests.support.zookeeper import ZooKeeperServer

WAYS = (
    ["kafka-controller"]
    if ON_KAFKA
    else ["memory-controller", "memory-other", "zookeeper-controller", "zookeeper-other"]
)

Findings = dict[str, list[str]]


@pytest.fixture(scope="module", params=WAYS)
def findings(request: pytest.FixtureRequest) -> Iterator[Findings]:
    """By scenario: every difference found on a fresh cluster."""
    store, _, way = request.param.partition("-")
    if store == "zookeeper":
        zookeeper: ZooKeeperServer = request.getfixturevalue("zookeeper")
        store = f"zookeeper://{zookeeper.connect}/conformance-{way}"
    with running_any(store) as cluster:
        node = controller_id(cluster) if way == "controller" else other_ids(cluster)[0]
        performer = Performer(cluster.addresses[node], every_read_settles=way == "other")
        ours = Normaliser(cluster.addresses, performer.topic_ids)
        yield {
            name: [
                line for case in cases if node == 1 or not case.node_1 for line in found(performer, ours, name, case)
            ]
            for name, cases in SCENARIOS.items()
        }
        performer.close()


def found(performer: Performer, ours: Normaliser, scenario: str, case: Case) -> Iterator[str]:
    comparison = Comparison(read_recording(scenario), ours, to_the_letter=ON_KAFKA)
    outcome: Outcome = performer.perform(case, comparison.agrees)
    for difference in comparison.differences(outcome):
        yield f"{case.key} {difference}"


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_as_kafka(findings: Findings, scenario: str) -> None:
    """Every answer equals the one of Kafka 3.9.1, or differs as docs/conformance.md says."""
    assert not findings[scenario], "\n" + "\n".join(findings[scenario])
