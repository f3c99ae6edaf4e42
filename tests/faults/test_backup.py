"""Backup and restore, by the steps of docs/operations.md."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minicontroller.audit.verifying import Verification
from tests.support.nodes import JAAS, NodeProcess
from tests.support.waiting import until
from tests.support.wire import Body, Wire
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

ADMINISTRATOR = ("node", "secret")
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{JAAS} username="node" password="secret" user_node="secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:node",
    "delegation.token.secret.key": "tokens",
    "offsets.topic.replication.factor": "1",
    "zookeeper.session.timeout.ms": "1000",
}
SMALL_LOG = "-Dzookeeper.preAllocSize=64"
"""ZooKeeper begins its log with so many KiB, and not with 64 MiB."""
TOPIC, BROKER, READ, ALLOW, LITERAL, ANY, SET = 2, 4, 3, 3, 3, 1, 0
GROUP = "readers"
ANY_ACL = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


def test_a_restored_cluster_is_as_it_was_when_it_was_copied(tmp_path: Path) -> None:
    """Topics, ids, configs, ACLs, users, quotas, tokens and offsets come back, what was changed
    after the copy does not, and each of the two audit logs is whole.
    """
    server, audit = ZooKeeperServer(tmp_path / "zookeeper", options=[SMALL_LOG]), tmp_path / "audit"
    data, copy = server.directory / "data" / "version-2", tmp_path / "backup" / "version-2"
    node = NodeProcess(tmp_path, 1, server.connect, SETTINGS | {"audit.dir": str(audit)})
    with server, lives(node), administrator(node) as wire:
        change_everything(wire, "orders")
        copied = everything(wire)
        copy.mkdir(parents=True)
        for file in [*data.glob("snapshot.*"), *(each for each in data.iterdir() if not each.match("snapshot.*"))]:
            shutil.copy2(file, copy)
        change_everything(wire, "later")
        assert all(everything(wire)[each] != copied[each] for each in copied)
    shutil.rmtree(data)
    shutil.copytree(copy, data)
    audit.rename(tmp_path / "audit-of-that-time")
    with server, lives(node), administrator(node) as wire:
        assert everything(wire) == copied
        change_everything(wire, "later")
        node.stop()
    for log in (audit, tmp_path / "audit-of-that-time"):
        assert not list(Verification([log]).findings()), log


@contextmanager
def lives(node: NodeProcess) -> Iterator[None]:
    """A life of a node, which is killed in the end."""
    node.start()
    try:
        node.wait_ready()
        yield
    finally:
        node.kill()


@contextmanager
def administrator(node: NodeProcess) -> Iterator[Wire]:
    with Wire(node.address, login=ADMINISTRATOR) as wire:
        yield wire


def change_everything(wire: Wire, name: str) -> None:
    """Make a topic with this name, and one of everything else that a cluster keeps."""
    topic = {"name": name, "num_partitions": 2, "replication_factor": 1, "assignments": []}
    topic["configs"] = [{"name": "retention.ms", "value": "1234"}]
    acl = {"resource_type": TOPIC, "resource_name": name, "resource_pattern_type": LITERAL, "principal": "User:alice"}
    user = {"name": name, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
    quota: Body = {"entity": [{"entity_type": "user", "entity_name": name}]}
    quota["ops"] = [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]
    config = {"name": "log.cleaner.backoff.ms", "config_operation": SET, "value": str(len(name))}
    offset = {"partition_index": 1, "committed_offset": len(name), "committed_metadata": name}
    for api, version, body in (
        ("CreateTopics", 5, {"topics": [topic], "timeout_ms": 5_000, "validate_only": False}),
        ("CreateAcls", 3, {"creations": [acl | {"host": "*", "operation": READ, "permission_type": ALLOW}]}),
        ("AlterUserScramCredentials", 0, {"deletions": [], "upsertions": [user]}),
        ("AlterClientQuotas", 1, {"entries": [quota], "validate_only": False}),
        (
            "IncrementalAlterConfigs",
            1,
            {
                "resources": [{"resource_type": BROKER, "resource_name": "1", "configs": [config]}],
                "validate_only": False,
            },
        ),
        ("CreateDelegationToken", 2, {"renewers": [], "max_lifetime_ms": -1}),
    ):
        answer = wire.ask(api, version, body)
        assert not set(error_codes(answer)) - {0}, (api, answer)
    commit = {"group_id": GROUP, "topics": [{"name": name, "partitions": [offset]}]}
    until(lambda: set(error_codes(wire.ask("OffsetCommit", 7, commit))) == {0} or found_coordinator(wire))


def found_coordinator(wire: Wire) -> bool:
    """Ask who coordinates the group, which makes the topic of offsets."""
    wire.ask("FindCoordinator", 4, {"coordinator_keys": [GROUP], "key_type": 0})
    return False


def error_codes(answer: object) -> Iterator[int]:
    """Yield the error codes anywhere in an answer."""
    if isinstance(answer, dict):
        if "error_code" in answer:
            yield answer["error_code"]
        answer = list(answer.values())
    for each in answer if isinstance(answer, list) else ():
        yield from error_codes(each)


def everything(wire: Wire) -> Body:
    """Return what the node says of all that it keeps, by API."""
    described = [{"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["log.cleaner.backoff.ms"]}]
    described += [{"resource_type": TOPIC, "resource_name": "orders", "configuration_keys": ["retention.ms"]}]
    topics = [{"name": name, "partition_indexes": [1]} for name in ("orders", "later")]
    asked: dict[str, tuple[int, Body]] = {
        "Metadata": (12, {"topics": None, "allow_auto_topic_creation": False}),
        "DescribeConfigs": (
            4,
            {"resources": described, "include_synonyms": False, "include_documentation": False},
        ),
        "DescribeAcls": (3, ANY_ACL),
        "DescribeUserScramCredentials": (0, {"users": None}),
        "DescribeClientQuotas": (1, {"components": [], "strict": False}),
        "DescribeDelegationToken": (2, {"owners": None}),
        "OffsetFetch": (7, {"group_id": GROUP, "topics": topics, "require_stable": False}),
    }
    answers = {api: wire.ask(api, *each) for api, each in asked.items()}
    return answers | {"Metadata": answers["Metadata"]["topics"]}
