"""The state that requests leave behind: every znode with its data, and what a node tells of the
topics that changed (Metadata, their own configs) and of reassignments.

Here, and nowhere else, everything is named in which two clusters differ by nature: times, ids,
ports, secrets, sequence numbers, and replicas that the controller chose.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.conformance.case import Case
from tests.conformance.logins import Token
from tests.conformance.recording import RECORDINGS
from tests.support.wire import Body, Login, Wire
from tests.support.znodes import Znodes, ZnodeWatcher

State = dict[str, str]
"""By the path of a znode, or `Metadata of <topic>` and its like; a znode without data is `null`."""

UNKNOWN_TOPIC = 3
TOPIC = 2
OF_THE_TOPIC = 1
"""The source of configs that were set for a topic."""
CREATES = {"CreateTopics": "topics", "CreatePartitions": "results"}
"""By API, the rows of its answers."""
MADE = (0, 7)
"""The codes of what was made: NONE, and REQUEST_TIMED_OUT for what was not complete in time."""
REASSIGNMENTS = "reassignments"

BY_NATURE = (
    (r'("topic_id":)"[A-Za-z0-9_-]{22}"', r'\1"an id"'),
    (r'("timestamp":)"\d+"', r'\1"a time"'),
    (r'("(?:issueTimestamp|expiryTimestamp|maxTimestamp)":)"?-?\d+"?', r"\1a time"),
    (r"(127\.0\.0\.1:)\d+", r"\1<port>"),
    (r'("port":)\d+', r"\1<port>"),
    (r"(salt|stored_key|server_key)=[A-Za-z0-9+/=]+", r"\1=<secret>"),
    (r'("hmac":)"[^"]+"', r'\1"a secret"'),
)
"""Parts of data."""

OF_PATHS = (
    (r"/cluster/id", r'("id":)"[A-Za-z0-9_-]{22}"', r'\1"an id"'),
    (r"/controller", r'("brokerid":)\d+', r"\1<a node>"),
    (r"/latest_producer_id_block", r'("broker":)\d+', r"\1<a node>"),
)
"""Parts of some znodes in which two clusters differ by nature: the path, the part, and its mark."""

SEQUENTIAL = re.compile(r"(/.+_changes?_)\d{10}")
TRANSIENT = re.compile(
    r"/(isr_change_notification|log_dir_event_notification)/.*|/admin/(delete_topics|reassign_.*)/.*"
)
NAMES_TOKENS = re.compile(r"/delegation_token/|/kafka-acl.*DelegationToken/|DELEGATION_TOKEN:")
NAMES_A_TOPIC = re.compile(r"/(?:brokers|config)/topics/([^/]+)(?:/.*)?")


class Placements:
    """The topics whose replicas were all chosen by hand."""

    def __init__(self) -> None:
        self._by_hand: set[str] = set()

    def learn(self, case: Case, answer: Any) -> None:
        """Take in a request and the answer to it."""
        if case.api in CREATES and isinstance(answer, dict) and not case.body.get("validate_only"):
            done = {row["name"] for row in answer[CREATES[case.api]] if row["error_code"] in MADE}
            placed = {topic["name"] for topic in case.body.get("topics", ()) if topic.get("assignments")}
            if case.api == "CreateTopics":
                self._by_hand |= placed & done
            self._by_hand -= done - placed

    def by_hand(self, topic: str) -> bool:
        return topic in self._by_hand


def normal_state(znodes: Znodes, placements: Placements, tokens: Mapping[str, Token]) -> State:
    names = {token.token_id: f"<id of {name}>" for name, token in tokens.items()}
    state: State = {}
    for path, data in znodes.items():
        if not TRANSIENT.fullmatch(path):
            topic = NAMES_A_TOPIC.fullmatch(path)
            key, value = normal_znode(path, data, topic is None or placements.by_hand(topic[1]))
            if NAMES_TOKENS.search(key):
                key, value = without_ids(key, names), without_ids(value, names)
            state[key] = value
    return state


@lru_cache(maxsize=65_536)
def normal_znode(path: str, data: bytes | None, by_hand: bool) -> tuple[str, str]:
    """Return the key and the value of one znode."""
    text = "null" if data is None else data.decode(errors="backslashreplace").replace("\n", "\\n")
    for pattern, replacement in BY_NATURE:
        text = re.sub(pattern, replacement, text)
    for of, pattern, replacement in OF_PATHS:
        text = re.sub(pattern, replacement, text) if re.fullmatch(of, path) else text
    if not by_hand and path.startswith("/brokers"):
        text = re.sub(r'("leader":)\d+', r"\1<a node>", re.sub(r"\[[\d,]+\]", counted, text))
    if sequential := SEQUENTIAL.fullmatch(path):
        return f"{sequential[1]}<number> {text}", ""
    return path, text


def without_ids(text: str, names: Mapping[str, str]) -> str:
    for token_id, name in names.items():
        text = text.replace(token_id, name)
    return text


def counted(nodes: re.Match[str]) -> str:
    return f"[{nodes[0].count(',') + 1} nodes]"


def differing_keys(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


class StateOf:
    """The state of one cluster as one user sees it, brought up to date by `refresh`."""

    def __init__(
        self, watcher: ZnodeWatcher, address: str, tokens: Mapping[str, Token], user: Login | None = None
    ) -> None:
        self._watcher, self._tokens = watcher, tokens
        self._wire = Wire(address, login=user)
        self._told: State = {}
        self.placements = Placements()

    def close(self) -> None:
        self._wire.close()

    def keep_alive(self) -> None:
        """Keep the session, while requests are made that nothing is looked at after."""
        self._watcher.keep_alive()

    def refresh(self, topics_again: Iterable[str] = ()) -> State:
        """Return what is there now; what is told of these topics is asked again in any case."""
        changed = self._watcher.refresh()
        topics = {found[1] for path in changed if (found := NAMES_A_TOPIC.fullmatch(path))} | set(topics_again)
        if topics:
            self._ask(sorted(topics))
        return normal_state(self._watcher.znodes, self.placements, self._tokens) | self._told

    def _ask(self, topics: list[str]) -> None:
        metadata = self._wire.ask(
            "Metadata", 12, {"topics": [{"name": name} for name in topics], "allow_auto_topic_creation": False}
        )
        configs = self._wire.ask(
            "DescribeConfigs",
            4,
            {"resources": [{"resource_type": TOPIC, "resource_name": name} for name in topics]},
        )
        for row in metadata["topics"]:
            self._tell(f"Metadata of {row['name']}", self._placement(row))
        for row in configs["results"]:
            own = {each["name"]: each["value"] for each in row["configs"] if each["config_source"] == OF_THE_TOPIC}
            self._tell(f"configs of {row['resource_name']}", None if row["error_code"] else own)
        self._tell(REASSIGNMENTS, self._wire.ask("ListPartitionReassignments", 0, {"topics": None})["topics"] or None)

    def _tell(self, key: str, value: Any) -> None:
        if value:
            self._told[key] = json.dumps(value, sort_keys=True)
        else:
            self._told.pop(key, None)

    def _placement(self, row: Body) -> Any:
        if row["error_code"] == UNKNOWN_TOPIC:
            return None
        by_hand = self.placements.by_hand(row["name"])
        return {
            str(each["partition_index"]): {
                "leader": each["leader_id"] if by_hand else each["leader_id"] in each["replica_nodes"],
                "epoch": each["leader_epoch"],
                "replicas": each["replica_nodes"] if by_hand else len(each["replica_nodes"]),
                "isr": each["isr_nodes"] if by_hand else len(each["isr_nodes"]),
                "offline": each["offline_replicas"] if by_hand else len(each["offline_replicas"]),
                "error": each["error_code"],
            }
            for each in row["partitions"]
        }


def topic_of(key: str) -> str | None:
    """The topic that an entry of a state is about."""
    if found := NAMES_A_TOPIC.fullmatch(key):
        return found[1]
    return key.partition(" of ")[2] or None


def state_file(scenario: str) -> Path:
    return RECORDINGS / f"{scenario}.state"


def write_changes(scenario: str, before: State, after: State) -> None:
    """Write a line for each entry that a scenario changed, so that changes of them can be read."""
    lines = [changed(key, after.get(key)) for key in sorted(differing_keys(before, after))]
    state_file(scenario).write_text("".join(f"{line}\n" for line in lines))


def changed(key: str, value: str | None) -> str:
    if value is None:
        return f"-{key}"
    return f"{key}\t{value}" if value else key


def read_changes(scenario: str, before: State) -> State:
    """Return the state after a scenario, given the one before it."""
    after = dict(before)
    for line in state_file(scenario).read_text().split("\n"):
        key, _, value = line.partition("\t")
        if key.startswith("-"):
            del after[key[1:]]
        elif key:
            after[key] = value
    return after
