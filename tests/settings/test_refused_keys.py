"""Keys that this program does not carry out are refused, because it must not pass over them."""

import pytest

from minicontroller.admin.configs.broker_changes import validate_broker_configs
from minicontroller.cluster.errors import ConfigurationError, Refusal
from minicontroller.process.settings.dynamic_keys import acceptable_broker_configs
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.process.settings.refused_keys import REFUSED

ASKS_FOR_MORE = {
    "principal.builder.class": "com.example.Builder",
    "security.providers": "com.example.Provider",
    "ssl.engine.factory.class": "com.example.Engines",
    "sasl.server.callback.handler.class": "com.example.Handler",
    "sasl.client.callback.handler.class": "com.example.Handler",
    "sasl.login.class": "com.example.Login",
    "sasl.login.callback.handler.class": "com.example.Handler",
    "client.quota.callback.class": "com.example.Quotas",
    "zookeeper.ssl.crl.enable": "true",
    "zookeeper.ssl.ocsp.enable": "true",
    "zookeeper.metadata.migration.enable": "true",
    "process.roles": "broker",
    "controller.quorum.voters": "1@localhost:9093",
    "inter.broker.protocol.version": "3.3",
}
HARMLESS = {
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "zookeeper.ssl.crl.enable": "false",
    "process.roles": "",
    "inter.broker.protocol.version": "3.4",
}


def test_each_key_has_a_case() -> None:
    """A key that is refused is tried here."""
    assert ASKS_FOR_MORE.keys() == REFUSED.keys()


@pytest.mark.parametrize(("key", "value"), ASKS_FOR_MORE.items())
def test_a_key_that_is_not_carried_out_ends_the_start(key: str, value: str) -> None:
    """Nothing that weakens the cluster when it is missing is silently left out; the sentence names
    key and reason.
    """
    with pytest.raises(ConfigurationError, match=f"{key} is not served: "):
        config_from_mapping({key: value})


@pytest.mark.parametrize(("key", "value"), HARMLESS.items())
def test_a_value_that_asks_for_nothing_is_taken(key: str, value: str) -> None:
    """What Kafka's own sample files say of its defaults is no reason to refuse them."""
    assert config_from_mapping({key: value}).text(key) == value


@pytest.mark.parametrize("key", ["listener.name.client.principal.builder.class", "principal.builder.class"])
def test_a_running_node_refuses_them_too(key: str) -> None:
    """AlterConfigs refuses these keys, and what is in ZooKeeper already does not count."""
    node = config_from_mapping({"broker.id": "1"})
    with pytest.raises(Refusal, match="is not served") as refused:
        validate_broker_configs({key: "org.example.Builder"}, node, per_broker=True)
    assert refused.value.message is not None and "Builder" not in refused.value.message
    assert acceptable_broker_configs({key: "org.example.Builder", "log.retention.ms": "5"}, per_broker=True) == {
        "log.retention.ms": "5"
    }


def test_a_listener_has_its_own_time_to_authenticate_again() -> None:
    """`connections.max.reauth.ms` holds for one listener or mechanism where its prefix says so."""
    node = config_from_mapping(
        {
            "connections.max.reauth.ms": "1",
            "listener.name.a.connections.max.reauth.ms": "2",
            "listener.name.b.plain.connections.max.reauth.ms": "3",
        }
    )
    names = [node.of_listener(listener, "connections.max.reauth.ms", "PLAIN") for listener in ("A", "B", "C")]
    assert [node.integer(name) for name in names] == [2, 3, 1]
