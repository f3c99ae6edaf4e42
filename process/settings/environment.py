"""Reads configuration from environment variables as Kafka's images do: KAFKA_BROKER_ID sets
broker.id.

Rule: the prefix `KAFKA_` is removed, the rest becomes lower case, and `___`, `__` and `_` become
`-`, `_` and `.`. A variable by which another image sets a key, or whose name is almost a key, is
refused, because ignoring it could open a port that it was to protect. Variables of Java and of
Kubernetes are nobody's settings; all others that begin so are ignored, and the log names them.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from .foreign_keys import NEWER, REMOVED, explained
from .keys import KEYS, base_name, in_declared_case, key_named

PREFIX, BITNAMI = "KAFKA_", "KAFKA_CFG_"
OWN_NAMESPACES = ("audit.", "http.", "policy.", "topic.management.")
"""How keys begin that only this program has, so that no other one is meant by a name like them."""
JAVA_OPTIONS = "KAFKA_OPTS"
JAAS_FILE = "java.security.auth.login.config"
"""The property of Kafka's Java runtime that is a key here."""
PROPERTIES_OF_ZOOKEEPER: Mapping[str, str] = {
    "zookeeper.client.secure": "zookeeper.ssl.client.enable",
    "zookeeper.clientCnxnSocket": "zookeeper.clientCnxnSocket",
    "zookeeper.sasl.client": "zookeeper.sasl.client.jaas.config",
    "zookeeper.sasl.clientconfig": "zookeeper.sasl.client.jaas.config",
    "zookeeper.ssl.keyStore.location": "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keyStore.password": "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keyStore.type": "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.trustStore.location": "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.trustStore.password": "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.trustStore.type": "zookeeper.ssl.truststore.type",
    "zookeeper.ssl.hostnameVerification": "zookeeper.ssl.endpoint.identification.algorithm",
}
"""Properties of Java by which people protect Kafka's connection to ZooKeeper, and the keys here."""

_RUN = re.compile(r"___|__|_")
_MEANING = {"___": "-", "__": "_", "_": "."}
_OF_KUBERNETES = re.compile(
    r"_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]{1,63})?)\Z|_PORT_[0-9]{1,5}_[A-Z]{3,4}(?:_(?:PROTO|PORT|ADDR))?\Z"
)
_LINK = re.compile(r"(?:tcp|udp|sctp)://")
"""The value of a variable such as KAFKA_PORT, by which Kubernetes and Docker link services."""
_ADVERTISED = "set KAFKA_ADVERTISED_LISTENERS, such as PLAINTEXT://kafka:9092"
_KRAFT = "nodes keep their metadata in ZooKeeper; set KAFKA_ZOOKEEPER_CONNECT"
_NO_COMMANDS = "no command is run for a setting; set {}"
_USERS = (
    "set sasl.jaas.config for the mechanism of a listener, such as KAFKA_LISTENER_NAME_CLIENT_PLAIN_SASL_JAAS_CONFIG"
)
_SHARED_FILE = "the image keeps no secrets in files of its own; set {}"

MEANT: Mapping[str, str] = MappingProxyType(
    {
        # wurstmeister, and others that began then
        "KAFKA_ADVERTISED_HOST_NAME": _ADVERTISED,
        "KAFKA_ADVERTISED_HOST": _ADVERTISED,
        "KAFKA_ADVERTISED_PORT": _ADVERTISED,
        "KAFKA_ADVERTISED_PROTOCOL_NAME": _ADVERTISED,
        "KAFKA_HOST_NAME": "set KAFKA_LISTENERS",
        "KAFKA_PORT": "set KAFKA_LISTENERS",
        "KAFKA_PROTOCOL_NAME": "set KAFKA_LISTENERS",
        "KAFKA_CREATE_TOPICS": "no topics are made at the start; make them with minicontroller topics create",
        "KAFKA_BROKER_ID_COMMAND": _NO_COMMANDS.format("KAFKA_BROKER_ID"),
        # Bitnami
        "KAFKA_CLIENT_USERS": _USERS,
        "KAFKA_CLIENT_PASSWORDS": _USERS,
        "KAFKA_CLIENT_LISTENER_NAME": _USERS,
        "KAFKA_INTER_BROKER_USER": _USERS,
        "KAFKA_INTER_BROKER_PASSWORD": _USERS,
        "KAFKA_CONTROLLER_USER": _KRAFT,
        "KAFKA_CONTROLLER_PASSWORD": _KRAFT,
        "KAFKA_ENABLE_KRAFT": _KRAFT,
        "KAFKA_KRAFT_CLUSTER_ID": _KRAFT,
        "KAFKA_CLUSTER_ID": _KRAFT,
        "KAFKA_TLS_TYPE": "set KAFKA_SSL_KEYSTORE_TYPE and KAFKA_SSL_TRUSTSTORE_TYPE",
        "KAFKA_TLS_CLIENT_AUTH": "set KAFKA_SSL_CLIENT_AUTH",
        "KAFKA_TLS_KEYSTORE_FILE": "set KAFKA_SSL_KEYSTORE_LOCATION",
        "KAFKA_TLS_TRUSTSTORE_FILE": "set KAFKA_SSL_TRUSTSTORE_LOCATION",
        "KAFKA_TLS_INTER_BROKER_AUTH": "set ssl.client.auth for the listener of the nodes",
        "KAFKA_CERTIFICATE_PASSWORD": "set KAFKA_SSL_KEYSTORE_PASSWORD, KAFKA_SSL_KEY_PASSWORD and KAFKA_SSL_TRUSTSTORE_PASSWORD",
        "KAFKA_ZOOKEEPER_PROTOCOL": "set KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE, KAFKA_ZOOKEEPER_SASL_CLIENT_JAAS_CONFIG, or neither",
        "KAFKA_ZOOKEEPER_USER": "set KAFKA_ZOOKEEPER_SASL_CLIENT_JAAS_CONFIG",
        "KAFKA_ZOOKEEPER_PASSWORD": "set KAFKA_ZOOKEEPER_SASL_CLIENT_JAAS_CONFIG",
        "KAFKA_ZOOKEEPER_TLS_KEYSTORE_FILE": "set KAFKA_ZOOKEEPER_SSL_KEYSTORE_LOCATION",
        "KAFKA_ZOOKEEPER_TLS_KEYSTORE_PASSWORD": "set KAFKA_ZOOKEEPER_SSL_KEYSTORE_PASSWORD",
        "KAFKA_ZOOKEEPER_TLS_TRUSTSTORE_FILE": "set KAFKA_ZOOKEEPER_SSL_TRUSTSTORE_LOCATION",
        "KAFKA_ZOOKEEPER_TLS_TRUSTSTORE_PASSWORD": "set KAFKA_ZOOKEEPER_SSL_TRUSTSTORE_PASSWORD",
        "KAFKA_ZOOKEEPER_TLS_TYPE": "set KAFKA_ZOOKEEPER_SSL_KEYSTORE_TYPE",
        "KAFKA_ZOOKEEPER_TLS_VERIFY_HOSTNAME": "set KAFKA_ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM",
        # Confluent and Apache
        "KAFKA_SSL_KEYSTORE_FILENAME": _SHARED_FILE.format("KAFKA_SSL_KEYSTORE_LOCATION"),
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": _SHARED_FILE.format("KAFKA_SSL_KEYSTORE_PASSWORD"),
        "KAFKA_SSL_KEY_CREDENTIALS": _SHARED_FILE.format("KAFKA_SSL_KEY_PASSWORD"),
        "KAFKA_SSL_TRUSTSTORE_FILENAME": _SHARED_FILE.format("KAFKA_SSL_TRUSTSTORE_LOCATION"),
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": _SHARED_FILE.format("KAFKA_SSL_TRUSTSTORE_PASSWORD"),
        "KAFKA_ZOOKEEPER_SECURE": "set KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE",
    }
)
"""The advice that a start gives for each variable of another image that it refuses."""
OF_JAVA = (
    "KAFKA_*_OPTS",
    "KAFKA_OPTS",
    "KAFKA_*LOG4J*",
    "KAFKA_JMX_*",
    "KAFKA_DEBUG",
    "KAFKA_HOME",
    "KAFKA_VERSION",
    "KAFKA_URL",
    "KAFKA_EXTRA_FLAGS",
)
"""Patterns of variables about Kafka's Java and its installation, which a node has no use for."""


def key_of_variable(variable: str) -> str:
    """Return the key of a variable: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`."""
    name = _RUN.sub(lambda run: _MEANING[run[0]], variable.removeprefix(PREFIX).lower())
    return in_declared_case(name)


def variable_of_key(key: str) -> str:
    return PREFIX + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def settings_of(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (variable, key, value) for each variable that names a key."""
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            key = key_of_variable(variable)
            if key_named(key) is not None:
                yield variable, key, environ[variable]
    for name, value in _properties_of_java(environ):
        if name == JAAS_FILE:
            yield JAVA_OPTIONS, JAAS_FILE, value


def faults_of_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable that means to set something and does not."""
    for variable in _without_key(environ):
        instead = _instead_of(variable)
        if instead:
            yield f"environment variable {variable} is not read: {instead}"
    for name, _ in _properties_of_java(environ):
        if name in PROPERTIES_OF_ZOOKEEPER:
            key = PROPERTIES_OF_ZOOKEEPER[name]
            yield f"environment variable {JAVA_OPTIONS}: -D{name} is not read: set {key}, or {variable_of_key(key)}."


def doubts_about(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning that names the variables that could be meant for this node and are
    ignored.
    """
    ignored = [each for each in _without_key(environ) if not _instead_of(each) and not _is_of_java(each)]
    if ignored:
        yield f"Environment variables that name no key are ignored: {', '.join(ignored)}."


def _without_key(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables with Kafka's prefix that set no key and are not made by Kubernetes."""
    for variable in sorted(environ):
        is_link = _OF_KUBERNETES.search(variable) or _LINK.match(environ[variable])
        if variable.startswith(PREFIX) and not is_link and key_named(key_of_variable(variable)) is None:
            yield variable


def _is_of_java(variable: str) -> bool:
    return any(fnmatchcase(variable, pattern) for pattern in OF_JAVA)


def _instead_of(variable: str) -> str | None:
    """Return the end of a sentence about a variable that means to set something, or None if it does
    not.
    """
    if variable.startswith(BITNAMI):
        return _instead_of_bitnamis(variable)
    if variable in MEANT:
        return f"{MEANT[variable]}."
    key = key_of_variable(variable)
    if base_name(key) in NEWER or base_name(key) in REMOVED:
        return f"it means {key}{explained(key)}"
    likeness = 0.8 if key.startswith(OWN_NAMESPACES) else 0.9
    near = [] if _is_of_java(variable) else difflib.get_close_matches(key, KEYS, 1, likeness)
    return f"it means {key}, which is no key; did you mean {variable_of_key(near[0])}, {near[0]}?" if near else None


def _instead_of_bitnamis(variable: str) -> str:
    meant = PREFIX + variable.removeprefix(BITNAMI)
    key = key_of_variable(meant)
    if key_named(key) is not None:
        return f"set {meant}, which is {key}."
    return f"it means {key or 'nothing'}, and there is no such key{explained(key)}"


def _properties_of_java(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the properties that KAFKA_OPTS gives to Kafka's Java."""
    for option in environ.get(JAVA_OPTIONS, "").split():
        if option.startswith("-D"):
            name, _, value = option.removeprefix("-D").partition("=")
            yield name, value
