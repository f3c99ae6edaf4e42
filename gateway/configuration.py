"""The configuration of a gateway: options of the command, and keys in Kafka's names.

Keys that begin with `upstream.` are those of a client of the cluster, as `client/keys.py` lists
them: the gateway asks the cluster with them, and its connections to brokers have their TLS. The
keys of the listeners are those of a node.

Rule: all mistakes are reported at once, each in a sentence that names the file, the line and the
key, and has no secret. What would be without effect is a mistake.
"""

import difflib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ..client.configuration import PROTOCOLS as ALL_PROTOCOLS
from ..client.configuration import Address, ClientConfig, configured
from ..client.keys import FOLLOWED, is_followed_by_kafka_alone, is_known
from ..network.binding import EVERY_ADDRESS
from ..network.serving.mistakes import mistakes_of
from ..policies.loading import POLICY_KEY
from ..process.settings.keys import KEYS
from ..process.settings.loading import Setting, Written, config_from_settings, written_settings
from ..process.settings.node_config import NodeConfig
from ..process.settings.secret_files import is_open_to_all, sentence_of, warnings_of_configuration
from .identity.settings import (
    CONTROLLER,
    CONTROLLERS,
    IDENTITY,
    IdentitySettings,
    checks_of_users,
    is_of_clients,
    of_brokers,
    read_identity,
    without_protocol,
)
from .identity.settings import GATEWAY_KEYS as IDENTITY_KEYS
from .identity.settings import is_key as is_identity_key
from .patterns import NODE_ID, HostPattern, PortRange, parse_host, parse_ranges
from .written_keys import WrittenKeys

UPSTREAM = "upstream."
ADVERTISED_HOST, BEGIN_HOST = "advertised.host", "advertised.bootstrap.host"
ROUTE_BY, BROKER_PORTS = "route.by", "broker.ports"
PORT, SNI = "port", "sni"
NO_PORTS: tuple[PortRange, ...] = ()
SECURITY_PROTOCOL = "security.protocol"
PROTOCOLS = ("PLAINTEXT", "SSL")
"""The protocols where a login passes on to the broker, so that the listeners decide on nothing but
TLS.
"""
NODE_KEYS = frozenset(
    {
        "audit.dir",
        "audit.flush",
        "audit.flush.interval.ms",
        "audit.max.bytes",
        "audit.max.ms",
        "audit.queue.events",
        "connections.max.idle.ms",
        "log.format",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        *(key for key in KEYS if key.startswith(("http.", "policy.", "ssl."))),
        POLICY_KEY,
    }
)
"""The keys of a node that a gateway follows, too."""
GATEWAY_ID = "gateway.id"
OBSERVE = "observe"
ON_FAILURE = "on.failure"
PASS, REFUSE = "pass", "refuse"
METADATA_MAX_AGE = "metadata.max.age.ms"
DEFAULT_MAX_AGE_MS = 30_000
LEAST_MAX_AGE_MS = 100
GATEWAY_KEYS = frozenset(
    {
        ADVERTISED_HOST,
        BEGIN_HOST,
        BROKER_PORTS,
        GATEWAY_ID,
        METADATA_MAX_AGE,
        OBSERVE,
        ON_FAILURE,
        ROUTE_BY,
        SECURITY_PROTOCOL,
    }
)
RULES_FILES = "policy.rules.files"
JUDGING_KEYS = (RULES_FILES, POLICY_KEY, "audit.dir")
"""The keys by one of which requests are judged or recorded."""
BOOTSTRAP_SERVERS = "bootstrap.servers"
BEGIN = {
    UPSTREAM + BOOTSTRAP_SERVERS: "the option --upstream names the brokers for the bootstrap",
    CONTROLLER + BOOTSTRAP_SERVERS: f"{CONTROLLERS} names the controllers",
}
KNOWN = frozenset(
    {
        *GATEWAY_KEYS,
        *NODE_KEYS,
        *IDENTITY_KEYS,
        *(prefix + key for prefix in (UPSTREAM, CONTROLLER) for key in FOLLOWED if key != BOOTSTRAP_SERVERS),
    }
)
"""The keys that are meant when a name is none."""


class GatewayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gateway listens, and which cluster it stands for."""

    upstream: ClientConfig
    node: NodeConfig
    """The configuration of a node whose listener CLIENTS is like those of the gateway."""
    listen: Address
    """The address where clients begin. The listeners of the brokers take the ports after it, or
    free ones if its port is 0.
    """
    broker_host: HostPattern
    """The host that clients are given for each broker."""
    begin_host: HostPattern
    """The host where clients begin, as the ready line says it."""
    broker_ports: tuple[PortRange, ...] = ()
    """The ports that are fixed for ids of brokers; none for the next ones that are free."""
    by_name: bool = False
    """Whether all brokers share a port of TLS, and the name that a client calls tells which one it
    wants.
    """
    observes: bool = False
    """Whether requests are judged and recorded, and never refused."""
    passes_on_failure: bool = False
    """Whether requests for changes pass while they cannot be judged or recorded."""
    metadata_max_age_seconds: float = DEFAULT_MAX_AGE_MS / 1000
    """How often the whole cluster is read, for judgements that look beyond what a request names."""
    identity: IdentitySettings = IdentitySettings()
    warnings: tuple[str, ...] = ()
    """Sentences for the log about files with secrets that everybody can read."""


def load_gateway_config(
    text: str,
    file: str,
    settings: Sequence[str],
    *,
    upstream: str,
    listen: Address,
    rules: Sequence[str] = (),
    observes: bool = False,
    with_files: bool = False,
) -> GatewayConfig:
    """Read a properties file, whose text may be empty; `settings` (KEY=VALUE) override it, and
    `upstream` is the list of brokers to begin with. `rules` are rule files beside those of the
    file, and `observes` is the option of that name. `with_files` says that the files which keys
    name are read, too, as at a start. Raises ConfigurationError with all mistakes.
    """
    written = written_settings(text, file, settings)
    keys = WrittenKeys(written)
    for key in keys:
        _check_name(keys, key)
    _add_rules(keys, rules)
    observes = keys.one_of(OBSERVE, ("false", "true")) == "true" or observes
    passes = keys.one_of(ON_FAILURE, (REFUSE, PASS)) == PASS
    way_up = keys.read(partial(configured, of_brokers(keys), upstream, "--upstream"), None)
    identity = _identity(keys, with_files=with_files)
    protocol = _protocol(keys, has_logins=identity.is_own or not keys.are_certain(IDENTITY))
    for sentence in (
        *_without_judging(keys, observes=observes),
        *_without_tls(keys),
        *without_protocol(keys),
        *_of_names(keys),
    ):
        keys.note(sentence)
    by_name = keys.one_of(ROUTE_BY, (PORT, SNI)) == SNI
    brokers, begin = _hosts(keys, listen.host, by_name=by_name)
    node = _node(keys, protocol, refuses=not (observes or passes), has_logins=identity.is_own, with_files=with_files)
    ports = keys.read(partial(parse_ranges, BROKER_PORTS, keys.text(BROKER_PORTS)), NO_PORTS)
    age = keys.number(METADATA_MAX_AGE, DEFAULT_MAX_AGE_MS, LEAST_MAX_AGE_MS) / 1000
    keys.end()
    assert way_up is not None and node is not None, "one of the mistakes is theirs"
    return GatewayConfig(
        upstream=way_up,
        node=node,
        listen=listen,
        broker_host=brokers,
        begin_host=begin,
        broker_ports=ports,
        by_name=by_name,
        observes=observes,
        passes_on_failure=passes,
        metadata_max_age_seconds=age,
        identity=identity,
        warnings=(*written.warnings, *warnings_of_configuration(text, file), *_open_key_stores(keys)),
    )


def _open_key_stores(keys: WrittenKeys) -> Iterator[str]:
    """Yield a sentence for the key store of the connections to brokers if everybody can read it;
    those of the gateway's own listeners are among the warnings of `node`.
    """
    file = keys.text(f"{UPSTREAM}ssl.keystore.location")
    if file and is_open_to_all(Path(file)):
        yield sentence_of(file)


# ------------------------------------------------------------------ names of keys


def _check_name(keys: WrittenKeys, key: str) -> None:
    of_client = next((key.removeprefix(each) for each in (CONTROLLER, UPSTREAM) if key.startswith(each)), None)
    if of_client is None or key == CONTROLLERS:
        is_key = key in GATEWAY_KEYS | NODE_KEYS or is_identity_key(key)
    elif of_client == BOOTSTRAP_SERVERS:
        keys.note(f"{key} is not followed: {BEGIN[key]}.")
        return
    elif is_followed_by_kafka_alone(of_client):
        keys.note(f"{key} is not supported: leave it out.")
        return
    else:
        is_key = is_known(of_client)
    if not is_key:
        near = difflib.get_close_matches(key, KNOWN, 1)
        hint = f" Do you mean {near[0]}?" if near else ""
        keys.note(f"{key or '(empty)'} is no key of a gateway.{hint}")
        for each in near:
            keys.doubt(each)


def _add_rules(keys: WrittenKeys, rules: Sequence[str]) -> None:
    if not all(each.strip() for each in rules):
        keys.note("--rules names no file.")
    elif rules:
        named = [keys.text(RULES_FILES)] if RULES_FILES in keys else []
        keys.settings[RULES_FILES] = Setting(",".join([*named, *rules]), "--rules", 2)


# ------------------------------------------------------------------ values of keys


def _without_judging(keys: WrittenKeys, *, observes: bool) -> Iterator[str]:
    """Yield a sentence for what says how requests are judged, where none are."""
    if not any(keys.text(key) for key in JUDGING_KEYS):
        named = [key for key in (ON_FAILURE, METADATA_MAX_AGE) if key in keys]
        for key in [OBSERVE] * observes + named:
            yield (
                f"{key} is without effect: there are neither rules (--rules) nor a policy nor an audit log (audit.dir)."
            )


def _without_tls(keys: WrittenKeys) -> Iterator[str]:
    """Yield a sentence for each key that protects a connection which has no protection."""
    if keys.are_certain(SECURITY_PROTOCOL) and not _is_with_tls(keys):
        for key in sorted(key for key in keys if key.startswith("ssl.")):
            yield f"{key} is without effect: {SECURITY_PROTOCOL} says that listeners have no TLS."


def _is_with_tls(keys: WrittenKeys) -> bool:
    return keys.text(SECURITY_PROTOCOL).upper().endswith("SSL")


def _of_names(keys: WrittenKeys) -> Iterator[str]:
    """Yield a sentence for each key that does not fit names by which clients call brokers."""
    if keys.text(ROUTE_BY).lower() != SNI:
        return
    if keys.are_certain(SECURITY_PROTOCOL) and not _is_with_tls(keys):
        yield f"{ROUTE_BY}={SNI} needs {SECURITY_PROTOCOL}=SSL: only TLS sends the name that a client calls."
    if keys.text(BROKER_PORTS):
        yield f"{BROKER_PORTS} is not followed with {ROUTE_BY}={SNI}, where brokers share a port."


def _identity(keys: WrittenKeys, *, with_files: bool) -> IdentitySettings:
    identity = read_identity(keys)
    if with_files:
        for check in checks_of_users(identity):
            keys.read(check, None)
    return identity


def _protocol(keys: WrittenKeys, *, has_logins: bool) -> str:
    is_of_login = keys.text(SECURITY_PROTOCOL).upper() in ALL_PROTOCOLS
    hint = " The gateway relays logins to the broker." if is_of_login else ""
    return keys.one_of(SECURITY_PROTOCOL, ALL_PROTOCOLS if has_logins else PROTOCOLS, hint)


def _node(keys: WrittenKeys, protocol: str, *, refuses: bool, has_logins: bool, with_files: bool) -> NodeConfig | None:
    """Return the configuration of a node whose listener CLIENTS is that of the gateway; None if it
    has mistakes.
    """
    protocol = protocol if keys.are_certain(SECURITY_PROTOCOL, IDENTITY) else PROTOCOLS[0]
    made = {
        "broker.id": str(keys.number(GATEWAY_ID, 0, 0)),
        "broker.id.generation.enable": "false",
        "listeners": "CLIENTS://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": f"CLIENTS:{protocol},INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "zookeeper.connect": "memory",
    }
    if keys.text("audit.dir"):
        made["audit.on.failure"] = "refuse" if refuses else "drop"
    own = [
        (key, setting)
        for key, setting in keys.settings.items()
        if keys.are_certain(key) and (key in NODE_KEYS or (has_logins and is_of_clients(key)))
    ]
    written = Written([*((key, Setting(text, "", -1)) for key, text in made.items()), *own], [], [])
    return keys.read(partial(config_from_settings, written, mistakes_of if with_files else None), None)


def _hosts(keys: WrittenKeys, listen: str, *, by_name: bool) -> tuple[HostPattern, HostPattern]:
    """Return the host of each broker, and the one where clients begin."""
    brokers, begin = (
        keys.read(partial(parse_host, key, keys.text(key), with_port=by_name), HostPattern(""))
        for key in (ADVERTISED_HOST, BEGIN_HOST)
    )
    if begin.differs:
        keys.note(f"{BEGIN_HOST} is one host for all brokers, without {NODE_ID}.")
    if not keys.are_certain(ADVERTISED_HOST, BEGIN_HOST, ROUTE_BY):
        return brokers, begin
    if by_name:
        for sentence in _of_named_hosts(brokers, begin):
            keys.note(sentence)
        return brokers, begin
    brokers = brokers if brokers.text else HostPattern(listen)
    if not begin.text:
        begin = HostPattern(listen) if brokers.differs else brokers
    for key, host in ((ADVERTISED_HOST, brokers), (BEGIN_HOST, begin)):
        if host.text in EVERY_ADDRESS:
            keys.note(f"{key} is missing: clients cannot connect to {listen}, so name the host that clients get.")
            break
    return brokers, begin


def _of_named_hosts(brokers: HostPattern, begin: HostPattern) -> Iterator[str]:
    if not brokers.differs or not begin.text:
        text = f"{ADVERTISED_HOST} with {NODE_ID}, such as broker-{NODE_ID}.kafka.example.com, and {BEGIN_HOST}"
        yield f"{ROUTE_BY}={SNI} needs {text}."
    elif brokers.broker_called(begin.text) is not None:
        yield f"{BEGIN_HOST} is also the name of a broker by {ADVERTISED_HOST}."
