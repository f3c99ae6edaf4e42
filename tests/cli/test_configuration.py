"""What is wrong with a configuration is told by file, line and key; with a policy or a port, by
name. All of it before anything is served.
"""

import socket
from pathlib import Path

import pytest

from tests.cli.command import complaint

NODE = "broker.id=1\nzookeeper.connect=127.0.0.1:1/none\nlisteners=PLAINTEXT://127.0.0.1:0\n"
POLICY = "topic.management.policy.class.name"


def serve(folder: Path, text: str, *settings: str) -> str:
    (folder / "node.properties").write_text(text)
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    return complaint("serve", "--config", "node.properties", *arguments, folder=folder)


def test_every_mistake_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    """An unknown key and an ill-typed value are both told with file, line, key, and the nearest
    valid key.
    """
    told = serve(tmp_path, "# a comment\nbroker.id=1\n\nzookeper.connect=127.0.0.1:2181\nnum.partitions=many\n")
    assert told.splitlines() == [
        "node.properties, line 4: there is no key zookeper.connect; did you mean zookeeper.connect?",
        "node.properties, line 5: Invalid value many for configuration num.partitions: Not a number of type INT.",
    ]


def test_mistakes_of_all_kinds_are_told_at_once(tmp_path: Path) -> None:
    """Keys, values, what contradicts each other, JAAS files, stores, logins, authorizers, rules and
    folders: one start tells all of it, and nothing that only follows from another mistake.
    """
    (tmp_path / "jaas.conf").write_text("KafkaServer { M required };")
    lines = [
        NODE.replace("PLAINTEXT", "SASL_SSL").strip(),
        "inter.broker.listener.name=SASL_SSL",
        "brokr.rack=x",
        "num.partitions=many",
        "super.users=alice",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-256,GSSAPI",
        "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-256",
        "ssl.keystore.location=none.pem",
        "ssl.truststore.location=none.pem",
        "authorizer.class.name=kafka.security.auth.SimpleAclAuthorizer",
        "create.topic.policy.class.name=com.acme.Policy",
        "policy.rules.files=none.toml",
        "http.listen=nowhere",
    ]
    variables = {"KAFKA_CFG_LISTENERS": "x", "KAFKA_OPTS": "-Djava.security.auth.login.config=jaas.conf"}
    (tmp_path / "node.properties").write_text("\n".join(lines))
    told = complaint("serve", "--config", "node.properties", folder=tmp_path, variables=variables).splitlines()
    beginnings = [
        "node.properties, line 5: there is no key brokr.rack; did you mean broker.rack?",
        "node.properties, line 6: Invalid value many",
        "environment variable KAFKA_CFG_LISTENERS is not read",
        "environment variable KAFKA_OPTS: java.security.auth.login.config: jaas.conf: section KafkaServer",
        "node.properties, line 7: super.users: 'alice' is no principal",
        "sasl.enabled.mechanisms: GSSAPI is not offered",
        "ssl.keystore.location names a file that cannot be read: none.pem",
        "ssl.truststore.location names a file that cannot be read: none.pem",
        "authorizer.class.name: Kafka 3.0 removed kafka.security.auth.SimpleAclAuthorizer",
        "create.topic.policy.class.name is 'com.acme.Policy', but takes module:Class",
        "The rules cannot be used:",
        "none.toml:1:1: the file cannot be read",
        "http.listen is host:port",
    ]
    assert [line[: len(begun)] for line, begun in zip(told, beginnings, strict=True)] == beginnings


def test_an_override_is_told_as_one(tmp_path: Path) -> None:
    """What --set gets wrong is not blamed on the file."""
    assert serve(tmp_path, NODE, "num.partition=3").startswith("--set num.partition: there is no key num.partition")


def test_a_variable_is_told_by_its_name(tmp_path: Path) -> None:
    """What the environment gets wrong is told by the variable."""
    told = complaint("serve", folder=tmp_path, variables={"KAFKA_BROKER_ID": "first"})
    assert told.startswith("environment variable KAFKA_BROKER_ID: Invalid value first for configuration broker.id")


@pytest.mark.parametrize("missing", ["broker.id", "zookeeper.connect"])
def test_what_a_node_cannot_do_without(tmp_path: Path, missing: str) -> None:
    """`serve` without a number or a store says which key is missing."""
    text = "".join(f"{line}\n" for line in NODE.splitlines() if not line.startswith(missing))
    assert serve(tmp_path, text).startswith(f"{missing} is missing")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """A file that cannot be read as text is named."""
    (tmp_path / "node.properties").write_bytes(b"\xff\xfe")
    told = complaint("serve", "--config", "node.properties", folder=tmp_path)
    assert told.startswith("Cannot read node.properties:")


def test_a_zookeeper_that_is_no_address(tmp_path: Path) -> None:
    """An address that cannot be one is refused, not tried for ever."""
    told = serve(tmp_path, NODE, "zookeeper.connect=host:port")
    assert told.startswith("zookeeper.connect: 'host:port' is no list of host:port")


@pytest.mark.parametrize("store", ["disk", "zookeeper://", "http://127.0.0.1:2181"])
def test_a_store_that_is_none(tmp_path: Path, store: str) -> None:
    """`up` on an unknown store says what it takes."""
    told = complaint("up", "--store", store, folder=tmp_path)
    assert told == f"--store {store} is neither memory nor zookeeper://host:port/chroot."


def test_what_up_decides_itself(tmp_path: Path) -> None:
    """A key that cannot be the same for all nodes of `up` is refused."""
    told = complaint("up", "--set", "broker.id=7", folder=tmp_path)
    assert told == "--set broker.id: the nodes of `up` are numbered from 1."


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("rules/none.py:Rules", "there is no file"),
        ("broken.py:Rules", "SyntaxError: expected ':' (broken.py:1)"),
        ("broken.py", "which class of broken.py is the policy?"),
        ("no_such_module:Rules", "there is no module no_such_module"),
        ("empty.py:Rules", "Rules"),
    ],
)
def test_a_policy_that_cannot_be_loaded(tmp_path: Path, policy: str, said: str) -> None:
    """A policy that is not there, or is no Python, ends the start in one sentence with the key, the
    file and the line.
    """
    (tmp_path / "broken.py").write_text("class Rules()\n")
    (tmp_path / "empty.py").write_text("")
    told = complaint("up", "--port", "0", "--set", f"{POLICY}={policy}", folder=tmp_path)
    assert told.startswith(POLICY)
    assert said in told
    assert len(told.splitlines()) == 1


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """A port that somebody else has is named, with its listener, and so is the way around it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = complaint("up", "--brokers", "1", "--port", str(port), folder=tmp_path)
    assert told == (
        f"Listener PLAINTEXT cannot listen on 127.0.0.1, port {port}: Address already in use. "
        "Name another one by --port, or take free ones by --port 0."
    )


def test_a_taken_port_that_up_did_not_choose(tmp_path: Path) -> None:
    """Where --set names the listeners, `--port` would not help, and is not spoken of."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{port},INTERNAL://127.0.0.1:0"
        told = complaint("up", "--brokers", "1", "--set", listeners, folder=tmp_path)
    assert told == f"Listener PLAINTEXT cannot listen on 127.0.0.1, port {port}: Address already in use."


def test_an_override_that_does_not_fit(tmp_path: Path) -> None:
    """What contradicts a key that `up` decides is named, and not a line of what nobody wrote."""
    told = complaint("up", "--port", "0", "--set", "sasl.enabled.mechanisms=SCRAM-SHA-256", folder=tmp_path)
    assert told.startswith("--set sasl.enabled.mechanisms: ")


def test_a_line_that_does_not_fit_another(tmp_path: Path) -> None:
    """Within one file it is the key itself that is to be mended, as long as no override came
    between.
    """
    assert serve(tmp_path, f"{NODE}inter.broker.listener.name=SSL\n").startswith(
        "node.properties, line 4: inter.broker"
    )
    told = serve(tmp_path, f"{NODE}inter.broker.listener.name=PLAINTEXT\n", "listeners=SSL://127.0.0.1:0")
    assert told.startswith("--set listeners: inter.broker.listener.name must name")
