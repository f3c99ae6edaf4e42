"""Lists Kafka's keys that this program does not support and must not ignore, because ignoring them
would make a cluster less secure or disable something that its operators rely on.

Rule: a value that asks only for the existing behaviour is accepted. Any other value stops the start
and is refused while a node runs. Unsupported keys that are harmless are shown and have no effect;
docs/configuration.md lists all three kinds.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ...policies.configs.validators import release_of
from ...policies.configs.values import Value
from .keys import KEYS, base_name, key_named

Fault = tuple[str, str]
OLDEST_FORMATS = (3, 4)
"""Nodes and brokers receive requests in the formats of Kafka 3.4 and later (LeaderAndIsr 7,
UpdateMetadata 8, StopReplica 4).
"""
TOKEN_VALIDATORS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
"""Kafka's names, new and old, of the check of signed tokens that OAUTHBEARER makes here."""
TOKEN_LOGINS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
"""Kafka's names, new and old, of the login with a token from a file or an endpoint."""
DIALECT_PREFIX = "listener.dialect."


def _is_set(value: Value) -> bool:
    return bool(value)


def _is_not(*allowed: Value) -> Callable[[Value], bool]:
    return lambda value: value not in allowed


def _is_older(value: Value) -> bool:
    return (release_of(str(value)) or OLDEST_FORMATS) < OLDEST_FORMATS


REFUSED: Mapping[str, tuple[Callable[[Value], bool], str]] = MappingProxyType(
    {
        "principal.builder.class": (
            _is_not(KEYS["principal.builder.class"].default),
            "callers are named as Kafka names them by default",
        ),
        "security.providers": (_is_set, "security algorithms are those of Python and OpenSSL"),
        "sasl.server.callback.handler.class": (
            _is_not(None, "", *TOKEN_VALIDATORS),
            f"only Kafka's own check of signed tokens is, {TOKEN_VALIDATORS[0]}",
        ),
        "sasl.client.callback.handler.class": (_is_set, "nodes log in as sasl.jaas.config says"),
        "ssl.engine.factory.class": (_is_set, "TLS is that of Python and OpenSSL"),
        "sasl.login.class": (_is_set, "nodes log in as sasl.jaas.config says"),
        "sasl.login.callback.handler.class": (
            _is_not(None, "", *TOKEN_LOGINS),
            f"only Kafka's own login with tokens is, {TOKEN_LOGINS[0]}",
        ),
        "client.quota.callback.class": (_is_set, "quotas are those of users, clients and addresses in ZooKeeper"),
        "zookeeper.ssl.crl.enable": (_is_set, "no revocation lists are read"),
        "zookeeper.ssl.ocsp.enable": (_is_set, "OCSP is not asked"),
        "zookeeper.metadata.migration.enable": (_is_set, "metadata cannot be migrated to KRaft by this program"),
        "process.roles": (_is_set, "this node keeps its metadata in ZooKeeper and takes part in no KRaft quorum"),
        "controller.quorum.voters": (
            _is_set,
            "this node keeps its metadata in ZooKeeper and takes part in no KRaft quorum",
        ),
        "inter.broker.protocol.version": (
            _is_older,
            "nodes receive requests in the formats of Kafka 3.4 and later; leave it out, or set 3.4 or a later version",
        ),
    }
)


def faults_of_keys(configs: Mapping[str, str]) -> Iterator[Fault]:
    """Yield (key, sentence) for each key that asks for something unsupported. The values must be
    valid for the types of their keys.
    """
    for name, text in configs.items():
        if name.startswith(DIALECT_PREFIX):
            if text != "kafka":
                yield name, f"{name}={text} is not served: every listener speaks Kafka's own dialect in this version."
            continue
        key, refused = key_named(name), REFUSED.get(base_name(name))
        if key is not None and refused is not None:
            asks_for_more, sentence = refused
            if asks_for_more(key.parse(text)):
                yield name, f"{name} is not served: {sentence}."


assert REFUSED.keys() <= KEYS.keys()
