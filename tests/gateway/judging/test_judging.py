"""Requests for changes through a gateway that enforces rules: what the client is answered, what the
cluster has afterwards, and what the audit log says. The cluster is one of this program.
"""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from minicontroller.audit.event import Decision, Effect
from minicontroller.audit.replay import Replay
from minicontroller.audit.verifying import Verification
from minicontroller.gateway.judging.judge import MOST_PARTS
from minicontroller.policies.judging import PolicyJudge
from minicontroller.policies.rules.ruleset import rules_of
from tests.gateway.judging.asking import (
    BROKER,
    EXISTS,
    INVALID_REQUEST,
    INVALID_TOPIC,
    NO_ID,
    RULES,
    SET,
    TOPIC,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC,
    VIOLATION,
    create,
    decisions,
    events,
    shown,
    topic,
)
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.waiting import until
from tests.support.wire import Wire


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=3, settings={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "rules.toml").write_text(RULES)
    return folder


@pytest.fixture(scope="module")
def gateway(cluster: MiniCluster, folder: Path) -> Iterator[GatewayProcess]:
    settings = {"policy.rules.files": f"{folder}/rules.toml", "audit.dir": f"{folder}/audit", "audit.flush": "always"}
    with running_gateway(cluster.bootstrap, settings=settings) as gateway:
        yield gateway


@pytest.fixture(name="through")
def through_fixture(gateway: GatewayProcess) -> Iterator[Wire]:
    with Wire(gateway.bootstrap) as wire:
        yield wire


@pytest.fixture(name="direct")
def direct_fixture(cluster: MiniCluster) -> Iterator[Wire]:
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        yield wire


@pytest.mark.parametrize("version", range(8))
def test_some_creations_are_refused(through: Wire, direct: Wire, folder: Path, version: int) -> None:
    """Refused topics are answered by the policy's words in the place where the request has them,
    and the others are created (U-3c).
    """
    good, late, bad, big = f"a{version}", f"z{version}", f"BAD{version}", f"big{version}"
    asked = {"topics": [topic(good), topic(bad), topic(big, 6), topic(late, 2)], "timeout_ms": 10_000}
    answer = through.ask("CreateTopics", version, asked)["topics"]
    assert [(row["name"], row["error_code"]) for row in answer] == [
        (good, 0),
        (bad, VIOLATION),
        (big, VIOLATION),
        (late, 0),
    ]
    if version:
        assert [row["error_message"] for row in answer[1:3]] == [
            "Names are in lower case.",
            "6 partitions are more than 5.",
        ]
    assert shown(direct, good, bad, late) == {good: (0, 1), bad: (UNKNOWN_TOPIC, 0), late: (0, 2)}
    recorded = decisions(folder, good, bad, late)
    assert [(each.name, each.error, each.effect, each.api_version) for each in recorded] == [
        (good, "NONE", Effect.APPLIED, version),
        (bad, "POLICY_VIOLATION", Effect.NONE, version),
        (late, "NONE", Effect.APPLIED, version),
    ]
    created = recorded[0]
    assert created.after is not None and len(created.after.replicas) == 1
    assert created.before is None and created.enforced and created.upstream_cluster_id


@pytest.mark.parametrize("version", range(7))
def test_some_deletions_are_refused(through: Wire, direct: Wire, folder: Path, version: int) -> None:
    """Deletions are refused by name and by id; versions that are older than policies are answered
    UNKNOWN_SERVER_ERROR (K201-7a).
    """
    kept, gone, missing = f"kept-d{version}", f"d{version}", f"missing{version}"
    create(direct, topic(kept), topic(gone))
    by_id = {row["name"]: row["topic_id"] for row in direct.ask("Metadata", 12, {"topics": None})["topics"]}
    if version < 6:
        asked: dict[str, Any] = {"topic_names": [gone, kept, missing]}
    else:
        nobody = str(UUID(int=7))
        asked = {"topics": [{"name": None, "topic_id": each} for each in (by_id[gone], by_id[kept], nobody)]}
    rows = through.ask("DeleteTopics", version, {**asked, "timeout_ms": 10_000})["responses"]
    refused = VIOLATION if version >= 2 else UNKNOWN_SERVER_ERROR
    assert [row["error_code"] for row in rows] == [0, refused, UNKNOWN_TOPIC if version < 6 else 100]
    assert shown(direct, gone, kept) == {gone: (UNKNOWN_TOPIC, 0), kept: (0, 1)}
    assert [(each.name, each.error) for each in decisions(folder, gone, kept) if each.operation == "delete_topic"] == [
        (gone, "NONE"),
        (kept, "POLICY_VIOLATION"),
    ]


@pytest.mark.parametrize("version", range(4))
def test_some_growth_is_refused(through: Wire, direct: Wire, version: int) -> None:
    """CreatePartitions is judged by what the topic would be (U-3c)."""
    one, other = f"g{version}", f"h{version}"
    create(direct, topic(one), topic(other))
    asked = [{"name": each, "count": count, "assignments": None} for each, count in ((one, 6), (other, 5))]
    rows = through.ask("CreatePartitions", version, {"topics": asked, "timeout_ms": 10_000})["results"]
    assert [(row["name"], row["error_code"]) for row in rows] == [(one, VIOLATION), (other, 0)]
    assert shown(direct, one, other) == {one: (0, 1), other: (0, 5)}


@pytest.mark.parametrize(
    ("api", "version"),
    [("AlterConfigs", 0), ("AlterConfigs", 2), ("IncrementalAlterConfigs", 0), ("IncrementalAlterConfigs", 1)],
)
def test_some_configs_are_refused(through: Wire, direct: Wire, api: str, version: int) -> None:
    """Changes of configs are judged by what would hold, for topics and for the defaults of the
    brokers (U-3c).
    """
    good, bad = f"c{api.lower()}{version}", f"b{api.lower()}{version}"
    create(direct, topic(good), topic(bad))
    wanted = (
        (TOPIC, good, "retention.ms", "5000"),
        (TOPIC, bad, "retention.ms", "5"),
        (BROKER, "", "log.retention.ms", "6"),
    )
    asked = []
    for kind, name, key, value in wanted:
        config = {"name": key, "value": value} | ({} if api == "AlterConfigs" else {"config_operation": SET})
        asked.append({"resource_type": kind, "resource_name": name, "configs": [config]})
    rows = through.ask(api, version, {"resources": asked, "validate_only": False})["responses"]
    assert [(row["resource_name"], row["error_code"]) for row in rows] == [(good, 0), (bad, VIOLATION), ("", VIOLATION)]
    resources = [
        {"resource_type": TOPIC, "resource_name": each, "configuration_keys": ["retention.ms"]} for each in (good, bad)
    ]
    told = direct.ask("DescribeConfigs", 4, {"resources": resources})["results"]
    assert [row["configs"][0]["value"] for row in told] == ["5000", "604800000"]


def test_reassignments_and_deleted_records_are_judged(through: Wire, direct: Wire, gateway: GatewayProcess) -> None:
    """A reassignment is refused with a row for each partition, and so is the deletion of records,
    which has no text (U-3c).
    """
    create(direct, topic("kept-r", 2), topic("moves", 2))
    partitions = [{"partition_index": index, "replicas": [1, 2]} for index in (0, 1)]
    asked = {"topics": [{"name": each, "partitions": partitions} for each in ("kept-r", "moves")], "timeout_ms": 10_000}
    rows = through.ask("AlterPartitionReassignments", 0, asked)["responses"]
    codes = {row["name"]: [each["error_code"] for each in row["partitions"]] for row in rows}
    assert codes == {"kept-r": [VIOLATION, VIOLATION], "moves": [0, 0]}
    metadata = direct.ask("Metadata", 9, {"topics": [{"name": "kept-r"}], "allow_auto_topic_creation": False})
    leader = metadata["topics"][0]["partitions"][0]["leader_id"]
    offsets = {
        "topics": [{"name": "kept-r", "partitions": [{"partition_index": 0, "offset": -1}]}],
        "timeout_ms": 10_000,
    }
    for version, code in enumerate((UNKNOWN_SERVER_ERROR, VIOLATION, VIOLATION)):
        with Wire(gateway.addresses[leader]) as wire:
            (row,) = wire.ask("DeleteRecords", version, offsets)["topics"]
        assert [each["error_code"] for each in row["partitions"]] == [code]


@pytest.mark.parametrize("api", ["AlterConfigs", "IncrementalAlterConfigs"])
def test_a_topic_for_dead_letters_is_judged_as_its_creation(
    through: Wire, direct: Wire, folder: Path, api: str
) -> None:
    """A group that names a topic for its dead letters has brokers create it; what the rules allow
    goes on to the cluster, and a node has no configs of groups. A topic that is there may be gone
    when it is needed.
    """
    there = f"DLQ-there-{api}"
    create(direct, topic(there))
    names = {"DLQ": VIOLATION, " DLQ": VIOLATION, there: VIOLATION, "few-of-them": INVALID_REQUEST, "": INVALID_REQUEST}
    for number, (name, code) in enumerate(names.items()):
        config = {"name": "errors.deadletterqueue.topic.name", "value": name}
        resource = {"resource_type": 32, "resource_name": f"{api}-{number}", "configs": [config]}
        version = 2 if api == "AlterConfigs" else 1
        (row,) = through.ask(api, version, {"resources": [resource], "validate_only": False})["responses"]
        assert row["error_code"] == code, name
    (event,) = decisions(folder, f"{api}-0")
    assert event.policy is not None
    assert (event.resource, event.error_code, event.policy.decision) == ("group_config", VIOLATION, "violated")


def test_what_contradicts_itself_is_refused(through: Wire, direct: Wire, folder: Path) -> None:
    """A topic with two wishes for one partition is refused, wherever they stand; others go on, and
    the log tells of no change.
    """
    create(direct, topic("torn"), topic("whole"))
    before = direct.ask("Metadata", 9, {"topics": [{"name": "torn"}], "allow_auto_topic_creation": False})
    rows = [("torn", [1, 2]), ("whole", [1, 2]), ("torn", [1]), ("torn", None)]
    topics = [{"name": name, "partitions": [{"partition_index": 0, "replicas": to}]} for name, to in rows]
    answer = through.ask("AlterPartitionReassignments", 0, {"topics": topics, "timeout_ms": 10_000})
    told = {row["name"]: {each["error_code"] for each in row["partitions"]} for row in answer["responses"]}
    texts = {each["error_message"] for row in answer["responses"] for each in row["partitions"]}
    assert told == {"torn": {INVALID_REQUEST}, "whole": {0}}
    assert texts == {None, "The request asks for two changes of partition 0 of the topic torn. Name it once."}
    assert direct.ask("Metadata", 9, {"topics": [{"name": "torn"}], "allow_auto_topic_creation": False}) == before
    (refused,) = [event for event in decisions(folder, "torn") if event.operation == "alter_partition_reassignments"]
    assert (refused.effect, refused.error_code) == (Effect.NONE, INVALID_REQUEST)


def test_a_topic_by_name_and_id_hides_no_other(through: Wire, direct: Wire) -> None:
    """A topic that is given by its name and an id is the cluster's to refuse, and the one that has
    the name alone is judged.
    """
    create(direct, topic("kept-both"))
    asked = [{"name": "kept-both", "topic_id": str(UUID(int=7))}, {"name": "kept-both", "topic_id": NO_ID}]
    rows = through.ask("DeleteTopics", 6, {"topics": asked, "timeout_ms": 10_000})["responses"]
    assert [row["error_code"] for row in rows] == [42, VIOLATION]
    assert shown(direct, "kept-both") == {"kept-both": (0, 1)}


def test_a_dry_run_changes_nothing(through: Wire, direct: Wire) -> None:
    """`validate_only` is judged and kept."""
    assert create(through, topic("dry"), topic("DRY"), validate_only=True) == [("dry", 0), ("DRY", VIOLATION)]
    assert shown(direct, "dry") == {"dry": (UNKNOWN_TOPIC, 0)}


def test_what_kafka_refuses_first_is_refused_as_by_kafka(through: Wire) -> None:
    """A topic that exists, is named twice or has a name that cannot be, and a broker that is none,
    are refused as Kafka refuses them, whatever else is wrong.
    """
    create(through, topic("there"))
    again = [topic("there"), topic("twice"), topic("twice"), topic("there") | {"replication_factor": 9}]
    assert create(through, *again[:3]) == [("there", EXISTS), ("twice", 42), ("twice", 42)]
    assert create(through, again[3]) == [("there", EXISTS)]
    assert create(through, topic("few") | {"replication_factor": 9}) == [("few", 38)]
    assert create(through, topic("BAD") | {"replication_factor": 9}, topic("BAD NAME")) == [
        ("BAD", 38),
        ("BAD NAME", 17),
    ]
    assert create(through, topic("BAD", 0), topic("BAD2", -2)) == [("BAD", 37), ("BAD2", 37)]
    nowhere = {"num_partitions": -1, "replication_factor": -1}
    for brokers in ([1, 1], [77], []):
        placed = topic("few") | nowhere | {"assignments": [{"partition_index": 0, "broker_ids": brokers}]}
        assert create(through, placed) == [("few", 39)]
    twice = [{"name": "there", "count": count, "assignments": None} for count in (2, 3)]
    rows = through.ask("CreatePartitions", 3, {"topics": twice, "timeout_ms": 10_000})["results"]
    assert [(row["name"], row["error_code"]) for row in rows] == [("there", 42)]
    both = {"name": "there", "topic_id": str(UUID(int=7))}
    rows = through.ask("DeleteTopics", 6, {"topics": [both], "timeout_ms": 10_000})["responses"]
    assert [row["error_code"] for row in rows] == [42]
    unknown = {"name": "retention.ms", "value": "5", "config_operation": 9}
    asked = {"resource_type": TOPIC, "resource_name": "there", "configs": [unknown]}
    (row,) = through.ask("IncrementalAlterConfigs", 1, {"resources": [asked], "validate_only": False})["responses"]
    assert (row["error_code"], row["error_message"]) == (42, "Unknown operations type 9")
    config = {"name": "log.retention.ms", "value": "5", "config_operation": SET}
    for name in ("abc", "-1", "7"):
        asked = {"resource_type": BROKER, "resource_name": name, "configs": [config]}
        (row,) = through.ask("IncrementalAlterConfigs", 1, {"resources": [asked], "validate_only": False})["responses"]
        assert row["error_code"] == 42 and "judge" not in row["error_message"]


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12])
def test_automatic_creations_are_judged(through: Wire, direct: Wire, folder: Path, version: int) -> None:
    """Metadata creates the topics that the rules allow, and answers the others (U-3c)."""
    good, bad = f"auto{version}", f"AUTO{version}"
    asked: dict[str, Any] = {"topics": [{"name": good}, {"name": bad}]}
    if version >= 4:
        asked["allow_auto_topic_creation"] = True
    rows = {row["name"]: row["error_code"] for row in through.ask("Metadata", version, asked)["topics"]}
    assert rows.keys() == {good, bad} and rows[bad] == VIOLATION
    until(lambda: shown(direct, good)[good] == (0, 1))
    assert shown(direct, bad) == {bad: (UNKNOWN_TOPIC, 0)}
    until(lambda: len(decisions(folder, good, bad)) == 2)
    assert {(each.name, each.error, each.api) for each in decisions(folder, good, bad)} == {
        (good, "NONE", "Metadata"),
        (bad, "POLICY_VIOLATION", "Metadata"),
    }


def test_requests_that_overlap_do_not_exceed_a_limit(gateway: GatewayProcess, direct: Wire) -> None:
    """Creations that come at once over several connections are judged one after the other: what is
    under way counts (U-3c).
    """
    codes: list[int] = []

    def ask(number: int) -> None:
        with Wire(gateway.bootstrap) as wire:
            codes.extend(code for _, code in create(wire, topic(f"few-{number}")))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [0] * 3 + [VIOLATION] * 7
    names = [f"few-{number}" for number in range(10)]
    assert sorted(code for code, _ in shown(direct, *names).values()) == [0] * 3 + [UNKNOWN_TOPIC] * 7


def test_responses_keep_the_order_of_requests(through: Wire, direct: Wire) -> None:
    """Requests that are sent without waiting are answered in their order, those of the gateway
    itself included, and each sees what those before it did.
    """
    delete = {"topics": [{"name": "row", "topic_id": NO_ID}], "timeout_ms": 10_000}
    frames = [
        through.frame("CreateTopics", 7, {"topics": [topic("row")], "timeout_ms": 10_000}),
        through.frame("CreateTopics", 7, {"topics": [topic("ROW")], "timeout_ms": 10_000}),
        through.frame("DeleteTopics", 6, delete),
        through.frame("Metadata", 9, {"topics": [], "allow_auto_topic_creation": False}),
    ]
    through.send(b"".join(frames))
    answers = [through.receive() for _ in frames]
    assert [answer[:4] for answer in answers] == [frame[8:12] for frame in frames]
    assert shown(direct, "row") == {"row": (UNKNOWN_TOPIC, 0)}


def topic_is_shown(wire: Wire, name: str) -> bool:
    return not shown(wire, name)[name][0]


def test_clients_that_leave_are_recorded(gateway: GatewayProcess, direct: Wire, folder: Path) -> None:
    """A client that resets its connection once the cluster has its topic does not keep the decision
    out of the log, though its response would have waited for that (U-3d).
    """
    names = [f"leaves{number}" for number in range(20)]
    for name in names:
        with Wire(gateway.bootstrap) as wire:
            wire.send(wire.frame("CreateTopics", 7, {"topics": [topic(name)], "timeout_ms": 10_000}))
            until(partial(topic_is_shown, direct, name))
            wire.reset()
    until(lambda: {each.name for each in decisions(folder, *names)} == set(names))


@pytest.mark.parametrize("api", ["CreateTopics", "Metadata"])
def test_what_names_too_much_is_refused_and_recorded_as_one(
    through: Wire, direct: Wire, folder: Path, api: str
) -> None:
    """Each topic of a request with more than 5,000 is answered that it is refused, none is created,
    and the audit log has one event for all of them.
    """
    names = [f"many.{api.lower()}.{number}" for number in range(MOST_PARTS + 1)]
    before = len(decisions(folder, ""))
    if api == "CreateTopics":
        answered = dict(create(through, *map(topic, names)))
        assert answered == dict.fromkeys(names, INVALID_REQUEST)
    else:
        asked = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": True}
        rows = through.ask("Metadata", 9, asked)["topics"]
        assert {row["name"]: row["error_code"] for row in rows} == dict.fromkeys(names, INVALID_TOPIC)
    *_, decision = decisions(folder, "")
    assert len(decisions(folder, "")) == before + 1
    assert (decision.resource, decision.api, decision.error_code) == ("resource", api, INVALID_REQUEST)
    assert f"{len(names)} topics or resources" in (decision.message or "")
    assert decisions(folder, *names) == []
    assert shown(direct, names[0], names[-1]) == dict.fromkeys((names[0], names[-1]), (UNKNOWN_TOPIC, 0))


def test_the_audit_log_can_be_judged_again(gateway: GatewayProcess, folder: Path) -> None:
    """The log of all tests before this one is replayed without a finding, and the rules say of each
    recorded request what they said then.
    """
    assert gateway.pid
    assert not list(Verification([folder / "audit"]).findings())
    judge = PolicyJudge(rules=rules_of([(folder / "rules.toml", RULES.encode())]))
    replay, judged = Replay(), 0
    for event in events(folder):
        question = replay.question(event) if isinstance(event, Decision) else None
        if question is not None:
            assert isinstance(event, Decision) and event.policy is not None, event
            assert judge.judge(*question).decision.value == event.policy.decision, event
            judged += 1
        assert list(replay.apply(event)) == []
    assert judged > 50
