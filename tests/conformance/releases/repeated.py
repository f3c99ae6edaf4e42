"""How a cluster is asked what names something twice, and what it then has."""

import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaProducer

from tests.conformance.releases.kafkas import (
    BROKER,
    SETTLING_SECONDS,
    answered,
    codes,
    created,
    metadata,
    second_directory,
    topics_now,
)
from tests.conformance.releases.repeated_cases import (
    CASES,
    DIR,
    NEW,
    OTHER_DIR,
    Repeated,
    T,
    U,
    acl,
    acl_filter,
    committed,
)
from tests.support.kafka import KafkaProcesses
from tests.support.wire import Body, Wire

LOOKS_AT_MOST = 100


def asked(cluster: KafkaProcesses) -> list[Any]:
    """What a cluster answers to each case, and what it has afterwards."""
    address = cluster.addresses[1]
    with Wire(address) as wire:
        found = [name.format(number) for number in range(len(CASES)) for name in (T, U)]
        assignments = [{"partition_index": index, "broker_ids": [1, 2]} for index in range(2)]
        created(
            wire,
            [{"name": n, "num_partitions": -1, "replication_factor": -1, "assignments": assignments} for n in found],
        )
        topic_ids = {row["name"]: row["topic_id"] for row in metadata(wire, found)}
    _with_records(cluster, [T.format(n) for n, each in enumerate(CASES) if each.look in ("records", "offsets")])
    return [_asked(cluster, address, number, case, topic_ids) for number, case in enumerate(CASES)]


def _asked(cluster: KafkaProcesses, address: str, number: int, case: Repeated, topic_ids: dict[str, str]) -> Any:
    body = case.of(number, topic_ids)
    with Wire(address) as wire:
        if case.look == "offsets":
            address = cluster.addresses[_coordinator(wire, f"g{number}")]
            coordinated(address, f"g{number}")
    with Wire(address) as wire:
        if case.look == "offsets" and case.api != "OffsetCommit":
            wire.ask("OffsetCommit", 8, Repeated("", "", 0, committed((T, [(0, 5), (1, 5)]))).of(number, {}))
        if case.api == "DeleteAcls":
            wire.ask("CreateAcls", 3, {"creations": [{**acl(), "resource_name": T.format(number)}]})
        paths = _paths(cluster, wire, number) if case.look == "directories" else {}
        for each in body.get("dirs", ()):
            each["path"] = paths.get(each["path"], each["path"])
    answer = answered(address, case.api, case.version, body)
    time.sleep(SETTLING_SECONDS)
    with Wire(address) as wire:
        left = LOOKS[case.look](cluster, wire, number)
        if paths:
            left = [each for each, path in paths.items() if path in left]
    return [codes(answer), left]


def _with_records(cluster: KafkaProcesses, topics: list[str]) -> None:
    """Write five records into each partition."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    futures = [
        producer.send(topic, b"record", partition=index) for topic in topics for index in (0, 1) for _ in range(5)
    ]
    for future in futures:
        future.get(60)
    producer.close()


def _coordinator(wire: Wire, group: str) -> int:
    """The coordinator of a group, once there is one."""
    for _ in range(LOOKS_AT_MOST):
        answer = wire.ask("FindCoordinator", 3, {"key": group, "key_type": 0})
        if not answer["error_code"]:
            node_id: int = answer["node_id"]
            return node_id
        time.sleep(SETTLING_SECONDS)
    raise AssertionError(f"no coordinator of {group}")


def coordinated(address: str, group: str) -> None:
    """Wait until a coordinator has loaded a group."""
    with Wire(address) as wire:
        for _ in range(LOOKS_AT_MOST):
            if not wire.ask("OffsetFetch", 7, {"group_id": group, "topics": None})["error_code"]:
                return
            time.sleep(SETTLING_SECONDS)
    raise AssertionError(f"{group} is not loaded")


def _topics(_cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    return topics_now(wire, [name.format(number) for name in (T, U, NEW)])


def _records(cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    partitions = [{"partition_index": index, "timestamp": -2, "current_leader_epoch": -1} for index in (0, 1)]
    body = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": T.format(number), "partitions": partitions}]}
    answer = wire.ask("ListOffsets", 5, body)
    rows = sorted(answer["topics"][0]["partitions"], key=lambda each: each["partition_index"])
    return [each["offset"] for each in rows]


def _paths(cluster: KafkaProcesses, wire: Wire, number: int) -> dict[str, str]:
    """The directories of node 1, that in which it has its replica first."""
    (first,) = _directories(cluster, wire, number)
    both = {str(cluster.folder / "logs-1"), str(second_directory(cluster, 1))}
    return {DIR: first, OTHER_DIR: (both - {first}).pop()}


def _directories(_cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    """The directories in which node 1 has its replica, once it is not moved any more."""
    rows: list[tuple[str, Body]] = []
    for _ in range(LOOKS_AT_MOST):
        answer = wire.ask("DescribeLogDirs", 3, {"topics": [{"topic": T.format(number), "partitions": [0]}]})
        rows = [
            (row["log_dir"], each)
            for row in answer["results"]
            for topic in row["topics"]
            for each in topic["partitions"]
        ]
        if rows and not any(each["is_future_key"] for _, each in rows):
            break
        time.sleep(SETTLING_SECONDS)
    return [path for path, _ in rows]


def _acls(_cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    answer = wire.ask("DescribeAcls", 3, acl_filter(T.format(number)))
    return sorted(each["principal"] for row in answer["resources"] for each in row["acls"])


def _quotas(_cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    components = [{"entity_type": "user", "match_type": 0, "match": name.format(number)} for name in (T, U)]
    answers = [wire.ask("DescribeClientQuotas", 1, {"components": [each], "strict": False}) for each in components]
    return [
        [
            [
                sorted((e["entity_type"], e["entity_name"]) for e in row["entity"]),
                {v["key"]: v["value"] for v in row["values"]},
            ]
            for row in answer["entries"] or ()
        ]
        for answer in answers
    ]


def _users(_cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    answer = wire.ask("DescribeUserScramCredentials", 0, {"users": [{"name": T.format(number)}]})
    return [[(each["mechanism"], each["iterations"]) for each in row["credential_infos"]] for row in answer["results"]]


def _offsets(_cluster: KafkaProcesses, wire: Wire, number: int) -> Any:
    answer = wire.ask("OffsetFetch", 7, {"group_id": f"g{number}", "topics": None})
    return sorted(
        (row["name"], each["partition_index"], each["committed_offset"])
        for row in answer["topics"]
        for each in row["partitions"]
    )


def _broker(_cluster: KafkaProcesses, wire: Wire, _number: int) -> Any:
    resources = [{"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["log.cleaner.threads"]}]
    answer = wire.ask("DescribeConfigs", 4, {"resources": resources, "include_synonyms": True})
    return [
        [[each["source"], each["value"]] for each in config["synonyms"]]
        for row in answer["results"]
        for config in row["configs"]
    ]


def _loggers(_cluster: KafkaProcesses, wire: Wire, _number: int) -> Any:
    resources = [{"resource_type": 8, "resource_name": "1", "configuration_keys": ["kafka.server.KafkaApis"]}]
    answer = wire.ask("DescribeConfigs", 4, {"resources": resources})
    return [config["value"] for row in answer["results"] for config in row["configs"]]


def _nothing(_cluster: KafkaProcesses, _wire: Wire, _number: int) -> Any:
    return None


LOOKS: dict[str, Callable[[KafkaProcesses, Wire, int], Any]] = {
    "topics": _topics,
    "records": _records,
    "directories": _directories,
    "acls": _acls,
    "quotas": _quotas,
    "users": _users,
    "offsets": _offsets,
    "broker": _broker,
    "loggers": _loggers,
    "nothing": _nothing,
}
