"""Who has to find out afterwards: what the log shows of each decision, after a crash too, and of
any moment.
"""

import json
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.cli.command import end, running
from tests.people.person import Person
from tests.support.cluster import MiniCluster
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

RULES = """[[partitions]]
max = 4
message = "At most 4 partitions."
"""
SETTINGS = {
    "policy.rules.files": "rules.toml",
    "audit.dir": "audit",
    "audit.flush": "always",
    "zookeeper.session.timeout.ms": "2000",
}


def client(cluster: MiniCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def seen(cluster: MiniCluster) -> dict[str, int]:
    """How many partitions each topic has, as a client sees it."""
    topics = client(cluster).list_topics(timeout=20).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if not name.startswith("__")}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def rebuilt(person: Person, moment: str) -> dict[str, int]:
    """Return the topics as the events until a moment leave them, by the rules for a replay that
    docs/audit.md gives, without any code of the program.
    """
    shown = person("audit", "show", "audit", "--json", "--until", moment)
    assert (shown.code, shown.stderr) == (0, "")
    topics: dict[str, Any] = {}
    for line in shown.stdout.splitlines():
        event = json.loads(line)
        match event["kind"]:
            case "snapshot_begin":
                topics = {}
            case "snapshot_topics":
                topics |= {each["topic"]: each["state"] for each in event["topics"]}
            case "decision" if event["resource"] == "topic":
                topics[event["name"]] = event["after"]
            case "observed":
                topics[event["topic"]] = event["after"]
            case "removal":
                topics.pop(event["topic"])
    there = {name: state for name, state in topics.items() if state and not state["marked_for_deletion"]}
    return {name: len(state["replicas"]) for name, state in there.items()}


def test_every_decision_is_found_again(somebody: Person, zookeeper: ZooKeeperServer) -> None:
    """After SIGKILL and another start each decision is there with its reason, the log is whole, and
    the state of a past moment is the one that a client saw then.
    """
    somebody.write("rules.toml", RULES)
    store = f"zookeeper://{zookeeper.connect}/auditor"
    moments: list[tuple[str, dict[str, int]]] = []
    cluster = MiniCluster(store=store, settings=SETTINGS, command=somebody.command, folder=somebody.folder)
    cluster.start()
    admin = client(cluster)
    admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result()
    admin.create_topics([NewTopic("clicks", 4, 1)])["clicks"].result()
    moments.append((now(), seen(cluster)))
    with pytest.raises(KafkaException, match="At most 4 partitions"):
        admin.create_partitions([NewPartitions("orders", 5)])["orders"].result()
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result()
    admin.delete_topics(["clicks"])["clicks"].result()
    until(lambda: "clicks" not in seen(cluster))
    moments.append((now(), seen(cluster)))
    cluster.kill()
    with somebody.up(SETTINGS, store=store) as again:
        assert seen(again) == {"orders": 3}
        admin = client(again)
        admin.create_topics([NewTopic("returns", 1, 1)])["returns"].result()
        moments.append((now(), seen(again)))
    assert [counts for _, counts in moments] == [{"orders": 2, "clicks": 4}, {"orders": 3}, {"orders": 3, "returns": 1}]
    assert [rebuilt(somebody, moment) for moment, _ in moments] == [counts for _, counts in moments]
    assert somebody("audit", "verify", "audit").code == 0
    refused = somebody("audit", "show", "audit", "--outcome", "refused", "--topic", "orders").stdout
    assert refused.count("POLICY_VIOLATION") >= 1
    assert "At most 4 partitions." in refused
    allowed = somebody("audit", "show", "audit", "--outcome", "allowed", "--topic", "clicks", "--json").stdout
    operations = [json.loads(line)["operation"] for line in allowed.splitlines()]
    assert operations == ["create_topic", "delete_topic"]
    early = somebody("audit", "show", "audit", "--topic", "orders", "--until", moments[0][0], "--json").stdout
    assert len(early.splitlines()) == 1


def test_the_log_is_followed(somebody: Person) -> None:
    """`audit tail -f` shows a decision and its reason while the cluster runs, and Ctrl-C ends it
    with code 0.
    """
    somebody.write("rules.toml", RULES)
    with somebody.up({**SETTINGS, "audit.flush": "interval", "audit.flush.interval.ms": "50"}) as cluster:
        until(lambda: any(Path(somebody.folder, "audit").glob("*.ndjson")))
        with running("audit", "tail", "-f", "audit", folder=somebody.folder, command=somebody.command) as tail:
            admin = client(cluster)
            with pytest.raises(KafkaException, match="At most 4 partitions"):
                admin.create_topics([NewTopic("wide", 5, 1)])["wide"].result()
            assert tail.stdout is not None
            line = next(line for line in tail.stdout if "wide" in line)
            assert "POLICY_VIOLATION" in line
            assert "At most 4 partitions." in line
            outcome = end(tail, signal.SIGINT)
        assert (outcome.code, outcome.stderr) == (0, "")
