"""The users as which nodes log in to each other by SCRAM."""

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.security.listeners import NodeLogins, server_listeners
from minicontroller.security.mechanisms import LoginSources
from minicontroller.security.node_proof import Membership
from minicontroller.security.scram_credentials import derived_credential

SHA256 = "SCRAM-SHA-256"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
KEY = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"


def logins(jaas: str, mechanism: str = SHA256, **changed: str) -> NodeLogins:
    config = {
        "broker.id": "1",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        KEY.replace(SHA256.lower(), mechanism.lower()): jaas,
        **{name.replace("_", "."): value for name, value in changed.items()},
    }
    listeners = server_listeners(config_from_mapping(config), LoginSources())
    return NodeLogins(Membership("cluster", 1, lambda: None), listeners)


@pytest.mark.parametrize("exists", [True, False])
def test_a_node_whose_own_user_is_missing_says_how_to_make_it(exists: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Nodes could not reach each other, and nothing else would tell why before they tried."""
    credential = derived_credential(SHA256, "planted")
    known = {("node", SHA256): credential} if exists else {}
    logins(f'{LOGIN} username="node" password="planted";').warn_of_missing_users(
        lambda user, mechanism: known.get((user, mechanism))
    )
    assert ("--entity-name node" in caplog.text) is not exists
    assert "planted" not in caplog.text


@pytest.mark.parametrize(
    ("jaas", "mechanism", "sentence"),
    [
        (f'{LOGIN} username="node";', SHA256, f"{KEY} needs a username and a password"),
        (f'{LOGIN} username="n" password="planted" tokenauth="true";', SHA256, "and not by a delegation token"),
        (f"{LOGIN};", "GSSAPI", "GSSAPI is not offered by this version"),
    ],
)
def test_what_a_node_needs_to_log_in(jaas: str, mechanism: str, sentence: str) -> None:
    """A mistake ends the start with a sentence that has no secret."""
    with pytest.raises(ConfigurationError, match=sentence) as refused:
        logins(jaas, mechanism)
    assert "planted" not in str(refused.value)
