"""The protection of a node's connection to ZooKeeper, as its configuration asks for it."""

from pathlib import Path

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.process.settings.loading import config_from_mapping, load_config
from minicontroller.security.zookeeper_access import zookeeper_access

NODE = {"broker.id": "1"}
TLS = NODE | {"zookeeper.ssl.client.enable": "true"}
NIO, NETTY = (f"org.apache.zookeeper.ClientCnxnSocket{name}" for name in ("NIO", "Netty"))
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
LOGIN = f'{MODULE} username="kafka" password="planted-secret";'
FILE = f"""// a comment
KafkaClient {{ org.example.Module required; }};
Client {{
  {LOGIN} /* }};  */
}};
"""


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"zookeeper.set.acl": "true"}, "needs an identity at ZooKeeper"),
        ({"zookeeper.set.acl": "true", "zookeeper.ssl.client.enable": "true"}, "needs an identity at ZooKeeper"),
        ({"zookeeper.set.acl": "true", "zookeeper.connect": "memory"}, "the store is in this process"),
        ({"zookeeper.ssl.client.enable": "true", "zookeeper.connect": "memory"}, "the store is in this process"),
        ({"zookeeper.ssl.keystore.location": "k.pem"}, "has no effect without zookeeper.ssl.client.enable=true"),
        ({"zookeeper.ssl.truststore.location": "k.pem"}, "has no effect without zookeeper.ssl.client.enable=true"),
        ({"zookeeper.clientCnxnSocket": "com.example.Socket"}, "is not served"),
        (TLS | {"zookeeper.clientCnxnSocket": NIO}, "speaks no TLS"),
        (TLS | {"zookeeper.ssl.protocol": "TLSv1.1"}, "zookeeper.ssl.protocol allows neither"),
        (TLS | {"zookeeper.ssl.enabled.protocols": "SSLv3,TLSv1"}, "zookeeper.ssl.enabled.protocols allows neither"),
        (TLS | {"zookeeper.ssl.endpoint.identification.algorithm": "LDAPS"}, "must be https, or empty"),
        ({"zookeeper.sasl.client.jaas.config": "x"}, "semicolon"),
        ({"zookeeper.sasl.client.jaas.config": "com.sun.Krb5LoginModule required;"}, "must be org.apache.zookeeper"),
        ({"zookeeper.sasl.client.jaas.config": f"{MODULE} username=a;"}, "needs the options username and password"),
    ],
)
def test_less_protection_than_asked_for_ends_the_start(settings: dict[str, str], sentence: str) -> None:
    """What cannot be carried out is told with its key, before anything is sent."""
    with pytest.raises(ConfigurationError, match=sentence):
        config_from_mapping(NODE | settings)


@pytest.mark.parametrize("socket", ["", NETTY])
def test_tls_needs_no_class_and_takes_kafkas(socket: str) -> None:
    """Kafka needs the class of Netty for TLS; here it changes nothing."""
    access = zookeeper_access(config_from_mapping(TLS | {"zookeeper.clientCnxnSocket": socket}))
    assert access.tls is not None


def test_cipher_suites_have_javas_names() -> None:
    """Only the named suites are offered; one that nobody knows ends the start."""
    suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    access = zookeeper_access(config_from_mapping(TLS | {"zookeeper.ssl.cipher.suites": suites}))
    assert access.tls is not None
    of_tls_1_2 = [each["name"] for each in access.tls.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert of_tls_1_2 == ["ECDHE-RSA-AES128-GCM-SHA256"]
    config = config_from_mapping(TLS | {"zookeeper.ssl.cipher.suites": "TLS_NULL"})
    with pytest.raises(
        ConfigurationError, match=r"^zookeeper.ssl.cipher.suites names a cipher suite that is not spoken"
    ):
        zookeeper_access(config)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_store_that_cannot_be_read_ends_the_start(store: str, tmp_path: Path) -> None:
    """The sentence begins with the key and names the file."""
    missing = str(tmp_path / "missing.pem")
    config = config_from_mapping(TLS | {f"zookeeper.ssl.{store}.location": missing})
    with pytest.raises(
        ConfigurationError, match=f"^zookeeper.ssl.{store}.location names a file .*No such file.*missing.pem"
    ):
        zookeeper_access(config)


def test_the_login_is_found_where_kafka_has_it(tmp_path: Path) -> None:
    """KAFKA_OPTS names the JAAS file of a Kafka broker; its section Client is the login."""
    file = tmp_path / "jaas.conf"
    file.write_text(FILE)
    environ = {"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={file}"}
    access = zookeeper_access(load_config("broker.id=1", "server.properties", (), environ))
    assert access.login is not None and (access.login.username, access.login.password) == ("kafka", "planted-secret")
    own = [f"zookeeper.sasl.client.jaas.config={LOGIN.replace('kafka', 'own')}"]
    access = zookeeper_access(load_config("broker.id=1", "server.properties", own, environ))
    assert access.login is not None and access.login.username == "own"
    assert zookeeper_access(config_from_mapping(NODE)).login is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Server { x required; };", "there is no section Client, KafkaServer or <listener>.KafkaServer"),
        ("KafkaServer { x required; };", "zookeeper.set.acl=true needs an identity at ZooKeeper"),
        ('Client { x required a="${user.name}"; };', "section Client: option a has a property of Java"),
        (FILE.replace("};\nClient {", "};\nClient { x required;"), "section Client: exactly one login module"),
        (FILE + FILE, "is there twice"),
        (FILE.replace(MODULE, "x required"), "must be org.apache.zookeeper"),
        (FILE.removesuffix(";\n"), "does not end with"),
        (FILE + "Client", "each section is of the form"),
        (FILE.replace('-secret"', "-secret"), "neither a word nor a quoted text"),
        ('Client { x required password="planted-secret" };', "section Client: a login module"),
    ],
)
def test_a_jaas_file_without_a_login_ends_the_start(text: str, sentence: str, tmp_path: Path) -> None:
    """A node never goes on as nobody because its file is wrong, and no secret is told."""
    file = tmp_path / "jaas.conf"
    file.write_text(text)
    settings = NODE | {"java.security.auth.login.config": str(file), "zookeeper.set.acl": "true"}
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        config_from_mapping(settings)
    assert "planted" not in str(caught.value)


def test_a_jaas_file_that_is_missing_ends_the_start(tmp_path: Path) -> None:
    """The sentence names the file."""
    file = tmp_path / "jaas.conf"
    with pytest.raises(ConfigurationError, match=r"jaas.conf: No such file"):
        config_from_mapping(NODE | {"java.security.auth.login.config": str(file)})
