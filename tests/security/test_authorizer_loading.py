"""The authorizer that a node's configuration names, and the mistakes that end the start."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.controller.node.authorization import authorization_of, loaded_authorizer
from minicontroller.policies.authorizer import Requester
from minicontroller.policies.authorizer_loading import KAFKAS_AUTHORIZERS, build_authorizer
from minicontroller.policies.load_errors import PolicyLoadError
from minicontroller.process.observe.metrics import AuthorizationMetrics
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.process.settings.node_rules import super_users
from minicontroller.protocol.acls import AclOperation, AclResourceType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.security.acls import AclIndex

BOB = Requester(principal="User:bob", client_host="10.0.0.9", api_key=ApiKey.METADATA)
AUTHORIZER = """
from minicontroller import policies

class Readers(policies.Authorizer):
    def configure(self, configs):
        self.owner = configs["authorizer.owner"]
        assert "super.secret.password" not in configs

    def authorize(self, requester, actions):
        if requester.principal == "User:broken":
            raise ValueError("broken")
        return [action.operation is policies.AclOperation.READ for action in actions]

class Empty(policies.Authorizer):
    pass

class Waiting(policies.Authorizer):
    async def authorize(self, requester, actions):
        return []

class Short(policies.Authorizer):
    def authorize(self, actions):
        return []

class Needy(policies.Authorizer):
    def __init__(self, needs):
        pass

    def authorize(self, requester, actions):
        return []

class Other:
    pass
"""


@pytest.fixture(name="file")
def write_file(tmp_path: Path) -> Path:
    path = tmp_path / "access.py"
    path.write_text(AUTHORIZER)
    return path


def test_kafkas_own_names_stand_for_the_acls() -> None:
    """Both of Kafka's class names mean that ACLs decide, and need no class."""
    for name in KAFKAS_AUTHORIZERS:
        assert build_authorizer(name, {}) is None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Empty", "has no method authorize"),
        ("Waiting", "must be a plain function"),
        ("Short", "cannot be called as authorize(requester, actions)"),
        ("Needy", "it is called without arguments"),
        ("Other", "must be derived from minicontroller.policies.Authorizer"),
        ("Readres", "did you mean Readers?"),
        ("Readers", "raised an exception in configure: KeyError"),
    ],
)
def test_an_authorizer_that_cannot_decide_ends_the_start(file: Path, kind: str, said: str) -> None:
    """Each mistake is one sentence that names the key."""
    with pytest.raises(PolicyLoadError) as failed:
        build_authorizer(f"{file}:{kind}", {})
    assert str(failed.value).startswith("authorizer.class.name")
    assert said in str(failed.value)


async def test_a_users_authorizer_decides_and_its_faults_deny_and_are_counted(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A denial is one line of the log and a count; an exception denies."""
    settings = {
        "authorizer.class.name": f"{file}:Readers",
        "authorizer.owner": "security",
        "super.secret.password": "hunter2",
        "super.users": "User:admin",
    }
    config, metrics = config_of(settings), AuthorizationMetrics()
    async with loaded_authorizer(config) as authorizer:
        authorization = authorization_of(config, authorizer, AclIndex(), metrics)
    assert authorization is not None
    with caplog.at_level(logging.INFO):
        topics = ["a\nb", "c"]
        assert authorization.allows(BOB, AclOperation.READ, AclResourceType.TOPIC, topics) == [True, True]
        assert authorization.allows(BOB, AclOperation.WRITE, AclResourceType.TOPIC, topics) == [False, False]
        broken = Requester(principal="User:broken", client_host="10.0.0.9", api_key=ApiKey.METADATA)
        assert authorization.allows(broken, AclOperation.READ, AclResourceType.TOPIC, ["a"]) == [False]
    admin = Requester(principal="User:admin", client_host="10.0.0.9")
    assert authorization.allows(admin, AclOperation.WRITE, AclResourceType.TOPIC, ["a"]) == [True]
    denial = "User:bob from 10.0.0.9 is denied Write on Topic:LITERAL:{} for Metadata"
    assert {denial.format(r"a\nb"), denial.format("c")} <= set(caplog.messages)
    assert metrics.denied[AclOperation.WRITE, AclResourceType.TOPIC] == 2
    assert metrics.faults == 1


async def test_a_node_without_an_authorizer_asks_nobody() -> None:
    """Everybody may do everything then, as in Kafka."""
    config = config_of({})
    async with loaded_authorizer(config) as authorizer:
        assert authorization_of(config, authorizer, AclIndex(), AuthorizationMetrics()) is None


def test_super_users_are_separated_by_semicolons() -> None:
    """Names from certificates have commas."""
    assert super_users(" User:CN=a,O=b ; User:c:d;; ") == {"User:CN=a,O=b", "User:c:d"}
    for text in ("admin", "User:", ":admin"):
        with pytest.raises(ValueError, match="is no principal"):
            super_users(text)


@pytest.mark.parametrize("key", ["super.users", "allow.everyone.if.no.acl.found"])
def test_a_key_of_the_authorizer_without_an_authorizer_is_warned_of(key: str) -> None:
    """Whoever writes such a key may believe that access is checked, and it is not."""
    value = "User:admin" if key == "super.users" else "false"
    [warning] = config_from_mapping({"broker.id": "1", key: value}).warnings
    assert f"{key} has no effect without authorizer.class.name: everybody may do everything." in warning


def test_super_users_that_are_no_principals_end_the_start() -> None:
    """A super user who is misspelt would be locked out."""
    with pytest.raises(ConfigurationError, match=r"super\.users: 'admin' is no principal"):
        config_from_mapping({"broker.id": "1", "super.users": "admin"})


def config_of(settings: Mapping[str, str]) -> NodeConfig:
    return NodeConfig({"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", **settings})
