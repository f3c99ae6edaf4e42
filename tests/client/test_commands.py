"""The administrative commands, against our nodes and a real Kafka: the same call gives the same
answer.
"""

from uuid import uuid4

import pytest

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.dry_runs import packed
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.registry import KAFKA
from tests.client.installed import Installed
from tests.support.cluster import Cluster, controller_id, other_ids
from tests.support.kafka import KafkaCluster
from tests.support.waiting import until
from tests.support.wire import Wire, read_answer

pytestmark = pytest.mark.slow


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"t-{uuid4()}"


def refused(code: int, name: str, **facts: object) -> dict[str, object]:
    return {**facts, "ok": False, "error": {"code": code, "name": name}}


def without_messages(document: dict[str, object]) -> dict[str, object]:
    results = document["results"]
    assert isinstance(results, list)
    for result in results:
        if result["error"] is not None:
            assert result["error"].pop("message")
    return document


def test_a_topic_from_its_making_to_its_end(command: Installed, topic: str) -> None:
    """K117-1a: created, listed, described, altered and deleted, each with code 0 and a line that
    says it.
    """
    arguments = ["--partitions", "2", "--replication-factor", "3", "--config", "retention.ms=60000"]
    made = command("topics", "create", topic, *arguments)
    assert made == (0, f"{topic}: created, partitions 2, replication factor 3\n", "")
    listed = command("topics", "list", "t-*").stdout
    assert [topic, "2", "3"] in [line.split() for line in listed.splitlines()]
    described = command("topics", "describe", topic).stdout
    assert described.startswith(f"{topic}: 2 partitions, replication factor 3, id ")
    assert "  retention.ms=60000\n" in described
    altered = command("topics", "alter", topic, "--partitions", "3", "--delete-config", "retention.ms")
    assert altered == (0, f"{topic}: altered (configs)\n{topic}: altered (partitions)\n", "")
    assert command("topics", "delete", topic) == (0, f"{topic}: deleted\n", "")


def test_replicas_that_move_and_a_leader_that_is_elected(command: Installed, topic: str) -> None:
    """Another order of the replicas is a move; the preferred leader is elected, by a command unless
    the cluster was faster; a second election is not needed.
    """
    partition = f"{topic}-0"
    command("topics", "create", topic, "--assignment", "1:2")
    moved = command("reassignments", "start", f"{partition}=2:1")
    assert moved == (0, f"{partition}: moves to 2,1\n", "")
    until(lambda: command.json("reassignments", "list", topic)["reassignments"], right=lambda moving: not moving)
    elected = command("leaders", "elect", partition)
    assert elected.code == 0 and elected.stdout in (f"{partition}: elected\n", f"{partition}: needs no election\n")
    until(lambda: leader(command, topic), right=lambda broker_id: broker_id == 2)
    needless = command.json("leaders", "elect", partition)["results"]
    assert needless == [{"topic": topic, "partition": 0, "elected": False, "ok": True, "error": None}]
    assert command("leaders", "elect", "--all").code == 0
    assert command("leaders", "elect").code == 2


def leader(command: Installed, topic: str) -> int:
    [described] = command.json("topics", "describe", topic)["topics"]
    broker_id: int = described["partitions"][0]["leader"]
    return broker_id


def test_records_are_deleted(command: Installed, topic: str) -> None:
    """Partitions with different leaders, and one that does not exist, each have an answer of their
    own.
    """
    command("topics", "create", topic, "--assignment", "1:2,2:3,3:1")
    deleted = command.json("records", "delete", f"{topic}-0", f"{topic}-2=0", f"{topic}-1=7", f"{topic}-9", code=1)
    done = [{"topic": topic, "partition": index, "low_watermark": 0, "ok": True, "error": None} for index in (0, 2)]
    failed = {"topic": topic, "low_watermark": None}
    assert without_messages(deleted) == {
        "dry_run": False,
        "results": [
            *done,
            refused(1, "OFFSET_OUT_OF_RANGE", **failed, partition=1),
            refused(3, "UNKNOWN_TOPIC_OR_PARTITION", **failed, partition=9),
        ],
    }
    for wrong in (topic, f"{topic}-0=x", f"{topic}-0=-2", f"{topic}-0={2**63}"):
        assert command("records", "delete", wrong).code == 2, wrong


def test_a_deletion_is_tried(cluster: Cluster, command: Installed, topic: str) -> None:
    """K201-8a, K201-8b: a dry run says what would come of it and deletes nothing. A Kafka is not
    asked, and even if it is, it sees nothing to delete.
    """
    command("topics", "create", topic, "--assignment", "1:2")
    tried = command("topics", "delete", topic, f"{topic}-not", "--dry-run")
    emptied = command("records", "delete", f"{topic}-0", "--dry-run")
    if isinstance(cluster, KafkaCluster):
        assert (tried.code, emptied.code) == (1, 1)
        for outcome in (tried, emptied):
            assert "UNSUPPORTED_VERSION" in outcome.stderr and "does not know of dry runs" in outcome.stderr
    else:
        assert (tried.code, emptied) == (1, (0, f"{topic}-0: would be deleted\n", ""))
        assert tried.stdout == f"{topic}: would be deleted\n" and "UNKNOWN_TOPIC_OR_PARTITION" in tried.stderr
    knows = not isinstance(cluster, KafkaCluster)
    request = packed(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000))
    frame = KAFKA.encode_request(RequestHeader(ApiKey.DELETE_TOPICS, 6, 1, "force"), request)
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            rows = read_answer("DeleteTopics", 6, wire.exchange(frame))["responses"]
        assert [(row["name"], row["error_code"]) for row in rows] == ([(topic, 0)] if knows else [])
    assert command("topics", "describe", topic).code == 0


def test_the_shape_of_topics_for_machines(command: Installed, topic: str) -> None:
    """The JSON of list, describe, create and delete is what docs/commands.md writes down."""
    created = command.json("topics", "create", topic, "--assignment", "1:2", "--config", "cleanup.policy=compact")
    counts = {"topic": topic, "partitions": 1, "replication_factor": 2}
    assert created == {"dry_run": False, "results": [{**counts, "ok": True, "error": None}]}
    listed = command.json("topics", "list", topic)
    assert listed == {"topics": [{"name": topic, "partitions": 1, "replication_factor": 2, "internal": False}]}
    [described] = command.json("topics", "describe", topic)["topics"]
    assert len(described.pop("id")) == len("AAAAAAAAAAAAAAAAAAAAAA")
    assert described == {
        "name": topic,
        "internal": False,
        "partitions": [{"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1, 2], "offline": []}],
        "configs": {"cleanup.policy": "compact"},
        "error": None,
    }
    deleted = command.json("topics", "delete", topic)
    assert deleted == {"dry_run": False, "results": [{"topic": topic, "ok": True, "error": None}]}


def test_each_element_has_its_own_verdict(command: Installed, topic: str) -> None:
    """K117-2: what is refused names code and reason, its neighbour is created, and
    the code is 1.
    """
    answer = command.json("topics", "create", topic, "no good", "--partitions", "1", code=1)
    assert without_messages(answer)["results"] == [
        {"topic": topic, "partitions": 1, "replication_factor": 1, "ok": True, "error": None},
        refused(17, "INVALID_TOPIC_EXCEPTION", topic="no good"),
    ]
    said = command("topics", "create", topic, "--partitions", "1")
    assert (said.code, said.stdout) == (1, "")
    assert said.stderr == f"{topic}: refused (TOPIC_ALREADY_EXISTS): Topic '{topic}' already exists.\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("topics", "delete", "nobody.knows"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "describe", "nobody.knows"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "alter", "nobody.knows", "--partitions", "3"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "create", "too.many", "--replication-factor", "9"), "INVALID_REPLICATION_FACTOR"),
        (("configs", "get", "--topic", "nobody.knows"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("configs", "get", "--broker", "77"), "BROKER_NOT_AVAILABLE"),
        (("configs", "set", "--broker", "77", "log.retention.ms=5"), "BROKER_NOT_AVAILABLE"),
    ],
)
def test_a_refusal_is_a_sentence_and_code_1(command: Installed, arguments: tuple[str, ...], code: str) -> None:
    """K4-C8a, K4-D2a: whatever the cluster refuses is one line on stderr with Kafka's name for it,
    and nothing on stdout.
    """
    outcome = command(*arguments)
    assert (outcome.code, outcome.stdout) == (1, "")
    assert f": refused ({code}): " in outcome.stderr
    assert outcome.stderr.endswith(".\n")
    assert outcome.stderr.count("\n") == 1


def test_a_dry_run_changes_nothing(command: Installed, topic: str) -> None:
    """--dry-run says what would be, and afterwards all is as it was."""
    create = ("topics", "create", topic, "--partitions", "1", "--replication-factor", "1")
    assert command(*create, "--dry-run").stdout == f"{topic}: would be created, partitions 1, replication factor 1\n"
    assert command.json("topics", "list", topic) == {"topics": []}
    command(*create)
    assert command("topics", "alter", topic, "--partitions", "4", "--dry-run").stdout == (
        f"{topic}: would be altered (partitions)\n"
    )
    assert command("configs", "set", "--topic", topic, "retention.ms=1", "--dry-run").code == 0
    assert command("configs", "set", "--topic", topic, "retention.ms=never", "--dry-run").code == 1
    [described] = command.json("topics", "describe", topic)["topics"]
    assert (len(described["partitions"]), described["configs"]) == (1, {})


def test_the_configs_of_a_topic(command: Installed, topic: str) -> None:
    """Set, got, added to a list, unset; and the JSON of get is what docs/commands.md
    writes down.
    """
    command("topics", "create", topic)
    where = ("--topic", topic)
    assert command("configs", "set", *where, "cleanup.policy+=compact").stdout == f"topic {topic}: set cleanup.policy\n"
    entry = {
        "name": "cleanup.policy",
        "value": "delete,compact",
        "from": "topic",
        "read_only": False,
        "sensitive": False,
    }
    resource = {"type": "topic", "name": topic, "configs": [entry], "error": None}
    assert command.json("configs", "get", *where) == {"resources": [resource]}
    assert command.json("configs", "unset", *where, "cleanup.policy") == {
        "dry_run": False,
        "results": [{"type": "topic", "name": topic, "ok": True, "error": None}],
    }
    assert command("configs", "get", *where).stdout == f"topic {topic}: nothing is set\n"
    assert "604800000" in command("configs", "get", *where, "retention.ms").stdout
    unknown = command("configs", "get", *where, "retention.mss")
    assert (unknown.code, unknown.stdout) == (2, "")
    assert "There is no config retention.mss; did you mean retention.ms?" in unknown.stderr
    default = command("configs", "get", "--cluster", "log.cleaner.thread")
    assert default.code == 2 and "did you mean log.cleaner.threads?" in default.stderr
    assert "nothing is set" in command("configs", "get", "--cluster", "log.cleaner.threads").stdout


def test_the_configs_of_brokers(command: Installed) -> None:
    """A broker's own value and the cluster's default are set and taken back, and each tells where
    it comes from.
    """
    key = "log.cleaner.threads"
    assert command("configs", "set", "--cluster", f"{key}=2").stdout == f"the cluster's default: set {key}\n"
    assert command("configs", "set", "--broker", "2", f"{key}=1").stdout == f"broker 2: set {key}\n"
    wanted = [("broker", "2", "1", "broker"), ("broker", None, "2", "cluster default")]
    until(lambda: broker_configs(command, key), right=lambda found: found == wanted)  # a Kafka follows its own changes
    assert command("configs", "unset", "--broker", "2", "--cluster", key).code == 0


def broker_configs(command: Installed, key: str) -> list[tuple[str, str | None, str, str]]:
    """A config of broker 2, and of all brokers: whose it is, its value, and where this is from."""
    found = command.json("configs", "get", "--broker", "2", "--cluster", key)["resources"]
    return [(item["type"], item["name"], entry["value"], entry["from"]) for item in found for entry in item["configs"]]


def test_the_cluster_at_a_glance(command: Installed, cluster: Cluster) -> None:
    """K4-X1a: the nodes, the controller, and what is wrong, in a table and in JSON."""
    seen = command.json("cluster")
    addresses = {broker["id"]: f"{broker['host']}:{broker['port']}" for broker in seen["brokers"]}
    assert (addresses, seen["controller_id"]) == (dict(cluster.addresses), controller_id(cluster))
    assert set(seen) == {
        *("cluster_id", "controller_id", "brokers", "topics", "partitions"),
        *("partitions_without_leader", "under_replicated_partitions"),
    }
    table = command("cluster").stdout
    assert table.startswith(f"cluster {seen['cluster_id']}\n")
    assert [line.split()[0] for line in table.splitlines() if line.endswith("controller")] == [
        str(seen["controller_id"])
    ]


def test_any_node_is_good_to_begin_with(command: Installed, cluster: Cluster, topic: str) -> None:
    """K4-C1, K117-3a: a write that begins at a node that is not the controller, behind an address
    where nobody is, is done.
    """
    other = cluster.addresses[other_ids(cluster)[0]]
    made = command("topics", "create", topic, "--partitions", "1", "--bootstrap-server", f"127.0.0.1:1,{other}")
    assert made.code == 0


def test_nobody_there_is_a_sentence_and_code_3(command: Installed) -> None:
    """Every address is named on stderr; with --json the same is an object on stdout."""
    outcome = command("topics", "list", "--bootstrap-server", "127.0.0.1:1,[::1]:1", "--json")
    assert outcome.code == 3
    assert outcome.stderr.startswith("Error: Cannot reach 127.0.0.1:1: ")
    assert "[::1]:1" in outcome.stderr
    assert '"name": "UNREACHABLE"' in outcome.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "list", "--bootstrap-server", "here"), "'here' is not HOST:PORT"),
        (("topics", "list", "--bootstrap-server", "::1:9092"), "in brackets"),
        (("topics", "list", "--bootstrap-server", "no..name:1"), "'no..name' is no name of a host"),
        (("topics", "create", "a", "--config", "key"), "'key' is not KEY=VALUE"),
        (("topics", "create", "a", "--config", "k=1", "--config", "k=2"), "k is set twice"),
        (("topics", "create", "a", "--assignment", "1:x"), "is not of the form 1:2,2:3"),
        (("topics", "create", "a", "--assignment", "1:2", "--partitions", "3"), "leave out --partitions"),
        (("topics", "create"), "Missing argument 'NAME...'"),
        (("topics", "alter", "a"), "Nothing to alter"),
        (("configs", "get"), "Name a resource: --topic NAME, --broker ID or --cluster"),
        (("configs", "set", "a", "--cluster"), "'a' is not KEY=VALUE"),
    ],
)
def test_a_wrong_call_is_code_2(command: Installed, arguments: tuple[str, ...], said: str) -> None:
    """What is typed wrongly is said before anybody is asked."""
    outcome = command(*arguments)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert said in outcome.stderr
