"""The table from which `python -m tests.requirements` makes docs/requirements.md.

A requirement has one clause or several, which have a letter behind its id. A clause is held if the
docstring of a test names it, and open if none does; a requirement is held if all of its clauses
are, and held in part if some are.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "requirements.md"
CLAUSE = re.compile(r"\b(?:K4|K590|K201|K117|P|U)-[A-Z]?\d+[a-z]?\b")
SOURCES = {
    "K4": "KIP-4",
    "K590": "KIP-590",
    "K201": "KIP-201",
    "K117": "KIP-117",
    "P": "the data pipeline",
    "U": "the three uses",
}
SHOWN_TESTS = 3

TABLE = """
K4-1 | every administrative operation is available over the wire
K4-2 | each element of a batch has an outcome of its own
K4-3 | a refusal has a code and, where the version has a field for it, a text that says what to change
K4-4a | the controller decides changes
K4-4b | the controller answers ListPartitionReassignments
K4-4c | any node answers all other reads
K4-5 | any node accepts a change, and has the controller carry it out
K4-6a | on request, an answer waits until every live node has the change
K4-6b | on request, an answer waits until every real Kafka broker has a changed config in force
K4-M1a | Metadata: which requests mean all topics, by version
K4-M1b | Metadata: which requests mean no topics, by version
K4-M2a | Metadata from v1 on has racks and the controller
K4-M2b | Metadata from v1 on marks the internal topics
K4-M3a | Metadata v0 leaves out dead brokers with an error
K4-M3b | Metadata keeps dead brokers from v1 on
K4-M4a | topics can be filtered on the server by a regular expression
K4-M4b | internal topics can be left out
K4-C1 | CreateTopics at a node that is not the controller is answered NOT_CONTROLLER, unless it is forwarded
K4-C2a | CreateTopics: a name that appears twice is an invalid request, reported for each copy
K4-C2b | CreateTopics: one entry for the name in the kip dialect
K4-C3 | CreateTopics needs CREATE on the cluster or the topic
K4-C4a | CreateTopics takes counts
K4-C4b | CreateTopics takes an assignment
K4-C4c | CreateTopics takes not both
K4-C4d | -1 stands for the node's default
K4-C4e | CreateTopics: no defaults before v4 in the kip dialect
K4-C5 | CreateTopics with a timeout is answered when every partition has a leader
K4-C6 | with a timeout of 0, valid changes are started and answered REQUEST_TIMED_OUT at once
K4-C7 | at the timeout, completed elements succeed and the rest are answered REQUEST_TIMED_OUT
K4-C8a | CreateTopics: each fault has its code
K4-C8b | CreateTopics: of several faults, the one that Kafka finds first is reported
K4-D1a | the controller carries out DeleteTopics
K4-D1b | DeleteTopics: a name that appears twice is one deletion
K4-D2a | DeleteTopics of a topic that does not exist is answered UNKNOWN_TOPIC_OR_PARTITION
K4-D2b | DeleteTopics of a topic that does not exist is answered INVALID_TOPIC_EXCEPTION in the kip dialect
K4-D3 | deleting a topic that is already being deleted waits for that deletion and succeeds
K4-D4 | DeleteTopics needs DELETE on the topic
K4-D5 | DeleteTopics is answered when the topic has left the metadata
K4-D6a | the name of a topic is free when its deletion is complete
K4-D6b | the name of a topic marked for deletion is free at once, while replicas are left to clean up
K4-D6c | replicas are cleaned up after the answer
K4-A1a | a replica assignment moves existing partitions
K4-A1b | a replica assignment places new ones
K4-A2 | a replication factor generates a new assignment
K4-A3a | a topic grows to a new total
K4-A3b | a topic never shrinks
K4-A4 | a partition that is being moved is not moved again (60), or is, as in Kafka
K4-A5 | AlterTopics of the kip dialect
K4-A6 | topics can be renamed
K4-L1 | ListAcls of the kip dialect
K4-L2 | AlterAcls of the kip dialect
K4-L3a | CreateAcls stores ACLs as Kafka does
K4-L3b | DescribeAcls finds them by any filter
K4-L3c | DeleteAcls removes what a filter matches
K4-L4a | a pluggable authorizer
K4-L4b | a way to wait for a change of ACLs
K4-X1a | every node reports who the controller is
K4-X1b | ClusterMetadata of the kip dialect
K590-1 | administrative changes are routed to the controller
K590-2a | one controller writes, and the tree has what was answered
K590-2b | an election loses no change
K590-2c | the previous controller writes nothing more
K590-3a | a request is forwarded in the newest version
K590-3b | a request is answered in the client's version
K590-3c | a request is forwarded in the draft's new versions in the kip dialect
K590-4a | a request is forwarded at most once
K590-4b | the draft's new versions are answered NOT_CONTROLLER in the kip dialect
K590-5a | the client's principal travels in the header
K590-5b | the controller judges and records under it
K590-6a | only a node that proved to be one may forward for clients
K590-6b | anyone else is refused and counted
K590-7 | coordinators' topics are created by the controller
K590-8 | routing depends on inter.broker.protocol.version
K590-9 | Envelope, by which Kafka's brokers forward, is accepted from nodes that proved to be nodes
K201-1a | one class judges, which is configured
K201-1b | it judges creations
K201-1c | it judges changes
K201-1d | it judges deletions of topics
K201-1e | it judges deletions of records
K201-2 | the policy sees a topic's counts, replicas, configs and flags
K201-3 | the policy sees the cluster as it is, with the earlier elements of the same batch
K201-4 | the policy sees who asks, for what, and the state that would result
K201-5 | no way to change a topic evades the policy
K201-6 | a violation is answered POLICY_VIOLATION with the policy's message, for that topic alone
K201-7a | DeleteTopics v0 and v1 answer -1 for a violation, and log it
K201-7b | DeleteRecords v0 answers -1 for a violation, and logs it
K201-8a | validate_only for DeleteTopics
K201-8b | validate_only for DeleteRecords
K201-9 | policies for Kafka's older interfaces work
K201-10 | an older policy beside a new one is a configuration error
K201-11 | a policy that fails or hangs allows nothing
K117-1a | an administrative client for topics
K117-1b | an administrative client for groups
K117-1c | flags with the names of KIP-117
K117-2 | batches give each element a value or an error, never one exception for all
K117-3a | the client is configured by Kafka's own keys
K117-3b | metadata.max.age.ms, buffers, reconnect.backoff.ms and connections.max.idle.ms have an effect
K117-4a | versions are negotiated
K117-4b | an API that a node lacks raises UnsupportedVersion
K117-5 | a call that asks several nodes can succeed at some and fail at others
K117-6 | the client can also be used blocking and from several threads
P-1a | every decision is an audit event
P-1b | events have a documented, versioned schema
P-1c | no secret is in an event
P-1d | nothing is lost or doubled on the way to the tables, and what is damaged is told
P-2a | PySpark ingests only new files
P-2b | each event is in the tables once
P-2c | the tables are documented, and every tool reads them
P-3a | reports as tables
P-3b | reports as a page with plots
P-4a | a candidate policy is run over the recorded history
P-4b | the differences are reported
U-1 | it is the elected controller of real Kafka 3.x brokers
U-2 | a test harness for clients: faults as data, a journal, repeatable runs
U-3a | a gateway in front of a real Kafka cluster: clients do through it what they do without it
U-3b | no client learns the address of a broker
U-3c | what the rules forbid is refused before a broker gets it
U-3d | each change is recorded with what came of it
U-3e | logins reach the cluster, or are the gateway's own
U-3f | a death of broker or gateway loses nothing that was acknowledged
U-3g | README and page show how it is begun
"""


class Clause(NamedTuple):
    id: str
    text: str

    @property
    def requirement(self) -> str:
        return self.id.rstrip(ascii_lowercase)

    @property
    def source(self) -> str:
        return SOURCES[self.id.partition("-")[0]]

    @property
    def tests(self) -> list[str]:
        return claims().get(self.id, [])


def clauses() -> list[Clause]:
    return [Clause(*line.split(" | ")) for line in TABLE.strip().splitlines()]


def states() -> Mapping[str, str]:
    """Return the state of each requirement."""
    found: dict[str, set[bool]] = defaultdict(set)
    for clause in clauses():
        found[clause.requirement].add(bool(clause.tests))
    return {
        name: "held in part" if len(held) > 1 else "held" if held == {True} else "open" for name, held in found.items()
    }


@cache
def claims() -> Mapping[str, list[str]]:
    """Return the tests (path::name) by the ids of the clauses in their docstrings."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        for name, docstring in _tests(text) if CLAUSE.search(text) else ():
            for clause in dict.fromkeys(CLAUSE.findall(docstring)):
                found[clause].append(f"{path.relative_to(TESTS.parent)}::{name}")
    return found


def _tests(text: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def document() -> str:
    counts = Counter(states().values())
    rows = [
        f"| {each.id} | {each.source} | {each.text} | {'held' if each.tests else 'open'} | {_shown(each.tests)} |"
        for each in clauses()
    ]
    return "\n".join([HEAD.format(all=len(states()), held=counts["held"], part=counts["held in part"]), *rows, ""])


def _shown(tests: list[str]) -> str:
    shown = [f"`{test}`" for test in tests[:SHOWN_TESTS]]
    more = len(tests) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


HEAD = """# Requirements, their state, and the tests that prove them

This page lists what Kafka's design documents and the program's own purpose demand, and which tests
prove it. A requirement has one clause or several, and tests name clauses: `grep -rn K4-C7 tests`
finds every test of K4-C7. A clause that no test names is open. Of {all} requirements {held} are
held, and {part} in part. `python -m tests.requirements` makes the page from a table and the tests'
docstrings; a test compares them. `python -m tests.requirements.plant` puts a bug against each of
the weightiest clauses into a copy of the program, and shows that tests which are named here fail.

| id | source | what must hold | state | tests |
|---|---|---|---|---|"""
