"""docs/requirements.md, made of this table and of what the tests claim. To write it anew: `python
-m tests.requirements_table`.

A requirement is held when tests prove all of it, held in part when something is missing, which
stands beside it, and open when nothing of it is there. The tests are found by the ids in their
docstrings.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
DOCUMENT = TESTS.parent / "docs" / "requirements.md"
FAMILIES = re.compile(r"\b(?:K4|K590|K201|K117|P|U)-[A-Z]?\d+\b")
SOURCES = {
    "K4": "KIP-4",
    "K590": "KIP-590",
    "K201": "KIP-201",
    "K117": "KIP-117",
    "P": "the data pipeline",
    "U": "the three uses",
}
SHOWN_TESTS = 3
HELD = ""
OPEN = "open"

TABLE = """
K4-1 | everything an administrator needs goes over the wire | ACLs, quotas, reassignment, elections and log directories are not served
K4-2 | an element of a batch has its own outcome, whatever becomes of its neighbours |
K4-3 | a refusal tells, by code and (where the version has room) by text, what has to be mended |
K4-4 | changes are decided by the controller, questions are answered by whoever is asked |
K4-5 | a change may be asked of any node, which sees to it that the controller does it |
K4-6 | on request an answer waits until every live node has the change | of a real Kafka broker it is not known when a changed config is in force
K4-M1 | Metadata: which request means all topics, and which none, by version |
K4-M2 | Metadata from v1 on tells racks, the controller, and which topics are internal |
K4-M3 | Metadata: v0 leaves dead brokers out and says so, later versions keep them |
K4-M4 | topics filtered on the server by a regular expression, internal ones left out | open
K4-C1 | CreateTopics elsewhere than at the controller is NOT_CONTROLLER, unless it is forwarded |
K4-C2 | CreateTopics: a name that stands twice is an invalid request, told for each copy and in the log | one entry for the name in the kip dialect
K4-C3 | CreateTopics needs CREATE on the cluster or the topic | open
K4-C4 | CreateTopics: counts or an assignment, not both; -1 is the node's default | no defaults before v4 in the kip dialect
K4-C5 | CreateTopics with time answers when every partition has a leader |
K4-C6 | without time what is valid is begun, and answered REQUEST_TIMED_OUT at once |
K4-C7 | when the time is over, what is complete is a success and the rest REQUEST_TIMED_OUT |
K4-C8 | CreateTopics: each fault has its code, and of two the one that Kafka finds first is told |
K4-D1 | DeleteTopics is the controller's; a name that stands twice is one deletion |
K4-D2 | DeleteTopics of what does not exist is UNKNOWN_TOPIC_OR_PARTITION | INVALID_TOPIC_EXCEPTION in the kip dialect
K4-D3 | a deletion that somebody else began is waited for, and is no error |
K4-D4 | DeleteTopics needs DELETE on the topic | open
K4-D5 | DeleteTopics answers when the topic has left the metadata |
K4-D6 | a marked topic's name is free at once, its replicas are cleaned afterwards | the name is free when all replicas and znodes are gone; a topic with replicas on dead brokers waits for them
K4-A1 | a replica assignment moves existing partitions and places new ones | existing partitions cannot be moved
K4-A2 | a replication factor generates the assignment anew | open
K4-A3 | a topic grows by a new total, never shrinks |
K4-A4 | a partition that is being moved is not moved again (60), or is, as in Kafka | partitions cannot be moved; a topic of which others move one does not grow
K4-A5 | AlterTopics of the kip dialect | open
K4-A6 | topics can be renamed | open
K4-L1 | ListAcls of the kip dialect | open
K4-L2 | AlterAcls of the kip dialect | open
K4-L3 | DescribeAcls, CreateAcls and DeleteAcls | open
K4-L4 | a pluggable authorizer, and a way to wait for a change of ACLs | open
K4-X1 | every node tells who the controller is | ClusterMetadata of the kip dialect
K590-1 | administrative changes are routed to the controller | of the list, AlterConfigs and IncrementalAlterConfigs; ACLs, quotas and delegation tokens are not served
K590-2 | one controller writes; an election loses nothing, and its predecessor writes no more |
K590-3 | a request is forwarded in the newest version and answered in the client's | the draft's new versions in the kip dialect
K590-4 | what was forwarded once is never forwarded again | NOT_CONTROLLER for the draft's new versions in the kip dialect
K590-5 | the caller's name travels in the header, and the controller judges and records under it | ACLs are not there to be checked under it
K590-6 | only a node that proved to be one may speak for others; anybody else is refused and counted |
K590-7 | coordinators' topics are created by way of the controller |
K590-8 | routing is guarded by inter.broker.protocol.version | open
K590-9 | Envelope, by which real brokers forward, is taken from nodes that proved to be some |
K201-1 | one class judges creations, changes and deletions of topics and of records | DeleteRecords is not served, so validate_delete_records is never asked
K201-2 | the policy sees a topic's counts, replicas, configs and flags |
K201-3 | the policy sees the cluster as it is, with the earlier elements of the same batch |
K201-4 | the policy sees who asks, what for, and what would come of it | DeleteRecords is not served
K201-5 | no way to change a topic passes the policy by | AlterPartitionReassignments and DeleteRecords are not served
K201-6 | a violation is POLICY_VIOLATION in the policy's words, for that topic alone |
K201-7 | DeleteTopics v0 and v1 answer -1 for a violation, and log it; DeleteRecords v0 likewise | open
K201-8 | validate_only for DeleteTopics and DeleteRecords | open
K201-9 | policies for Kafka's older interfaces go on working |
K201-10 | an older policy beside a new one is a fault of the configuration |
K201-11 | a policy that fails or hangs lets nothing pass |
K117-1 | an administrative client for topics, groups and versions | groups and the flags' names
K117-2 | batches give each element a value or an error, never one exception for all |
K117-3 | the client is configured by Kafka's own keys | metadata.max.age.ms, buffers, reconnect.backoff.ms and connections.max.idle.ms are taken and change nothing
K117-4 | versions are negotiated; what a node lacks is an UnsupportedVersion error |
K117-5 | of calls that ask several nodes some may answer and others not | open
K117-6 | the client is blocking and thread-safe for those who want it | open
P-1 | every decision is an audit event of a documented, versioned schema |
P-2 | PySpark takes the files in, new ones only and each event once | local disks only; no object stores
P-3 | reports as tables and as a page with plots |
P-4 | a candidate policy is run over the recorded history, and the differences are told |
U-1 | the elected controller of real Kafka 3.x brokers | open
U-2 | a harness for a client's integration tests: faults as data, a journal, repeatable runs | open
U-3 | a gateway in front of a real Kafka | open
"""


class Requirement(NamedTuple):
    id: str
    text: str
    missing: str
    """Empty where it is held, `open` where nothing is there."""

    @property
    def source(self) -> str:
        return SOURCES[self.id.partition("-")[0]]

    @property
    def state(self) -> str:
        if self.missing == HELD:
            return "held"
        return "open" if self.missing == OPEN else f"partly; missing: {self.missing}"


def requirements() -> list[Requirement]:
    rows = [[column.strip() for column in line.split("|")] for line in TABLE.strip().splitlines()]
    return [Requirement(name, text, missing) for name, text, missing in rows]


def claims() -> Mapping[str, list[str]]:
    """The tests that name a requirement in their docstring, by its id, as path::name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, docstring in _tests(path):
            for requirement in dict.fromkeys(FAMILIES.findall(docstring)):
                found[requirement].append(f"{path.relative_to(TESTS.parent)}::{name}")
    return found


def _tests(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def document() -> str:
    tests = claims()
    rows = [
        f"| {each.id} | {each.source} | {each.text} | {each.state} | {_shown(tests.get(each.id, []))} |"
        for each in requirements()
    ]
    return "\n".join([HEAD, *rows, ""])


def _shown(tests: list[str]) -> str:
    shown = [f"`{test}`" for test in tests[:SHOWN_TESTS]]
    more = len(tests) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


HEAD = """# Requirements, their state, and the tests that prove them

This page lists what Kafka's design documents and the program's own purpose demand, and which tests
prove it. Each requirement has an id that tests name: `grep -rn K4-C7 tests` finds every test of
K4-C7. `python -m tests.requirements_table` makes the page from a table and the tests' docstrings;
a test compares them.

| id | source | what must hold | state | tests |
|---|---|---|---|---|"""


if __name__ == "__main__":
    DOCUMENT.write_text(document())
