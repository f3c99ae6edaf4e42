"""The table from which `python -m tests.requirements_table` generates docs/requirements.md.

A requirement is held when tests prove all of it, held in part when the table names what is missing,
and open when none of it is implemented. Its tests are those whose docstrings contain its id.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
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
K4-1 | every administrative operation is available over the wire |
K4-2 | each element of a batch has an outcome of its own |
K4-3 | a refusal has a code and, where the version has a field for it, a text that says what to change |
K4-4 | the controller decides changes and answers ListPartitionReassignments; any node answers all other reads |
K4-5 | any node accepts a change, and has the controller carry it out |
K4-6 | on request, an answer waits until every live node has the change | for real Kafka brokers, it is unknown when a changed config is in force
K4-M1 | Metadata: which requests mean all topics and which mean none, by version |
K4-M2 | Metadata from v1 on has racks, the controller and the internal topics |
K4-M3 | Metadata v0 leaves out dead brokers with an error; later versions keep them |
K4-M4 | topics can be filtered on the server by a regular expression; internal topics can be left out | open
K4-C1 | CreateTopics at a node that is not the controller is answered NOT_CONTROLLER, unless it is forwarded |
K4-C2 | CreateTopics: a name that appears twice is an invalid request, reported for each copy and in the log | one entry for the name in the kip dialect
K4-C3 | CreateTopics needs CREATE on the cluster or the topic |
K4-C4 | CreateTopics takes counts or an assignment, not both; -1 stands for the node's default | no defaults before v4 in the kip dialect
K4-C5 | CreateTopics with a timeout is answered when every partition has a leader |
K4-C6 | with a timeout of 0, valid changes are started and answered REQUEST_TIMED_OUT at once |
K4-C7 | at the timeout, completed elements succeed and the rest are answered REQUEST_TIMED_OUT |
K4-C8 | CreateTopics: each fault has its code; of several, the one that Kafka finds first is reported |
K4-D1 | the controller carries out DeleteTopics; a name that appears twice is one deletion |
K4-D2 | DeleteTopics of a topic that does not exist is answered UNKNOWN_TOPIC_OR_PARTITION | INVALID_TOPIC_EXCEPTION in the kip dialect
K4-D3 | deleting a topic that is already being deleted waits for that deletion and succeeds |
K4-D4 | DeleteTopics needs DELETE on the topic |
K4-D5 | DeleteTopics is answered when the topic has left the metadata |
K4-D6 | the name of a topic marked for deletion is free at once; its replicas are cleaned up afterwards | the name is free when all replicas and znodes are gone; a topic with replicas on dead brokers waits for them
K4-A1 | a replica assignment moves existing partitions and places new ones |
K4-A2 | a replication factor generates a new assignment | open
K4-A3 | a topic grows to a new total and never shrinks |
K4-A4 | a partition that is being moved is not moved again (60), or is, as in Kafka |
K4-A5 | AlterTopics of the kip dialect | open
K4-A6 | topics can be renamed | open
K4-L1 | ListAcls of the kip dialect | open
K4-L2 | AlterAcls of the kip dialect | open
K4-L3 | DescribeAcls, CreateAcls and DeleteAcls |
K4-L4 | a pluggable authorizer, and a way to wait for a change of ACLs |
K4-X1 | every node reports who the controller is | ClusterMetadata of the kip dialect
K590-1 | administrative changes are routed to the controller |
K590-2 | one controller writes; an election loses no change, and the previous controller writes nothing more |
K590-3 | a request is forwarded in the newest version and answered in the client's | the draft's new versions in the kip dialect
K590-4 | a request is forwarded at most once | NOT_CONTROLLER for the draft's new versions in the kip dialect
K590-5 | the client's principal travels in the header; the controller judges and records under it |
K590-6 | only a node that proved to be one may forward for clients; anyone else is refused and counted |
K590-7 | coordinators' topics are created by the controller |
K590-8 | routing depends on inter.broker.protocol.version | open
K590-9 | Envelope, by which Kafka's brokers forward, is accepted from nodes that proved to be nodes |
K201-1 | one class judges creations, changes and deletions of topics and of records |
K201-2 | the policy sees a topic's counts, replicas, configs and flags |
K201-3 | the policy sees the cluster as it is, with the earlier elements of the same batch |
K201-4 | the policy sees who asks, for what, and the state that would result |
K201-5 | no way to change a topic evades the policy |
K201-6 | a violation is answered POLICY_VIOLATION with the policy's message, for that topic alone |
K201-7 | DeleteTopics v0 and v1 and DeleteRecords v0 answer -1 for a violation and log it |
K201-8 | validate_only for DeleteTopics and DeleteRecords |
K201-9 | policies for Kafka's older interfaces work |
K201-10 | an older policy beside a new one is a configuration error |
K201-11 | a policy that fails or hangs allows nothing |
K117-1 | an administrative client for topics, groups and versions | groups and the flags' names
K117-2 | batches give each element a value or an error, never one exception for all |
K117-3 | the client is configured by Kafka's own keys | metadata.max.age.ms, buffers, reconnect.backoff.ms and connections.max.idle.ms are accepted without effect
K117-4 | versions are negotiated; an API that a node lacks raises UnsupportedVersion |
K117-5 | a call that asks several nodes can succeed at some and fail at others | open
K117-6 | the client can also be used blocking and from several threads | open
P-1 | every decision is an audit event of a documented, versioned schema |
P-2 | PySpark ingests only new files, and each event once |
P-3 | reports as tables and as a page with plots |
P-4 | a candidate policy is run over the recorded history, and the differences are reported |
U-1 | it is the elected controller of real Kafka 3.x brokers | open
U-2 | a test harness for clients: faults as data, a journal, repeatable runs | open
U-3 | a gateway in front of a real Kafka cluster |
"""


class Requirement(NamedTuple):
    id: str
    text: str
    missing: str
    """The missing part: empty if the requirement is held, `open` if none of it is implemented."""

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


@cache
def claims() -> Mapping[str, list[str]]:
    """Return the tests (path::name) by the ids of requirements in their docstrings."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        for name, docstring in _tests(text) if FAMILIES.search(text) else ():
            for requirement in dict.fromkeys(FAMILIES.findall(docstring)):
                found[requirement].append(f"{path.relative_to(TESTS.parent)}::{name}")
    return found


def _tests(text: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
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
