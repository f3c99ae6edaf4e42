"""Looks, when the dust has settled, at what the tree holds, and whether everybody says so."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kazoo.exceptions import KazooException  # type: ignore[import-untyped]

from minicontroller.cluster.znodes.topics import uuid_bytes
from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType
from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.agreement import expect_agreement
from tests.faults.detector.arena import Arena
from tests.faults.detector.clients import GUARDED, TOPICS
from tests.faults.detector.history import DEFAULT, Topic
from tests.faults.detector.requests import PERMITTED, SOURCES, kind_of, name_of, resource_type
from tests.faults.stream import create, delete
from tests.faults.tree import Tree, state_path
from tests.support.nodes import NodeProcess
from tests.support.waiting import at_last, until
from tests.support.wire import ConnectionEndedError

BARRIER = "barrier"
QUOTA = "producer_byte_rate"
USER = {"entity_type": "user", "entity_name": "settling"}
LAST_WORDS = 600
STAMPED = re.compile(r"\d{4}-\d\d-\d\d \d\d:")
FAULT = re.compile(r"[ |]*[\w.]+: ")
WITHIN_SECONDS = 40.0
"""For nodes that follow a change on their own, and for what was in doubt when all was over."""
FAULTS = (AssertionError, OSError, ConnectionEndedError, KazooException)
"""The errors with which a look at nodes and tree may fail."""


def settle(arena: Arena) -> list[str]:
    """Wait until every node serves and knows the others, and all that was begun is done. What keeps
    it from that is told.
    """
    ended = [node for node in arena.nodes if node.has_ended]
    if ended:
        return [f"node {node.broker_id} ended by itself: {last_words(node)}" for node in ended]
    try:
        arena.nodes.wait_known()
        for node in arena.nodes:
            until(partial(_pass, node))
        until(lambda: arena.tree.children("/admin/delete_topics"), right=lambda names: not names)
        until(partial(_out_of_sync, arena.tree), right=lambda names: not names, within=WITHIN_SECONDS)
        until(arena.tree.moving, right=lambda names: not names)
    except FAULTS as error:
        return [f"the cluster does not settle: {type(error).__name__} {error!s:.600}", *_dead(arena)]
    return []


def stumbles(arena: Arena, read: dict[int, int]) -> list[str]:
    """Tracebacks in the logs, beyond what has been read of them: of each node the first."""
    findings = []
    for node in arena.nodes:
        said = node.log.read_bytes()[read.get(node.broker_id, 0) :]
        read[node.broker_id] = read.get(node.broker_id, 0) + len(said)
        before, traceback, after = said.decode(errors="replace").partition("Traceback (most recent call last)")
        if traceback:
            complaint = before[-2 * LAST_WORDS :].strip().splitlines() or [""]
            lines = after.splitlines()
            end = next((at for at, line in enumerate(lines) if STAMPED.match(line)), len(lines))
            fault = next((line for line in reversed(lines[:end]) if FAULT.match(line)), "")
            findings.append(f"node {node.broker_id} stumbled: {complaint[-1][:LAST_WORDS]} ... {fault.strip(' |')}")
    return findings


def _dead(arena: Arena) -> list[str]:
    return [f"node {node.broker_id} ended by itself: {last_words(node)}" for node in arena.nodes if node.has_ended]


def _pass(node: NodeProcess) -> bool:
    """A topic of our own, made and deleted, takes its place behind all that waits."""
    try:
        with node.wire() as wire:
            made = create(wire, BARRIER, partitions=1, replicas=1)
            gone = delete(wire, BARRIER)
    except (ConnectionEndedError, ConnectionRefusedError):
        return False
    return made == gone == ErrorCode.NONE


def last_words(node: NodeProcess) -> str:
    return node.output[-LAST_WORDS:].strip()


def look(tree: Tree, brokers: Iterable[int]) -> dict[str, Topic]:
    """Every entity that has a place in a history, as the tree holds it."""
    found: dict[str, Topic] = {}
    for name in (f"t{number}" for number in range(TOPICS)):
        value, configs, state = tree.jsons([f"/brokers/topics/{name}", f"/config/topics/{name}", state_path(name, 0)])
        if value is not None:
            led = state or {"leader": -1, "leader_epoch": -1}
            found[f"topics/{name}"] = Topic(
                _hex(value.get("topic_id", "")),
                len(value["partitions"]),
                (configs or {}).get("config", {}),
                tuple(value["partitions"].get("0", ())),
                led["leader"],
                led["leader_epoch"],
            )
    for name in (DEFAULT, *map(str, brokers)):
        configs = tree.json(f"/config/brokers/{name}")
        found[f"brokers/{name}"] = Topic(configs=(configs or {}).get("config", {}))
    for name in GUARDED:
        acls = tree.json(f"/kafka-acl/Topic/{name}") or {"acls": []}
        found[f"acls/{name}"] = Topic(configs={each["principal"]: PERMITTED for each in acls["acls"]})
    return found


def _hex(topic_id: str) -> str:
    return uuid_bytes(topic_id).hex() if topic_id else ""


def disagreements(arena: Arena, held: Mapping[str, Topic]) -> list[str]:
    """Return what the tree contradicts itself in, and what nodes say that it does not."""
    flaws = at_last(arena.tree.half_made, right=lambda found: not found, within=WITHIN_SECONDS)
    findings = [f"the tree: {flaw}" for flaw in flaws]
    findings += at_last(partial(_strange_states, arena.tree), right=lambda found: not found, within=WITHIN_SECONDS)
    try:
        expect_agreement(arena.nodes.running, arena.tree)
        for node in arena.nodes.running:
            topics = (entity for entity in held if entity.startswith("topics/"))
            for entity in (f"brokers/{DEFAULT}", f"brokers/{node.broker_id}", *topics):
                configs = dict(held[entity].configs)
                until(partial(told_configs, node, entity), right=configs.__eq__, within=WITHIN_SECONDS)
            for name in GUARDED:
                principals = set(held[f"acls/{name}"].configs)
                until(partial(permitted, node, name), right=principals.__eq__, within=WITHIN_SECONDS)
        _expect_notice(arena.nodes.running)
    except FAULTS as error:
        findings.append(f"a node does not say what the tree holds: {error!s:.1500}")
    return findings


def _expect_notice(nodes: Sequence[NodeProcess]) -> None:
    """Change a quota at one node. No change follows it by which the controller would have the
    others read what they have missed, so that only its notification tells them.
    """
    rate = time.time_ns() // 1_000_000
    until(partial(_limit, nodes[0], rate), right=ErrorCode.NONE.__eq__, within=WITHIN_SECONDS)
    for node in nodes:
        until(partial(_limits, node), right=[rate].__eq__, within=WITHIN_SECONDS)


def _limit(node: NodeProcess, rate: int) -> int:
    entry = {"entity": [USER], "ops": [{"key": QUOTA, "value": float(rate), "remove": False}]}
    with node.wire() as wire:
        (row,) = wire.ask("AlterClientQuotas", 1, {"entries": [entry], "validate_only": False})["entries"]
    return int(row["error_code"])


def _limits(node: NodeProcess) -> list[float]:
    """Return the quotas of our own user, as a node tells them."""
    component = {"entity_type": USER["entity_type"], "match_type": 0, "match": USER["entity_name"]}
    with node.wire() as wire:
        entries = wire.ask("DescribeClientQuotas", 1, {"components": [component], "strict": True})["entries"] or []
    return [row["value"] for entry in entries for row in entry["values"]]


def _out_of_sync(tree: Tree) -> list[str]:
    """The partitions whose ISR lacks a replica, though every node is there."""
    return [
        f"{topic}-{number} has the ISR {isr} of {replicas}"
        for topic, partitions in tree.partitions().items()
        for number, (_, isr, replicas) in partitions.items()
        if isr != replicas
    ]


def _strange_states(tree: Tree) -> list[str]:
    """States of partitions that the topic does not have."""
    return [
        f"the tree: {name} has {len(partitions)} partitions and {len(states)} states"
        for name, partitions in tree.assignments().items()
        if len(states := tree.children(f"/brokers/topics/{name}/partitions")) != len(partitions)
    ]


def told_configs(node: NodeProcess, entity: str) -> dict[str, str]:
    """Return the configs that are set for this entity itself, as a node tells them."""
    body = {"resources": [{"resource_type": resource_type(entity), "resource_name": name_of(entity)}]}
    with node.wire() as wire:
        (result,) = wire.ask("DescribeConfigs", 4, body)["results"]
    return {row["name"]: row["value"] for row in result["configs"] if row["config_source"] == SOURCES[kind_of(entity)]}


def permitted(node: NodeProcess, name: str) -> set[str]:
    """Return the principals that have an ACL of this topic, as a node tells it."""
    body = {
        "resource_type_filter": AclResourceType.TOPIC,
        "resource_name_filter": name,
        "pattern_type_filter": PatternType.LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": AclOperation.ANY,
        "permission_type": PermissionType.ANY,
    }
    with node.wire() as wire:
        resources = wire.ask("DescribeAcls", 3, body)["resources"]
    return {acl["principal"] for resource in resources for acl in resource["acls"]}
