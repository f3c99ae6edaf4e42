"""The releases of Kafka whose behaviour decides what the gateway may pass, and how they are asked.

Rule: what a request leaves behind is read back from the cluster, because an answer may say less
than what happened.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.java import java
from tests.support.kafka import KafkaCluster, KafkaProcesses, kafka_libs
from tests.support.kafka_kraft import STANDARD_AUTHORIZER, ZOOKEEPER, Kafka, KraftCluster, directory_id, started
from tests.support.wire import Body, ConnectionEndedError, Wire
from tests.support.znodes import ZnodeWatcher

RECORDINGS = Path(__file__).parent / "recordings"
NODES = Kafka("3.9.2", ZOOKEEPER)
"""The release that nodes follow."""
RELEASES = (NODES, Kafka("4.1.1", "kraft"), Kafka("4.4.0", "kraft"))
BROKERS = 3
TOPIC, BROKER = 2, 4
OF_TOPIC = 1
"""The source of a config that a topic has itself, in DescribeConfigs."""
SETTLING_SECONDS = 0.5
"""What an answered change takes to be seen, where nothing says when it is."""
LOOKS = 60
MOVING_LOOKS = 10
PATIENCE_SECONDS = 15.0
"""How long an answer is waited for: Kafka 3.9 never answers some requests."""
DUMPS = ("kafka.tools.DumpLogSegments", "org.apache.kafka.tools.DumpLogSegments")
POLICY = Path(__file__).parent / "RecordingPolicy.java"


class _TwoDirectories(KafkaProcesses):
    """Brokers with two directories for logs."""

    def _properties(self, number: int) -> dict[str, str]:
        properties = super()._properties(number)
        return {**properties, "log.dirs": f"{properties['log.dirs']},{second_directory(self, number)}"}


class _ZooKeeperCluster(_TwoDirectories, KafkaCluster):
    pass


class _KraftCluster(_TwoDirectories, KraftCluster):
    def _format(self, number: int) -> None:
        super()._format(number)
        first = (self.folder / f"logs-{number}" / "meta.properties").read_text()
        second = second_directory(self, number)
        second.mkdir()
        head = first.partition("directory.id=")[0]
        (second / "meta.properties").write_text(f"{head}directory.id={directory_id()}\n")


def second_directory(cluster: KafkaProcesses, number: int) -> Path:
    return cluster.folder / f"more-{number}"


@contextmanager
def running(kafka: Kafka, settings: Mapping[str, str] | None = None) -> Iterator[KafkaProcesses]:
    """Start a cluster for the length of the block, whose policy writes what it is asked."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    libs = kafka_libs(kafka.version)
    subprocess.run(["javac", "-cp", f"{libs}/*", "-d", str(folder), str(POLICY)], check=True)
    authorizer = "kafka.security.authorizer.AclAuthorizer" if kafka.mode == ZOOKEEPER else STANDARD_AUTHORIZER
    own = {
        "alter.config.policy.class.name": "RecordingPolicy",
        "recording.policy.file": str(asked_file(folder)),
        "authorizer.class.name": authorizer,
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
        **(settings or {}),
    }
    cluster: KafkaProcesses = (
        _ZooKeeperCluster(folder, BROKERS, own, version=kafka.version)
        if kafka.mode == ZOOKEEPER
        else _KraftCluster(folder, kafka.version, BROKERS, own)
    )
    cluster.class_path.append(folder)
    with started(cluster):
        yield cluster


def asked_file(folder: Path) -> Path:
    """The file in which a cluster's policy writes what it is asked."""
    return folder / "asked.txt"


def asked_of_policy(cluster: KafkaProcesses, *, since: int) -> list[list[str]]:
    """What the policy was asked after its first `since` questions."""
    file = asked_file(cluster.folder)
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split("\t") for line in lines[since:]]


def answered(address: str, api: str, version: int, body: Body) -> Body | str:
    """The answer to a request, or that there is none."""
    try:
        with Wire(address, timeout=PATIENCE_SECONDS) as wire:
            return wire.ask(api, version, body)
    except ConnectionEndedError:
        return "ended"
    except TimeoutError:
        return "never answered"


def codes(answer: Any) -> Any:
    """The error codes of an answer, in its form: what rows it has, without prose."""
    if isinstance(answer, list):
        return [codes(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    prose = {"error_message", "throttle_time_ms", "configs", "num_partitions", "replication_factor", "topic_id"}
    return {name: codes(value) for name, value in answer.items() if name not in prose}


def created(wire: Wire, topics: Sequence[Body]) -> None:
    """Create topics, and wait until they are led."""
    for first in range(0, len(topics), 100):
        body = {"topics": topics[first : first + 100], "timeout_ms": 60_000, "validate_only": False}
        answer = wire.ask("CreateTopics", 5, body)
        assert not any(row["error_code"] for row in answer["topics"]), answer
    names = [topic["name"] for topic in topics]
    for _ in range(LOOKS):
        rows = metadata(wire, names)
        if all(not row["error_code"] and all(not each["error_code"] for each in row["partitions"]) for row in rows):
            return
        time.sleep(SETTLING_SECONDS)
    raise AssertionError("the topics are not led")


def metadata(wire: Wire, names: Collection[str]) -> list[Body]:
    body = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
    rows: list[Body] = wire.ask("Metadata", 12, body)["topics"]
    return rows


def configs(wire: Wire, names: Collection[str]) -> dict[str, dict[str, str | None]]:
    """The configs that topics have themselves, as they are described."""
    resources = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in names]
    answer = wire.ask("DescribeConfigs", 4, {"resources": resources})
    return {
        result["resource_name"]: {
            each["name"]: each["value"] for each in result["configs"] if each["config_source"] == OF_TOPIC
        }
        for result in answer["results"]
        if not result["error_code"]
    }


def topics_now(wire: Wire, names: Sequence[str]) -> dict[str, Body | None]:
    """What the cluster has of topics, once nothing moves; None for one that it does not have. Kafka
    4 never ends some reassignments that were replaced while they ran.
    """
    rows: dict[str, Body] = {}
    moving: dict[str, Any] = {}
    for _ in range(MOVING_LOOKS):
        time.sleep(SETTLING_SECONDS)
        rows = {row["name"]: row for row in metadata(wire, names) if row["partitions"]}
        moving = _moving(wire, rows)
        if not moving:
            break
    rows = {row["name"]: row for row in metadata(wire, names) if row["partitions"]}
    own = configs(wire, list(rows))
    return {
        name: {
            "replicas": [
                each["replica_nodes"] for each in sorted(row["partitions"], key=lambda each: each["partition_index"])
            ],
            "configs": own.get(name, {}),
            **({"moving": moving[name]} if name in moving else {}),
        }
        if (row := rows.get(name)) is not None
        else None
        for name in names
    }


def _moving(wire: Wire, rows: Mapping[str, Body]) -> dict[str, Any]:
    """The reassignments of topics: what is added and what is removed, by partition."""
    named = [
        {"name": name, "partition_indexes": [each["partition_index"] for each in row["partitions"]]}
        for name, row in rows.items()
    ]
    answer = wire.ask("ListPartitionReassignments", 0, {"timeout_ms": 30_000, "topics": named})
    return {
        row["name"]: [
            [each["partition_index"], each["adding_replicas"], each["removing_replicas"]] for each in row["partitions"]
        ]
        for row in answer["topics"]
    }


def stored_configs(cluster: KafkaProcesses) -> dict[str, dict[str, str]]:
    """The configs of topics as the cluster stores them, by topic."""
    if isinstance(cluster, KafkaCluster):
        with ZnodeWatcher(cluster.zookeeper.connect, "/config/topics") as watcher:
            return {path[1:]: json.loads(data)["config"] for path, data in watcher.znodes.items() if path and data}
    stored: dict[str, dict[str, str]] = {}
    for record in _metadata_records(cluster):
        if record.get("type") == "CONFIG_RECORD" and record["data"]["resourceType"] == TOPIC:
            data = record["data"]
            own = stored.setdefault(data["resourceName"], {})
            own.pop(data["name"], None)
            if data.get("value") is not None:
                own[data["name"]] = data["value"]
    return stored


def _metadata_records(cluster: KafkaProcesses) -> Iterator[Body]:
    log = cluster.folder / "logs-1" / "__cluster_metadata-0" / "00000000000000000000.log"
    main = DUMPS[cluster.version >= "4.2"]
    command = [*java(kafka_libs(cluster.version)), main]
    command += ["--cluster-metadata-decoder", "--files", str(log)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        if "payload: " in line:
            yield json.loads(line.partition("payload: ")[2])


def write(name: str, rows: Sequence[Any]) -> None:
    """Write a recording with a line for each case, so that changes of it can be read."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    (RECORDINGS / f"{name}.json").write_text(f"[\n{lines}\n]\n")


def read(name: str) -> Any:
    return json.loads((RECORDINGS / f"{name}.json").read_text())
