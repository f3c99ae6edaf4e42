"""Which mechanisms a listener offers, by its configuration, and what ends the start instead."""

from collections.abc import Mapping

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.security.caller import Listener
from minicontroller.security.listeners import server_listeners
from minicontroller.security.mechanisms import LoginSources

LOGIN = "org.apache.kafka.common.security"
PLAIN = f'{LOGIN}.plain.PlainLoginModule required user_alice="planted";'
SCRAM = f"{LOGIN}.scram.ScramLoginModule required;"


def configured(changed: Mapping[str, str]) -> Listener:
    """The listener for clients."""
    keys = {
        "broker.id": "1",
        "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
    }
    client, _ = server_listeners(config_from_mapping(keys | dict(changed)), LoginSources())
    return client


def test_a_listener_offers_several_mechanisms() -> None:
    """In the order of the configuration, each with its own time to authenticate again."""
    client = configured(
        {
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,SCRAM-SHA-256",
            "listener.name.client.plain.sasl.jaas.config": PLAIN,
            "listener.name.client.scram-sha-512.sasl.jaas.config": SCRAM,
            "listener.name.client.plain.connections.max.reauth.ms": "3",
            "listener.name.client.connections.max.reauth.ms": "2",
        }
    )
    assert list(client.mechanisms) == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]
    assert client.reauthenticate_ms == {"SCRAM-SHA-512": 2, "PLAIN": 3, "SCRAM-SHA-256": 2}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not offered by this version"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256-PLUS"}, "SCRAM-SHA-256-PLUS is not offered"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "has nobody to let in"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "listener.name.client.plain.sasl.jaas.config": SCRAM},
            "names another login module than that of PLAIN",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.client.scram-sha-256.sasl.jaas.config": f'{SCRAM[:-1]} user_alice="planted";',
            },
            "names users, who have to be in ZooKeeper",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.client.scram-sha-256.sasl.server.callback.handler.class": (
                    f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"
                ),
            },
            "is not served",
        ),
    ],
)
def test_what_would_not_be_carried_out_ends_the_start(changed: dict[str, str], sentence: str) -> None:
    """With a sentence that has no secret."""
    with pytest.raises(ConfigurationError, match=sentence) as refused:
        configured(changed)
    assert "planted" not in str(refused.value)
