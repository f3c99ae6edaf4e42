"""The TLS of the listeners of a node, and of its connections to other nodes, from the `ssl.*` keys
of its configuration.

Rule: a context never changes. When a store changes, another context takes its place: open
connections stay as they are, and new ones get the new context. What cannot be used changes nothing,
and the log says why.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import trio

from ..clock import now
from ..cluster.errors import ConfigurationError, Mistakes
from ..process.settings.listeners import ConfiguredListener
from ..process.settings.node_config import NodeConfig
from ..process.settings.watched_files import LOOK_SECONDS, Contents, WatchedFiles
from .certificates import MappingFault, PrincipalMapper, distinguished_name, ensure_same_owner
from .key_stores import MAX_STORE_BYTES, KeyStore
from .principal import user_principal
from .tls_settings import CLIENT_AUTH, KEYS, KEYSTORE, TRUSTSTORE, TlsFault, make_client_context, make_server_context

log = logging.getLogger("minicontroller.tls")

RULES = "ssl.principal.mapping.rules"
DN_CHANGES, SAN_CHANGES = "ssl.allow.dn.changes", "ssl.allow.san.changes"
FILES = (KEYSTORE, TRUSTSTORE)
SOON_SECONDS = 30 * 86_400
"""A certificate that expires within this time is a warning in the log."""
MAX_FLIGHTS = 10
"""How often either end of a handshake has its turn at most."""
REMIND_SECONDS = 86_400.0

Values = Mapping[str, str]
"""The texts of `ssl.*` as they hold for one listener, by key without a prefix."""
Files = Mapping[str, Path]


class Contexts(msgspec.Struct, frozen=True):
    """The TLS of a listener by one state of its stores."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    """The context with which this node connects to other nodes at such a listener."""
    mapper: PrincipalMapper
    shown: KeyStore
    """The private key and the certificate of this node."""

    @property
    def expires(self) -> float:
        """When the certificate of this node expires, in seconds since 1970."""
        return self.shown.certificate.not_valid_after_utc.timestamp()


class ListenerTls:
    """The TLS of one listener: `contexts` are those in force."""

    def __init__(self, config: NodeConfig, listener: ConfiguredListener, *, between_nodes: bool = False) -> None:
        """Read the stores of a listener. `between_nodes` tells that nodes connect to each other by
        them, so that they have to trust their own certificate, as in Kafka. Raises
        ConfigurationError.
        """
        self.name = listener.name
        self.failures = 0
        """How often changed stores could not be used."""
        self._listener = listener
        self._between_nodes = between_nodes
        self._values = tls_values(config, listener)
        self._files = _watched(self._values)
        self.contexts = self._made(self._values, _read(self._files, self._values))

    def server_context(self) -> ssl.SSLContext:
        return self.contexts.server

    def client_context(self) -> ssl.SSLContext:
        return self.contexts.client

    def principal_of(self, certificate: bytes) -> str:
        """Return the principal of a client that shows this certificate, in DER. Raises ValueError
        if it names nobody.
        """
        name = self.contexts.mapper.name_of(distinguished_name(certificate))
        if not name:
            raise ValueError("its certificate names nobody: ssl.principal.mapping.rules leave nothing of the subject")
        return user_principal(name)

    def seconds_left(self) -> float:
        """Return for how many seconds the certificate of this node is valid; negative if it has
        expired.
        """
        return self.contexts.expires - now()

    # ------------------------------------------------------------------ changes

    def check(self, config: NodeConfig) -> None:
        """Raise ConfigurationError if the listener could not follow this configuration. Blocks."""
        values = tls_values(config, self._listener)
        if values != self._values:
            contexts = self._made(values, _read(_watched(values), values))
            ensure_allowed(config, self._listener, self.contexts, contexts)

    async def follow(self, current: Callable[[], NodeConfig]) -> None:
        """Follow the files of the stores, and which files those are, until cancelled."""
        reminded = -REMIND_SECONDS
        while True:
            if trio.current_time() - reminded >= REMIND_SECONDS:
                self._warn_of_expiry()
                reminded = trio.current_time()
            await trio.sleep(LOOK_SECONDS)
            if await self._look(current()):
                reminded = -REMIND_SECONDS

    async def _look(self, config: NodeConfig) -> bool:
        """Return whether other contexts are in force since the last look."""
        values = tls_values(config, self._listener)
        if values == self._values:
            contents = await self._files.look()
        else:
            self._values, self._files = values, _watched(values)
            contents = await trio.to_thread.run_sync(self._files.read)
        if contents is None:
            return False
        try:
            contexts = self._made(values, by_key(contents, values))
            ensure_allowed(config, self._listener, self.contexts, contexts)
        except ConfigurationError as error:
            self.failures += 1
            log.warning("%s The stores that were read before stay in force.", error)
            return False
        self.contexts = contexts
        log.info("listener %s uses the stores as they are now; open connections stay", self.name)
        return True

    def _made(self, values: Values, contents: Mapping[str, bytes]) -> Contexts:
        contexts = contexts_of(self.name, values, contents)
        if self._between_nodes:
            ensure_own_trust(self.name, contexts)
        return contexts

    def _warn_of_expiry(self) -> None:
        left = self.seconds_left()
        if left <= 0:
            log.error("the certificate of listener %s has expired: clients refuse it", self.name)
        elif left <= SOON_SECONDS:
            log.warning("the certificate of listener %s expires in %d days", self.name, left // 86_400)


def tls_values(config: NodeConfig, listener: ConfiguredListener) -> Values:
    """Return the texts of `ssl.*` as they hold for a listener."""
    names = {key: config.of_listener(listener.name, key) for key in KEYS}
    values = {key: (config.text(name) or "").strip() for key, name in names.items()}
    values[RULES] = config.string(config.of_listener(listener.name, RULES))
    if listener.needs_sasl and names[CLIENT_AUTH] == CLIENT_AUTH:
        values[CLIENT_AUTH] = "none"  # with SASL only the listener's own key asks for certificates (KIP-684)
    return values


def contexts_of(listener: str, values: Values, contents: Mapping[str, bytes]) -> Contexts:
    """Make the contexts of a listener of the contents of its files, by key. Raises
    ConfigurationError.
    """
    try:
        server, shown = make_server_context(values.__getitem__, contents.__getitem__)
        client = make_client_context(values.__getitem__, contents.__getitem__)
    except TlsFault as fault:
        raise ConfigurationError(f"Listener {listener}: {fault.key} {fault}.") from None
    return Contexts(server, client, _mapper(listener, values[RULES]), shown)


def ensure_allowed(config: NodeConfig, listener: ConfiguredListener, before: Contexts, after: Contexts) -> None:
    """Raise ConfigurationError if a listener would show the certificate of another owner, unless
    the configuration allows that.
    """
    ensure_same_owner(
        before.shown.certificate,
        after.shown.certificate,
        other_name=config.boolean(config.of_listener(listener.name, DN_CHANGES)),
        fewer_names=config.boolean(config.of_listener(listener.name, SAN_CHANGES)),
    )


def ensure_own_trust(listener: str, contexts: Contexts) -> None:
    """Raise ConfigurationError if a node with these stores could not connect to a node with the
    same ones. Names are not compared, since all nodes may share a configuration.
    """
    names_are_checked = contexts.client.check_hostname
    contexts.client.check_hostname = False
    try:
        _shake_hands(contexts)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason
        raise ConfigurationError(
            f"Listener {listener}: nodes could not connect to each other, because {TRUSTSTORE} does not trust "
            f"the certificate in {KEYSTORE}, or it is not valid: {why}."
        ) from None
    finally:
        contexts.client.check_hostname = names_are_checked


def _shake_hands(contexts: Contexts) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = contexts.client.wrap_bio(to_client, to_server)
    server = contexts.server.wrap_bio(to_server, to_client, server_side=True)
    unfinished = [client, server]
    for _ in range(MAX_FLIGHTS):
        for end in list(unfinished):
            try:
                end.do_handshake()
                unfinished.remove(end)
            except ssl.SSLWantReadError:
                continue


def _watched(values: Values) -> WatchedFiles:
    return WatchedFiles([Path(values[key]) for key in FILES if values[key]], max_bytes=MAX_STORE_BYTES)


def _read(files: WatchedFiles, values: Values) -> Mapping[str, bytes]:
    return by_key(files.read(), values)


def by_key(contents: Contents, values: Values) -> Mapping[str, bytes]:
    """Return contents by the key that names their file. Raises ConfigurationError with all
    mistakes.
    """
    found = {}
    mistakes = Mistakes()
    for key, content in zip((key for key in FILES if values[key]), contents, strict=True):
        if content.data is None:
            mistakes.note(f"{key} names a file that cannot be read: {content.path}: {content.fault}.")
        elif len(content.data) > MAX_STORE_BYTES:
            mistakes.note(f"{key} names a file of more than {MAX_STORE_BYTES} bytes: {content.path}.")
        else:
            found[key] = content.data
    mistakes.end()
    return found


def _mapper(listener: str, rules: str) -> PrincipalMapper:
    try:
        return PrincipalMapper(rules)
    except MappingFault as fault:
        raise ConfigurationError(f"Listener {listener}: {RULES} {fault}.") from None
