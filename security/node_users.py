"""The user as which a node logs in to other nodes, as the configuration names it.

Rule: what a node needs to log in and does not have ends the start with a sentence that has no
secret. Only a token may be missing, because tokens come and go while nodes run.
"""

from ..cluster.errors import ConfigurationError
from ..process.settings.listeners import ConfiguredListener
from ..process.settings.node_config import NodeConfig
from .credentials import Credentials, PlainCredentials, ScramCredentials
from .mechanism_keys import OAUTHBEARER, is_of_nodes, key_of_mechanism
from .mechanisms import PLAIN, LoginSources
from .scram_credentials import HASHES

KNOWN_BY = {PLAIN: ", and user_<that name> with the same password"}


def node_user(config: NodeConfig, listener: ConfiguredListener, sources: LoginSources) -> Credentials | None:
    """Return the credentials of this node's user at a listener, or None if nodes do not log in
    there; `sources` gets the task that keeps a token new. Raises ConfigurationError.
    """
    mechanism = config.string("sasl.mechanism.inter.broker.protocol")
    if not listener.needs_sasl or not is_of_nodes(config, listener.name, mechanism):
        return None
    if mechanism == OAUTHBEARER:
        from .token_user import token_user  # its library takes long to import

        return token_user(config, listener.name, sources)
    if mechanism != PLAIN and mechanism not in HASHES:
        raise ConfigurationError(
            f"sasl.mechanism.inter.broker.protocol: nodes log in to each other by {PLAIN}, {', '.join(HASHES)} or {OAUTHBEARER}, "
            f"and not by {mechanism}."
        )
    return _user_with_password(config, listener.name, mechanism)


def _user_with_password(config: NodeConfig, listener: str, mechanism: str) -> Credentials:
    key = key_of_mechanism(config, listener, "sasl.jaas.config", mechanism)
    jaas = config.jaas(listener, mechanism)
    if jaas is None or jaas.username is None or jaas.password is None:
        raise ConfigurationError(
            f"{key} needs a username and a password{KNOWN_BY.get(mechanism, '')}: "
            f"nodes authenticate to each other at the listener {listener} by {mechanism}."
        )
    if jaas.options.get("tokenauth"):
        raise ConfigurationError(f"{key}: a node logs in as a user, and not by a delegation token.")
    if mechanism == PLAIN:
        return PlainCredentials(jaas.username, jaas.password)
    return ScramCredentials(jaas.username, jaas.password, mechanism)
