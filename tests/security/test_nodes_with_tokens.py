"""Nodes in earnest that log in to each other by OAUTHBEARER over TLS, each with its own token."""

import json
import time
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.certificates import Authority
from tests.support.nodes import NodeProcess, Nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

LOGIN = "org.apache.kafka.common.security.oauthbearer"
OF_NODES = "listener.name.internal.oauthbearer.sasl"


def settings(folder: Path, authority: Authority, keys: Path, number: int) -> dict[str, str]:
    """Those of one node. Its JAAS text is only needed by Kafka."""
    return {
        "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:SASL_SSL",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.internal.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OF_NODES}.jaas.config": f"{LOGIN}.OAuthBearerLoginModule required;",
        f"{OF_NODES}.server.callback.handler.class": f"{LOGIN}.OAuthBearerValidatorCallbackHandler",
        f"{OF_NODES}.login.callback.handler.class": f"{LOGIN}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.token.endpoint.url": (folder / f"token-{number}").as_uri(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(f"node-{number}", "127.0.0.1")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }


class Issuer:
    """Signs the tokens of nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.issued: list[str] = []
        self._key = RSAKey.generate_key(2048, {"kid": "k1"})
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}))

    def issue(self, number: int, seconds: float) -> None:
        """A token in the file of a node, for so long."""
        now = time.time()
        claims = {"sub": f"node-{number}", "iat": now - 10, "exp": now + seconds}
        self.issued.append(jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self._key, algorithms=["RS256"]))
        (self.folder / f"token-{number}").write_text(self.issued[-1])


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
