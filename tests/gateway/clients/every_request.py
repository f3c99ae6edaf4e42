"""Requests of all APIs of an administrator, right and wrong, in every version that the gateway
names, as anybody: a line for each answer.

The names of two ways differ in their beginning, so that both can be gone at once. What a cluster
chooses by itself, such as ids, is left out of the lines.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from minicontroller.gateway.apis import APIS
from tests.conformance.scenario import error_codes
from tests.gateway.clients.worlds import ADMIN, Access, password_of
from tests.support.waiting import at_last, until
from tests.support.wire import MESSAGES, Body, ConnectionEndedError, Wire

NO_ID = "00000000-0000-0000-0000-000000000000"
SOME_ID = "11111111-2222-3333-4444-555555555555"
CHOSEN = frozenset({"controller_id", "host", "port", "topic_id", "throttle_time_ms", "producer_id", "producer_epoch"})
"""The fields that a cluster chooses by itself, or by what it has to do."""
TOPIC, BROKER = 2, 4
WITHOUT_TEXT = {3}
"""The error whose text is the gateway's own where a client has rights to some topics alone."""
NO_BROKER = "9"
SET, UNKNOWN_OPERATION = 0, 9
TIMEOUT = {"timeout_ms": 10_000}
PASSING = frozenset({14, 15, 51})
"""The errors of coordinators that are still at something: COORDINATOR_LOAD_IN_PROGRESS,
COORDINATOR_NOT_AVAILABLE, CONCURRENT_TRANSACTIONS.
"""
PATIENCE_SECONDS = 20.0
SEVERAL_GROUPS_SINCE, IDS_SINCE = 8, 6
"""The versions of OffsetFetch and DeleteTopics with other fields."""
AT_COORDINATORS = {
    **dict.fromkeys(("OffsetFetch", "DescribeGroups", "DeleteGroups", "OffsetDelete", "OffsetCommit", "LeaveGroup"), 0),
    **dict.fromkeys(("InitProducerId", "DescribeTransactions"), 1),
}
"""The APIs that are asked of a coordinator, and of which type."""


def new_topic(name: str, **fields: Any) -> Body:
    return {"name": name, "num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": [], **fields}


def placed(name: str, *brokers: int) -> Body:
    rows = [{"partition_index": 0, "broker_ids": list(brokers)}]
    return new_topic(name, num_partitions=-1, replication_factor=-1, assignments=rows)


def resource(kind: int, name: str, *configs: tuple[str, str | None, int]) -> Body:
    rows = [{"name": key, "value": value, "config_operation": operation} for key, value, operation in configs]
    return {"resource_type": kind, "resource_name": name, "configs": rows}


def without_operations(wanted: Body) -> Body:
    """Return a resource in the form of AlterConfigs."""
    return {**wanted, "configs": [{"name": each["name"], "value": each["value"]} for each in wanted["configs"]]}


def requests(prefix: str, version: int) -> Iterator[tuple[str, Body]]:
    """Yield one body after the other, with its API. They leave alone what another version meets."""
    yield from of_topics(prefix, version)
    yield from of_configs(prefix)
    yield from of_placement(prefix)
    yield from of_groups(prefix, version)
    yield from of_security(prefix)
    yield from of_the_cluster(prefix)
    yield from deletions(prefix, version)


def of_topics(prefix: str, version: int) -> Iterator[tuple[str, Body]]:
    topic = f"{prefix}topic"
    wanted = [
        new_topic(f"{topic}{version}"),
        new_topic("bad name!"),
        new_topic(topic),
        new_topic(f"{topic}x", num_partitions=0),
        new_topic(f"{topic}y", replication_factor=99),
        new_topic(f"{topic}twice"),
        new_topic(f"{topic}twice"),
        placed(f"{topic}z", 1, 1),
    ]
    yield "CreateTopics", {"topics": wanted, **TIMEOUT}
    named = [{"name": topic}, {"name": f"{topic}missing"}]
    yield (
        "Metadata",
        {"topics": named, "allow_auto_topic_creation": True, "include_topic_authorized_operations": True},
    )
    yield "DescribeTopicPartitions", {"topics": named, "response_partition_limit": 100, "cursor": None}
    more = [(f"{topic}{version}", 3), (f"{topic}missing", 3), (f"{topic}{version}", 9), (topic, 1)]
    grown = [{"name": name, "count": count, "assignments": None} for name, count in more]
    yield "CreatePartitions", {"topics": grown[:2], **TIMEOUT}
    yield "CreatePartitions", {"topics": grown, **TIMEOUT}
    offsets = [{"partition_index": 7, "offset": 0}]
    yield "DeleteRecords", {"topics": [{"name": topic, "partitions": offsets}], **TIMEOUT}
    asked = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}]
    yield "ListOffsets", {"replica_id": -1, "topics": [{"name": topic, "partitions": asked}]}
    yield "DescribeProducers", {"topics": [{"name": topic, "partition_indexes": [0]}]}


def of_configs(prefix: str) -> Iterator[tuple[str, Body]]:
    topic = f"{prefix}topic"
    asked = [
        {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["cleanup.policy"]},
        {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["log.retention.ms"]},
    ]
    yield "DescribeConfigs", {"resources": asked}
    some = [
        resource(TOPIC, topic, ("retention.ms", "5000", SET)),
        resource(TOPIC, f"{topic}missing", ("retention.ms", "x", SET)),
        resource(BROKER, "9", ("no", "x", SET)),
    ]
    mixed = resource(TOPIC, topic, ("segment.ms", "7000", SET), ("retention.ms", "1", UNKNOWN_OPERATION))
    for only in (True, False):
        yield "AlterConfigs", {"resources": list(map(without_operations, some)), "validate_only": only}
        yield "IncrementalAlterConfigs", {"resources": some, "validate_only": only}
        yield "IncrementalAlterConfigs", {"resources": [mixed], "validate_only": only}


def of_placement(prefix: str) -> Iterator[tuple[str, Body]]:
    topic = f"{prefix}topic"
    partitions = [{"topic": topic, "partitions": [0, 9]}]
    yield "ElectLeaders", {"election_type": 0, "topic_partitions": partitions, **TIMEOUT}
    moved = [{"partition_index": 0, "replicas": [99]}, {"partition_index": 9, "replicas": [1]}]
    yield "AlterPartitionReassignments", {"topics": [{"name": topic, "partitions": moved}], **TIMEOUT}
    yield "ListPartitionReassignments", {"topics": None, **TIMEOUT}
    dirs = [{"path": "/none", "topics": [{"name": topic, "partitions": [0]}]}]
    yield "AlterReplicaLogDirs", {"dirs": dirs}


def of_groups(prefix: str, version: int) -> Iterator[tuple[str, Body]]:
    topic, group, transaction = f"{prefix}topic", f"{prefix}group", f"{prefix}transaction"
    yield "FindCoordinator", {"key": group, "key_type": 0, "coordinator_keys": [group]}
    offsets = [{"name": topic, "partition_indexes": [0]}]
    of_one = {"group_id": group, "topics": offsets}
    yield "OffsetFetch", of_one if version < SEVERAL_GROUPS_SINCE else {"groups": [of_one]}
    yield "DescribeGroups", {"groups": [group]}
    yield "DeleteGroups", {"groups_names": [group]}
    yield "OffsetDelete", {"group_id": group, "topics": []}
    yield "ListGroups", {"states_filter": ["nothing"]}
    begun = {"transactional_id": transaction, "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
    yield "InitProducerId", begun
    yield "DescribeTransactions", {"transactional_ids": [transaction]}


def of_security(prefix: str) -> Iterator[tuple[str, Body]]:
    asked = {"entity_type": "user", "match_type": 0, "match": f"{prefix}nobody"}
    yield "DescribeClientQuotas", {"components": [asked], "strict": False}
    entity = [{"entity_type": "user", "entity_name": prefix}]
    quota = {"key": "producer_byte_rate", "value": 5.0, "remove": False}
    yield "AlterClientQuotas", {"entries": [{"entity": entity, "ops": [quota]}], "validate_only": False}
    yield "DescribeUserScramCredentials", {"users": [{"name": prefix}]}
    yield "DescribeDelegationToken", {"owners": None}
    some = {"resource_type": TOPIC, "resource_name": f"{prefix}acl", "resource_pattern_type": 3}
    allowed = {"principal": "User:x", "host": "*", "operation": 3, "permission_type": 3}
    yield "CreateAcls", {"creations": [{**some, **allowed}, {**some, **allowed, "operation": 1}]}
    anybody = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    wanted = {"resource_type_filter": TOPIC, "pattern_type_filter": 3, "resource_name_filter": f"{prefix}none"}
    yield "DescribeAcls", {**wanted, **anybody}
    yield "DeleteAcls", {"filters": [{**wanted, **anybody}]}
    yield "DeleteAcls", {"filters": [{**wanted, **anybody, "operation": 0}]}


def of_the_cluster(prefix: str) -> Iterator[tuple[str, Body]]:
    yield "DescribeCluster", {"include_cluster_authorized_operations": True}
    update = {"feature": f"{prefix}feature", "max_version_level": 1, "upgrade_type": 1}
    yield "UpdateFeatures", {"feature_updates": [update], **TIMEOUT, "validate_only": True}


def deletions(prefix: str, version: int) -> Iterator[tuple[str, Body]]:
    topic = f"{prefix}topic"
    names = [f"{topic}{version}", f"{topic}missing"]
    if version < IDS_SINCE:
        yield "DeleteTopics", {"topic_names": names, **TIMEOUT}
        yield "DeleteTopics", {"topic_names": [names[1]] * 2, **TIMEOUT}
        return
    yield "DeleteTopics", {"topics": [{"name": name, "topic_id": NO_ID} for name in names], **TIMEOUT}
    others = [{"name": None, "topic_id": SOME_ID}, {"name": names[1], "topic_id": SOME_ID}]
    yield "DeleteTopics", {"topics": others, **TIMEOUT}


class Asker:
    """Asks as one user on one way, of any broker."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._wires: dict[str, Wire] = {}
        self._bootstrap = access.bootstrap
        told = self.ask(self._bootstrap, "Metadata", 1, {"topics": []})
        self._addresses = {each["node_id"]: f"{each['host']}:{each['port']}" for each in told["brokers"]}

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def ask(self, address: str, api: str, version: int, body: Body) -> Body:
        """Return the answer of a broker, asked on one connection to it. Raises
        ConnectionEndedError.
        """
        access = self._access
        if address not in self._wires:
            login = (access.user, password_of(access.user)) if access.logs_in else None
            self._wires[address] = Wire(address, login=login, ca=access.ca if access.has_tls else None)
        try:
            return self._wires[address].ask(api, version, body)
        except ConnectionEndedError:
            self._wires.pop(address).close()
            raise

    def versions(self) -> Mapping[int, range]:
        keys = self.ask(self._bootstrap, "ApiVersions", 0, {})["api_keys"]
        return {key["api_key"]: range(key["min_version"], key["max_version"] + 1) for key in keys}

    @property
    def brokers(self) -> Collection[int]:
        return self._addresses.keys()

    def leaders(self, broker: int, topic: str) -> list[int]:
        """Return the leaders of a topic's partitions, as a broker knows them."""
        wanted = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        told = self.ask(self._addresses[broker], "Metadata", 4, wanted)
        return [partition["leader_id"] for topic in told["topics"] for partition in topic["partitions"]]

    def coordinator(self, kind: int) -> int | None:
        """Return the id of the broker that coordinates, or None until there is one."""
        told = self.ask(self._bootstrap, "FindCoordinator", 2, {"key": self._access.prefix, "key_type": kind})
        return None if told["error_code"] in PASSING else told["node_id"]

    def address_for(self, api: str) -> str:
        """Return the address of the coordinator or the topic's leader, which answers an API."""
        kind = AT_COORDINATORS.get(api)
        number = None if kind is None else self.coordinator(kind)
        return self._addresses[number if number in self._addresses else 1]

    def outcome(self, api: str, version: int, body: Body) -> str:
        """Return the answer as a line, once no coordinator is at something else."""

        def answer() -> Any:
            try:
                return self.ask(self.address_for(api), api, version, body)
            except ConnectionEndedError:
                return "closed"

        told = at_last(answer, right=lambda seen: PASSING.isdisjoint(error_codes(seen)), within=PATIENCE_SECONDS)
        return json.dumps(comparable(told), sort_keys=True, default=str)


@contextmanager
def asking(access: Access) -> Iterator[Asker]:
    asker = Asker(access)
    try:
        yield asker
    finally:
        asker.close()


def by_every_request(access: Access) -> list[str]:
    """Return a line for each answer, once there are a topic and coordinators."""
    prepare(replace(access, user=ADMIN))
    return list(lines_of(access))


def by_newest_requests(access: Access) -> list[str]:
    """Return the lines of the newest version of each API that is asked."""
    prepare(replace(access, user=ADMIN))
    return list(lines_of(access, newest_only=True))


def prepare(admin: Access) -> None:
    """Have a topic with one partition on broker 1, and coordinators."""
    with asking(admin) as asker:
        topic = placed(f"{admin.prefix}topic", 1)
        asker.ask(asker.address_for("CreateTopics"), "CreateTopics", 5, {"topics": [topic], **TIMEOUT})
        for kind in (0, 1):
            until(partial(asker.coordinator, kind))
        for broker in asker.brokers:
            until(partial(asker.leaders, broker, topic["name"]), right=lambda seen: seen == [1])


def lines_of(access: Access, *, newest_only: bool = False) -> Iterator[str]:
    with asking(access) as asker:
        told = asker.versions()
        apis = dict.fromkeys(api for api, _ in requests(access.prefix, 0))
        asked = {api: asked_versions(api, told.get(number_of(api), range(0))) for api in apis}
        for version in range(max(map(max, filter(None, asked.values()))) + 1):
            for number, (api, body) in enumerate(requests(access.prefix, version)):
                if version in asked[api] and not (newest_only and version < max(asked[api])):
                    yield f"{api} {version}, {number}: {asker.outcome(api, version, body)}"


def asked_versions(api: str, told: range) -> list[int]:
    """Return the versions of an API that pass through a gateway, and that kafka-python writes."""
    newest = min(APIS[number_of(api)].newest, MESSAGES[api][0]._struct.max_version)
    return [version for version in told if version <= newest]


def number_of(api: str) -> int:
    number: int = MESSAGES[api][0](version=0).API_KEY
    return number


def comparable(part: Any) -> Any:
    """Return an answer without what the cluster chooses, and with its rows sorted: brokers of
    KRaft give them in any order.
    """
    if isinstance(part, Mapping):
        left = {key: comparable(value) for key, value in part.items() if key not in CHOSEN}
        return {**left, "error_message": None} if part.get("error_code") in WITHOUT_TEXT else left
    if not isinstance(part, list):
        return part
    rows = {json.dumps(row, sort_keys=True, default=str): row for row in map(comparable, part)}
    return [rows[key] for key in sorted(rows)]
