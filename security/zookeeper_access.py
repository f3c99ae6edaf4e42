"""How a node introduces itself to ZooKeeper: TLS, the login by SASL, and the access lists of what
it writes.

Rule: whatever the configuration asks for is in the result, or a `ConfigurationError` ends the
start. As in Kafka, if znodes are protected (`zookeeper.set.acl`), their creator has all rights and
everybody may read, except that nobody else may read credentials. A process that shares the cluster
must authenticate to ZooKeeper as the same identity.
"""

import contextlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ..cluster.errors import ConfigurationError
from ..cluster.znodes.membership import MEMBERSHIP
from ..process.settings.jaas import AT_ZOOKEEPER, parse_jaas
from ..process.settings.node_config import NodeConfig
from ..process.settings.zookeeper_rules import (
    ENABLE,
    JAAS,
    KEYSTORE,
    NAME_CHECK,
    SET_ACL,
    SUITES,
    TRUSTSTORE,
    login_of,
    login_of_section,
    tls_versions,
)
from ..store.digest_md5 import DigestLogin
from ..store.jute import ALL, OPEN, READ, encode_access, open_to_all
from .tls_options import set_cipher_suites

CREATOR_AND_READERS = encode_access([(ALL, "auth", ""), (READ, "world", "anyone")])
CREATOR_ONLY = encode_access([(ALL, "auth", "")])

OPEN_ROOT = "/consumers"
"""Old consumers write their own znodes below this path."""
WITH_CREDENTIALS = ("/config/users", "/config/brokers", "/delegation_token/tokens", MEMBERSHIP)


def protected(path: str) -> bytes:
    """Return the encoded access list of a new znode at `path`, which is without the chroot."""
    if path == OPEN_ROOT:
        return OPEN
    return CREATOR_ONLY if path.startswith(WITH_CREDENTIALS) else CREATOR_AND_READERS


VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class ZooKeeperAccess(msgspec.Struct, frozen=True):
    tls: ssl.SSLContext | None
    login: DigestLogin | None
    access: Callable[[str], bytes]
    """The encoded access list of a new znode by its path."""


def zookeeper_access(config: NodeConfig) -> ZooKeeperAccess:
    """Make a node's access from its configuration. Raises ConfigurationError."""
    return ZooKeeperAccess(
        tls=_tls(config) if config.boolean(ENABLE) else None,
        login=_login(config),
        access=protected if config.boolean(SET_ACL) else open_to_all,
    )


def _tls(config: NodeConfig) -> ssl.SSLContext:
    from .key_stores import load_keystore, load_truststore  # loads a library that nodes without TLS do not need

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(config.string(NAME_CHECK))
    versions = [VERSIONS[name] for name in tls_versions(config) if name in VERSIONS]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    with _faults_of(SUITES):
        set_cipher_suites(context, config.strings(SUITES) if config.value(SUITES) is not None else ())
    trusted, shown = config.string(TRUSTSTORE), config.string(KEYSTORE)
    with _faults_of(TRUSTSTORE):
        if trusted:
            password = config.string("zookeeper.ssl.truststore.password")
            load_truststore(context, Path(trusted), password, config.string("zookeeper.ssl.truststore.type"))
        else:
            context.load_default_certs()
    with _faults_of(KEYSTORE):
        if shown:
            password = config.string("zookeeper.ssl.keystore.password")
            load_keystore(context, Path(shown), password, config.string("zookeeper.ssl.keystore.type"))
    return context


@contextlib.contextmanager
def _faults_of(key: str) -> Iterator[None]:
    from .key_stores import KeyStoreError

    try:
        yield
    except (KeyStoreError, ValueError) as error:
        raise ConfigurationError(f"{key} {error}.") from None


def _login(config: NodeConfig) -> DigestLogin | None:
    if config.string(JAAS):
        return DigestLogin(*login_of(parse_jaas(config.string(JAAS))))
    modules = config.jaas_sections.get(AT_ZOOKEEPER)
    return None if modules is None else DigestLogin(*login_of_section(modules))
