"""JAAS files. Java's own reader gave the same result for each text of `test_what_java_reads`."""

from pathlib import Path

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.process.settings.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, JaasError, parse_jaas_file
from minicontroller.process.settings.loading import load_config
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.security.listeners import server_listeners
from minicontroller.security.mechanisms import LoginSources

FILE = f"""
internal.KafkaServer {{
  {PLAIN_LOGIN_MODULE} required username="node" password="s3 \\"cret\\"" // }};
    user_node="s3 \\"cret\\"" user_alice="planted }};";
  {SCRAM_LOGIN_MODULE} required username="other" password="planted";
}};
KafkaServer {{ {SCRAM_LOGIN_MODULE} required; }};
KafkaClient {{ org.example.Module required keyTab="${{user.home}}/x"; }};
Empty {{ }};
"""
LISTENERS = """broker.id=1
listeners=CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:0
listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT
inter.broker.listener.name=INTERNAL
listener.name.internal.sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms=SCRAM-SHA-256
"""


def node(folder: Path, text: str = FILE, more: str = "") -> NodeConfig:
    (folder / "jaas.conf").write_text(text)
    environ = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={folder / 'jaas.conf'}"}
    return load_config(LISTENERS + more, "f", (), environ)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('A { M required a="b"; };', [{"a": "b"}]),
        ('A { M required a=b; N optional c="d e"; };', [{"a": "b"}, {"c": "d e"}]),
        ('A { M REQUIRED p="$x" p="y"; };', [{"p": "y"}]),
        ('A{M required a = "b" user_x.y="" ; } ;', [{"a": "b", "user_x.y": ""}]),
        ('/* A { */ "A" { M required a="a }; b"; }; // A {', [{"a": "a }; b"}]),
        ("A { };", []),
    ],
)
def test_what_java_reads(text: str, options: list[dict[str, str]]) -> None:
    """Several modules, quoted values, comments, and braces in quotes."""
    assert [dict(module.options) for module in parse_jaas_file(text)["A"]] == options


def test_a_file_is_made_of_sections() -> None:
    """Without one it is empty, and what stands outside of them is a mistake."""
    assert parse_jaas_file("") == {}
    for text in ("{ x required; };", "A { M required };", "# comment\nA { M required; };", "A { M foo; };"):
        with pytest.raises(JaasError):
            parse_jaas_file(text)


def test_all_mistakes_of_a_file_at_once(tmp_path: Path) -> None:
    """Each section is read, whatever another one has, and no mistake has a value."""
    sections = (
        "KafkaServer { M maybe username planted; };",
        "KafkaServer { M required; };",
        "Client { M required };",
        "x.KafkaServer { M required a=b; };",
    )
    with pytest.raises(ConfigurationError) as raised:
        node(tmp_path, "\n".join(sections))
    place = f"environment variable KAFKA_OPTS: java.security.auth.login.config: {tmp_path / 'jaas.conf'}: section "
    assert [each.removeprefix(place) for each in str(raised.value).split("\n")] == [
        "KafkaServer: after the class of the login module one of optional, required, requisite, sufficient must follow.",
        "KafkaServer: option 1 is not of the form name=value.",
        "KafkaServer is there twice.",
        "Client: a login module and its options end with a semicolon, and here is none at the end.",
    ]
    with pytest.raises(JaasError, match="begins on line 2 is neither"):
        parse_jaas_file('A { };\nB { x required a="planted; };')


def test_the_section_of_a_listener_goes_before_the_one_for_all(tmp_path: Path) -> None:
    """As in Kafka: the listener's key, then its section, then `KafkaServer`."""
    config = node(tmp_path)
    internal = config.jaas("INTERNAL", "PLAIN")
    assert internal is not None
    assert (internal.username, internal.password) == ("node", 's3 "cret"')
    assert internal.users == {"node": 's3 "cret"', "alice": "planted };"}
    client = config.jaas("CLIENT", "SCRAM-SHA-256")
    assert client is not None and client.login_module == SCRAM_LOGIN_MODULE and client.username is None
    key = f'listener.name.internal.plain.sasl.jaas.config={PLAIN_LOGIN_MODULE} required username="own" password="p";\n'
    own = node(tmp_path, more=key).jaas("INTERNAL", "PLAIN")
    assert own is not None and own.username == "own" and own.users == {}
    general = f'sasl.jaas.config={PLAIN_LOGIN_MODULE} required username="general" password="p";\n'
    assert node(tmp_path, more=general).jaas("INTERNAL", "PLAIN") == internal
    assert config.with_dynamic({}, {}).jaas("INTERNAL", "PLAIN") == internal
    assert "planted" not in repr(config.jaas_sections)


def test_the_first_login_of_a_section_is_that_of_the_node(tmp_path: Path) -> None:
    """Java logs in by all modules of a section, and Kafka takes the first name and password."""
    scram = node(tmp_path).jaas("INTERNAL", "SCRAM-SHA-256")
    assert scram is not None and (scram.username, scram.users) == ("node", {})


def test_a_node_starts_with_the_file_of_a_kafka(tmp_path: Path) -> None:
    """Its sections are enough for the listeners, and what they lack is told by file and section."""
    listeners = server_listeners(node(tmp_path), LoginSources())
    assert [(each.name, [*each.mechanisms]) for each in listeners] == [
        ("CLIENT", ["SCRAM-SHA-256"]),
        ("INTERNAL", ["PLAIN"]),
    ]
    text = f"KafkaServer {{ {SCRAM_LOGIN_MODULE} required; }};"
    with pytest.raises(ConfigurationError, match=r"login.config, section KafkaServer, has no .*PlainLoginModule"):
        server_listeners(node(tmp_path, text), LoginSources())
    text = f"KafkaServer {{ {PLAIN_LOGIN_MODULE} required user_a=b; }};"
    with pytest.raises(ConfigurationError, match="section KafkaServer, needs a username and a password"):
        server_listeners(node(tmp_path, text), LoginSources())
