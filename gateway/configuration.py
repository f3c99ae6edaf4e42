"""The configuration of a gateway: options of the command, and keys in Kafka's names.

Keys that begin with `upstream.` are those of a client of the cluster, as `client/keys.py` lists
them: the gateway asks the cluster with them, and its connections to brokers have their TLS. The
keys of the listeners are those of a node.

Rule: a mistake is a sentence that names the file, the line and the key, and never the value.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ..client.configuration import PROTOCOLS as ALL_PROTOCOLS
from ..client.configuration import Address, ClientConfig, configure, parse_addresses
from ..controller.config.keys import KEYS
from ..controller.config.loading import config_from_mapping
from ..controller.config.node_config import NodeConfig
from ..controller.config.secret_files import is_open_to_all, sentence_of, warnings_of_configuration
from ..controller.errors import ConfigurationError
from ..controller.network.binding import EVERY_ADDRESS
from ..policies.configs.values import java_int
from ..policies.loading import POLICY_KEY
from ..text.properties import PropertiesError, Property, parse_properties
from .identity.settings import GATEWAY_KEYS as IDENTITY_KEYS
from .identity.settings import IdentitySettings, is_of_clients, read_identity
from .identity.settings import is_key as is_identity_key
from .patterns import NODE_ID, HostPattern, PortRange, parse_host, parse_ranges

UPSTREAM = "upstream."
ADVERTISED_HOST, BEGIN_HOST = "advertised.host", "advertised.bootstrap.host"
ROUTE_BY, BROKER_PORTS = "route.by", "broker.ports"
PORT, SNI = "port", "sni"
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
) -> GatewayConfig:
    """Read a properties file, whose text may be empty; `settings` (KEY=VALUE) override it, and
    `upstream` is the list of brokers to begin with. `rules` are rule files beside those of the
    file, and `observes` is the option of that name. Raises ConfigurationError.
    """
    try:
        entries = dict(parse_properties(text, file).entries)
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None
    for setting in settings:
        key, _, value = setting.partition("=")
        entries[key.strip()] = Property(key.strip(), value.strip(), 0)
    for key, entry in entries.items():
        _check_key(key, f"{file}, line {entry.line}" if entry.line else f"--set {key}")
    if not all(each.strip() for each in rules):
        raise ConfigurationError("--rules names no file.")
    if rules:
        named = [entries[RULES_FILES].value] if RULES_FILES in entries else []
        entries[RULES_FILES] = Property(RULES_FILES, ",".join([*named, *rules]), 0)
    observes = observes or _one_of(entries, OBSERVE, ("false", "true")) == "true"
    passes = _one_of(entries, ON_FAILURE, (REFUSE, PASS)) == PASS
    if not upstream.strip(" ,"):
        raise ConfigurationError("--upstream is empty: it lists brokers as HOST:PORT, separated by commas.")
    parse_addresses(upstream)  # so that a mistake is not told of a key that was not written
    _check_effect(entries, observes=observes)
    identity = read_identity({key: entry.value for key, entry in entries.items()}, _of_upstream(entries))
    by_name = _by_name(entries)
    broker_host, begin_host = _hosts(entries, listen.host, by_name=by_name)
    return GatewayConfig(
        upstream=_upstream(entries, upstream),
        node=_node(entries, refuses=not (observes or passes), has_logins=identity.is_own),
        listen=listen,
        broker_host=broker_host,
        begin_host=begin_host,
        broker_ports=parse_ranges(BROKER_PORTS, _text(entries, BROKER_PORTS)),
        by_name=by_name,
        observes=observes,
        passes_on_failure=passes,
        metadata_max_age_seconds=_number(entries, METADATA_MAX_AGE, DEFAULT_MAX_AGE_MS, LEAST_MAX_AGE_MS) / 1000,
        identity=identity,
        warnings=(*warnings_of_configuration(text, file), *_open_key_stores(entries)),
    )


def _open_key_stores(entries: Mapping[str, Property]) -> Iterator[str]:
    """Yield a sentence for the key store of the connections to brokers if everybody can read it;
    those of the gateway's own listeners are among the warnings of `node`.
    """
    file = _of_upstream(entries).get("ssl.keystore.location", "")
    if file and is_open_to_all(Path(file)):
        yield sentence_of(file)


def _check_effect(entries: Mapping[str, Property], *, observes: bool) -> None:
    """Raise ConfigurationError for what would be without effect, though it protects something."""
    if not any(_text(entries, key) for key in JUDGING_KEYS):
        named = [key for key in (ON_FAILURE, METADATA_MAX_AGE) if key in entries]
        for key in [OBSERVE] * observes + named:
            raise ConfigurationError(
                f"{key} is without effect: there are neither rules (--rules) nor a policy nor an audit log (audit.dir)."
            )
    if not _text(entries, SECURITY_PROTOCOL).upper().endswith("SSL"):
        for key in sorted(key for key in entries if key.startswith("ssl.")):
            raise ConfigurationError(f"{key} is without effect: {SECURITY_PROTOCOL} says that listeners have no TLS.")


def _one_of(entries: Mapping[str, Property], key: str, values: Sequence[str]) -> str:
    """Return the value of a key, or the first of `values`. Raises ConfigurationError."""
    value = entries[key].value.strip().lower() if key in entries else values[0]
    if value not in values:
        raise ConfigurationError(f"{key} must be one of {', '.join(values)}.")
    return value


def _number(entries: Mapping[str, Property], key: str, default: int, least: int) -> int:
    """Return the value of a key. Raises ConfigurationError."""
    text = entries[key].value.strip() if key in entries else str(default)
    number = java_int(text)
    if number is None or number < least:
        raise ConfigurationError(f"{key} must be a whole number from {least} on.")
    return number


def _check_key(key: str, place: str) -> None:
    if key.startswith(UPSTREAM):
        if key == UPSTREAM + BOOTSTRAP_SERVERS:
            raise ConfigurationError(f"{place}: the brokers to begin with are the option --upstream.")
        return
    known = GATEWAY_KEYS | NODE_KEYS
    if key not in known and not is_identity_key(key):
        near = difflib.get_close_matches(key, known | IDENTITY_KEYS, 1)
        hint = f" Do you mean {near[0]}?" if near else ""
        raise ConfigurationError(f"{place}: {key} is no key of a gateway.{hint}")


def _upstream(entries: Mapping[str, Property], servers: str) -> ClientConfig:
    return configure({**_of_upstream(entries), BOOTSTRAP_SERVERS: servers})


def _of_upstream(entries: Mapping[str, Property]) -> dict[str, str]:
    """Return the keys of connections to brokers, without their beginning."""
    return {
        key.removeprefix(UPSTREAM): entry.value
        for key, entry in entries.items()
        if key.startswith(UPSTREAM) and not is_identity_key(key)
    }


def _node(entries: Mapping[str, Property], *, refuses: bool, has_logins: bool) -> NodeConfig:
    protocol = _text(entries, SECURITY_PROTOCOL).upper() or "PLAINTEXT"
    allowed = ALL_PROTOCOLS if has_logins else PROTOCOLS
    if protocol not in allowed:
        hint = " A login passes on to the broker." if protocol in ALL_PROTOCOLS else ""
        raise ConfigurationError(f"{SECURITY_PROTOCOL} must be one of {', '.join(allowed)}.{hint}")
    own = {
        key: entry.value for key, entry in entries.items() if key in NODE_KEYS or (has_logins and is_of_clients(key))
    }
    return config_from_mapping(
        {
            "broker.id": str(_number(entries, GATEWAY_ID, 0, 0)),
            "audit.on.failure": "refuse" if refuses else "drop",
            "listeners": "CLIENTS://127.0.0.1:0,INTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": f"CLIENTS:{protocol},INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": "memory",
            **own,
        }
    )


def _by_name(entries: Mapping[str, Property]) -> bool:
    by = _text(entries, ROUTE_BY) or PORT
    if by not in (PORT, SNI):
        raise ConfigurationError(f"{ROUTE_BY} must be one of {PORT}, {SNI}.")
    if by == SNI and not _text(entries, SECURITY_PROTOCOL).upper().endswith("SSL"):
        raise ConfigurationError(
            f"{ROUTE_BY}={SNI} needs {SECURITY_PROTOCOL}=SSL: TLS tells the name that a client calls."
        )
    if by == SNI and _text(entries, BROKER_PORTS):
        raise ConfigurationError(f"{BROKER_PORTS} is not followed with {ROUTE_BY}={SNI}, where brokers share a port.")
    return by == SNI


def _hosts(entries: Mapping[str, Property], listen: str, *, by_name: bool) -> tuple[HostPattern, HostPattern]:
    """Return the host of each broker, and the one where clients begin."""
    brokers = parse_host(ADVERTISED_HOST, _text(entries, ADVERTISED_HOST), with_port=by_name)
    begin = parse_host(BEGIN_HOST, _text(entries, BEGIN_HOST), with_port=by_name)
    if begin.differs:
        raise ConfigurationError(f"{BEGIN_HOST} is one host for all brokers, without {NODE_ID}.")
    if by_name:
        if not brokers.differs or not begin.text:
            text = f"{ADVERTISED_HOST} with {NODE_ID}, such as broker-{NODE_ID}.kafka.example.com, and {BEGIN_HOST}"
            raise ConfigurationError(f"{ROUTE_BY}={SNI} needs {text}.")
        if brokers.broker_called(begin.text) is not None:
            raise ConfigurationError(f"{BEGIN_HOST} is the name of a broker by {ADVERTISED_HOST}, too.")
        return brokers, begin
    brokers = brokers if brokers.text else HostPattern(listen)
    if not begin.text:
        begin = HostPattern(listen) if brokers.differs else brokers
    for key, host in ((ADVERTISED_HOST, brokers), (BEGIN_HOST, begin)):
        if host.text in EVERY_ADDRESS:
            raise ConfigurationError(
                f"{key} is missing: clients cannot connect to {listen}, so name the host that they are given."
            )
    return brokers, begin


def _text(entries: Mapping[str, Property], key: str) -> str:
    return entries[key].value.strip() if key in entries else ""
