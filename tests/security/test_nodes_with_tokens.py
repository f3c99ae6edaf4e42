"""Nodes in earnest that log in to each other by OAUTHBEARER over TLS, each with its own token."""

from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.nodes import NodeProcess, Nodes
from tests.support.token_nodes import Issuer, settings
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer


def create(node: NodeProcess, topic: str, timeout_ms: int = 20_000) -> int:
    rows = [{"name": topic, "num_partitions": 1, "replication_factor": 3, "assignments": [], "configs": []}]
    with node.wire() as wire:
        answer = wire.ask("CreateTopics", 5, {"topics": rows, "timeout_ms": timeout_ms, "validate_only": False})
    code: int = answer["topics"][0]["error_code"]
    return code


@pytest.mark.slow
def test_nodes_log_in_by_tokens(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """What clients ask of each node is carried out. A node whose token has expired says so, and
    goes on when the file has another; no token is in a log.
    """
    issuer, authority = Issuer(tmp_path), Authority(tmp_path)
    numbers = (1, 2, 3)
    for number in numbers:
        issuer.issue(number, 600)
    connect = f"{zookeeper.connect}/tokens"
    nodes = Nodes.of(
        NodeProcess(tmp_path, number, connect, settings(tmp_path, authority, issuer.keys, number)) for number in numbers
    )
    try:
        nodes.start()
        assert [create(node, f"topic-{node.broker_id}") for node in nodes] == [0, 0, 0]
        (node, _) = nodes.others(nodes.controller())
        node.kill()
        issuer.issue(node.broker_id, -1)
        node.start()
        node.wait_ready()
        assert create(node, "late", timeout_ms=500) != 0
        fault = (
            f"this node has no valid token to log in with ({tmp_path}/token-{node.broker_id}: the token has expired)"
        )
        until(lambda: fault in node.output)
        issuer.issue(node.broker_id, 600)
        until(lambda: create(node, "late"), right=lambda code: code == 0)
        said = "".join(each.log.read_text() for each in nodes)
        assert "Traceback" not in said
        assert not [token for token in issuer.issued if token.rpartition(".")[2] in said]
    finally:
        nodes.kill()
