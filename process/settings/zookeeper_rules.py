"""Finds faults in how a node's configuration protects its connection to ZooKeeper.

Rule: whatever would be spoken or written with less protection than the configuration asks for ends
the start. The checks open no file; `loading.py` has read the JAAS file.
"""

from collections.abc import Iterator

from .environment import JAAS_FILE
from .jaas import AT_ZOOKEEPER, JaasConfig, JaasError, parse_jaas
from .node_config import NodeConfig
from .refused_keys import Fault

ENABLE, SOCKET = "zookeeper.ssl.client.enable", "zookeeper.clientCnxnSocket"
SET_ACL = "zookeeper.set.acl"
JAAS = "zookeeper.sasl.client.jaas.config"
KEYSTORE, TRUSTSTORE = "zookeeper.ssl.keystore.location", "zookeeper.ssl.truststore.location"
PROTOCOL, PROTOCOLS = "zookeeper.ssl.protocol", "zookeeper.ssl.enabled.protocols"
SUITES = "zookeeper.ssl.cipher.suites"
NAME_CHECK = "zookeeper.ssl.endpoint.identification.algorithm"
MEMORY = "memory"
"""The zookeeper.connect of nodes whose store is in this process."""

NETTY = "org.apache.zookeeper.ClientCnxnSocketNetty"
SOCKETS = (NETTY, "org.apache.zookeeper.ClientCnxnSocketNIO")
"""Kafka's classes; only the first of them speaks TLS there."""
LOGIN_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
SPOKEN = ("TLSv1.2", "TLSv1.3")
ALL_PROTOCOLS = ("TLS", "SSL")
"""Java's names for whatever is spoken."""


def faults_of_zookeeper(config: NodeConfig) -> Iterator[Fault]:
    yield from _tls(config)
    yield from _identity(config)


def login_of(jaas: JaasConfig) -> tuple[str, str]:
    """Return the user and the password of a login at ZooKeeper. Raises JaasError."""
    if jaas.login_module != LOGIN_MODULE:
        raise JaasError(f"the login module at ZooKeeper must be {LOGIN_MODULE}")
    if not jaas.username or not jaas.password:
        raise JaasError(f"{LOGIN_MODULE} needs the options username and password")
    return jaas.username, jaas.password


def login_of_section(modules: tuple[JaasConfig, ...]) -> tuple[str, str]:
    """Return the user and the password in the section of a JAAS file. Raises JaasError."""
    if len(modules) != 1:
        raise JaasError(f"exactly one login module belongs here, and there are {len(modules)}")
    return login_of(modules[0])


def tls_versions(config: NodeConfig) -> tuple[str, ...]:
    """Return the names of the TLS versions that may be negotiated, by Kafka's defaults."""
    enabled = config.strings(PROTOCOLS) if config.value(PROTOCOLS) is not None else ()
    return enabled or (SPOKEN if config.string(PROTOCOL) in ALL_PROTOCOLS else (config.string(PROTOCOL),))


def _tls(config: NodeConfig) -> Iterator[Fault]:
    socket = config.string(SOCKET)
    if socket and socket not in SOCKETS:
        yield SOCKET, f"{SOCKET} is not served: it must be {' or '.join(SOCKETS)}, or be left out."
    if not config.boolean(ENABLE):
        for key in (KEYSTORE, TRUSTSTORE):
            if config.string(key):
                yield key, f"{key} has no effect without {ENABLE}=true: nothing would be encrypted."
        return
    if config.string("zookeeper.connect") == MEMORY:
        yield ENABLE, f"{ENABLE} protects nothing where the store is in this process."
    if socket == SOCKETS[1]:
        yield SOCKET, f"{SOCKET}={socket} speaks no TLS in Kafka: with {ENABLE}=true it must be {NETTY}."
    if not set(SPOKEN) & set(tls_versions(config)):
        key = PROTOCOLS if config.value(PROTOCOLS) else PROTOCOL
        yield key, f"{key} allows neither TLSv1.2 nor TLSv1.3, and nothing older is spoken."
    if config.string(NAME_CHECK).lower() not in ("", "https"):
        yield NAME_CHECK, f"{NAME_CHECK} must be https, or empty for certificates of any name."


def _identity(config: NodeConfig) -> Iterator[Fault]:
    if config.string(JAAS):
        try:
            login_of(parse_jaas(config.string(JAAS)))
        except JaasError as error:
            yield JAAS, f"{JAAS}: {error}."
    if not config.string(JAAS) and AT_ZOOKEEPER in config.jaas_sections:
        try:
            login_of_section(config.jaas_sections[AT_ZOOKEEPER])
        except JaasError as error:
            yield JAAS_FILE, f"{JAAS_FILE}: section {AT_ZOOKEEPER}: {error}."
    if not config.boolean(SET_ACL):
        return
    if config.string("zookeeper.connect") == MEMORY:
        yield SET_ACL, f"{SET_ACL} protects nothing where the store is in this process."
    has_certificate = config.boolean(ENABLE) and config.string(KEYSTORE)
    if not (has_certificate or config.string(JAAS) or AT_ZOOKEEPER in config.jaas_sections):
        yield (
            SET_ACL,
            (
                f"{SET_ACL}=true needs an identity at ZooKeeper, which owns what is written: a certificate "
                f"({ENABLE}=true with {KEYSTORE}), or a login ({JAAS}, or the section Client of {JAAS_FILE})."
            ),
        )
