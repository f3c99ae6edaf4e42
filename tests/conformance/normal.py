"""Takes out of answers in what two clusters differ by nature: ports, ids, the order of rows that
Kafka keeps in hash maps, chosen replicas.

Everything else must be equal: codes, null against empty, counts, the order of rows where a client
sees the order of its request.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests.conformance.case import Case
from tests.conformance.logins import Token
from tests.conformance.normal_secrets import without_secrets
from tests.conformance.scenario import is_zero

SORTED_BY: Mapping[str, tuple[str, ...]] = {
    "brokers": ("node_id", "broker_id"),
    "partitions": ("partition_index",),
    "configs": ("name",),
    "api_keys": ("api_key",),
    "acls": ("principal", "host", "operation", "permission_type"),
    "matching_acls": (
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    ),
    "partition_result": ("partition_id",),
    "entity": ("entity_type",),
    "values": ("key",),
    "entries": ("entity",),
    "renewers": ("principal_name",),
}
"""Lists that Kafka gives in no order, and what they are sorted by."""

ROWS_WITHOUT_ORDER = {
    "Metadata": "topics",
    "AlterPartitionReassignments": "responses",
    "CreatePartitions": "results",
    "DeleteGroups": "results",
    "DeleteRecords": "topics",
    "AlterReplicaLogDirs": "results",
    "ElectLeaders": "replica_election_results",
    "DescribeAcls": "resources",
    "DescribeClientQuotas": "entries",
    "DescribeDelegationToken": "tokens",
    "AlterUserScramCredentials": "results",
    "DescribeUserScramCredentials": "results",
    "ListGroups": "groups",
    "OffsetCommit": "topics",
    "OffsetDelete": "topics",
    "WriteTxnMarkers": "markers",
}
DUMP, A_DUMP = "Request Request(", "a dump of the request"
CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class Normaliser:
    """Makes the answers of one cluster comparable with those of another."""

    def __init__(self, addresses: Mapping[int, str], topic_ids: Mapping[str, str], tokens: Mapping[str, Token]) -> None:
        self._node_by_port = {int(address.rpartition(":")[2]): number for number, address in addresses.items()}
        self._nodes = set(addresses)
        self._topic_ids = topic_ids  # grows while topics are made
        self._topic_by_id: dict[str, str] = {}
        self._tokens = tokens  # grow while they are made

    def normal(self, case: Case, answer: Mapping[str, Any]) -> Any:
        self._topic_by_id = {topic_id: name for name, topic_id in self._topic_ids.items()}
        result = without_secrets(self._struct(answer, case), case, self._tokens)
        rows = ROWS_WITHOUT_ORDER.get(case.api)
        if rows and result[rows]:
            _sort(result[rows])
        if case.api == "OffsetFetch":
            for asked, group in zip(
                case.body.get("groups") or [case.body], result.get("groups") or [result], strict=True
            ):
                if asked["topics"] is None:
                    _sort(group["topics"])
        return result

    def _value(self, key: str, value: Any, case: Case) -> Any:
        if isinstance(value, dict):
            return self._struct(value, case)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            structs = [self._struct(element, case) for element in value]
            return sorted(structs, key=lambda each: order(key, each)) if key in SORTED_BY else structs
        match key:
            case "port":
                return f"port of node {self._node_by_port[value]}" if value in self._node_by_port else value
            case "error_message" if value and value.startswith(DUMP):
                return A_DUMP
            case "cluster_id" if value is not None and CLUSTER_ID.fullmatch(value):
                return "a cluster id"
            case "controller_id" if value in self._nodes:
                return "a node"
            case "unknown_state_filters":
                return sorted(value)
            case "producer_id" if value >= 0 and case.api == "InitProducerId":
                return "an id"
            case "log_dir" if value:
                return "a directory"
            case "documentation" if value:
                return "documented"
            case "topic_id" if value is not None and not is_zero(value):
                return f"id of {self._topic_by_id[value]}" if value in self._topic_by_id else value
        return value

    def _struct(self, struct: Mapping[str, Any], case: Case) -> dict[str, Any]:
        result = {key: self._value(key, value, case) for key, value in struct.items()}
        if case.random_placement:
            return any_placement(result)
        return result


def _sort(rows: list[dict[str, Any]]) -> None:
    rows.sort(key=lambda row: (row.get("name") is not None, row.get("name"), str(row)))


def order(key: str, struct: Mapping[str, Any]) -> Any:
    return [str(struct[field]).rjust(20) for field in SORTED_BY[key] if field in struct]


def any_placement(struct: dict[str, Any]) -> dict[str, Any]:
    """A partition whose replicas were chosen: how many, that all are in sync, that the first one
    leads. A coordinator: that it is a node and this is its port.
    """
    if "replica_nodes" in struct:
        replicas, in_sync = struct["replica_nodes"], struct["isr_nodes"]
        return {
            **struct,
            "replica_nodes": f"{len(set(replicas))} nodes",
            "isr_nodes": "all" if in_sync == replicas else in_sync,
            "leader_id": "the first" if struct["leader_id"] == replicas[0] else struct["leader_id"],
        }
    if struct.get("port") == f"port of node {struct.get('node_id')}":
        return {**struct, "node_id": "a node", "port": "its port"}
    return struct
