"""Finds keys of a node's configuration whose values contradict each other.

Rule: each check yields (key, sentence) for every mistake and does not know where the value was
written. Kafka makes the same checks at startup, except that a TopicManagementPolicy excludes both
older policies (KIP-201).
"""

from collections.abc import Iterator, Mapping

from .jaas import JaasError, parse_jaas
from .keys import KEYS, LISTENER_MECHANISM_KEYS, listener_of
from .listeners import EVERY_IPV6_ADDRESS, ListenerFault, parse_protocol_map
from .node_config import NodeConfig
from .refused_keys import Fault, faults_of_keys
from .zookeeper_rules import faults_of_zookeeper

JAAS_KEY = LISTENER_MECHANISM_KEYS[0]
POLICY_KEY = "topic.management.policy.class.name"
AUTHORIZER_KEY, SUPER_USERS_KEY = "authorizer.class.name", "super.users"
OLDER_POLICY_KEYS = ("create.topic.policy.class.name", "alter.config.policy.class.name")
RULES_KEY = "policy.rules.files"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "audit.": ("audit.dir",),
    "http.": ("http.listen",),
    "policy.": (RULES_KEY, POLICY_KEY),
    "topic.management.policy.config.": (POLICY_KEY,),
}
"""How keys begin that have an effect only with one of some others."""
LEAST_SESSION_MS = 1_000
"""The shortest session timeout. ZooKeeper grants sessions of at least two ticks, so a client with a
shorter timeout never connects.
"""
HAS_TO_FIT = {
    "inter.broker.listener.name": ("listeners", "advertised.listeners", "listener.security.protocol.map"),
    "control.plane.listener.name": ("listeners", "advertised.listeners"),
    "sasl.mechanism.inter.broker.protocol": ("sasl.enabled.mechanisms",),
}
"""For each key, the other keys that restrict its value."""


def faults_of(config: NodeConfig) -> list[Fault]:
    return [
        *faults_of_keys(config.static),
        *_policies(config),
        *_authorization(config),
        *_identity(config),
        *faulty_durations(config),
        *_jaas(config),
        *faulty_connections(config),
        *_request_sizes(config),
        *_log_dirs(config),
        *_listeners(config),
        *faults_of_zookeeper(config),
    ]


def _policies(config: NodeConfig) -> Iterator[Fault]:
    if config.string(POLICY_KEY):
        for key in OLDER_POLICY_KEYS:
            if config.string(key):
                yield key, f"{key} and {POLICY_KEY} exclude each other: the second judges all that the first does."


def _authorization(config: NodeConfig) -> Iterator[Fault]:
    try:
        super_users(config.string(SUPER_USERS_KEY))
    except ValueError as error:
        yield SUPER_USERS_KEY, f"{SUPER_USERS_KEY}: {error}."


def doubts_of(config: NodeConfig) -> Iterator[Fault]:
    """Yield (key, sentence) for settings that are valid, and may not mean what their author
    believes.
    """
    if not config.string(AUTHORIZER_KEY):
        for key in (SUPER_USERS_KEY, "allow.everyone.if.no.acl.found"):
            if key in config.static:
                yield key, f"{key} has no effect without {AUTHORIZER_KEY}: everybody may do everything."
    for key in config.static:
        needed = next((keys for prefix, keys in NEEDED.items() if key.startswith(prefix)), ())
        if needed and key not in needed and not any(config.value(each) for each in needed):
            yield key, f"{key} has no effect without {' or '.join(needed)}."
    names = {listener.name.lower() for listener in config.listeners}
    for key in config.static:
        if listener_of(key) not in {None, *names}:
            yield key, f"{key} has no effect while listeners has only {', '.join(sorted(names)).upper()}."
    key = "advertised.listeners" if config.string("advertised.listeners") else "listeners"
    if any(listener.advertised_host == EVERY_IPV6_ADDRESS for listener in config.listeners):
        yield (
            key,
            f"{key} gives clients the address [::], which leads each of them to its own machine: set advertised.listeners.",
        )


def _identity(config: NodeConfig) -> Iterator[Fault]:
    number, reserved = config.integer("broker.id"), config.integer("reserved.broker.max.id")
    if config.integer("node.id") != number:
        yield "node.id", f"node.id is another name of broker.id, which is {number} and not {config.integer('node.id')}."
    if config.boolean("broker.id.generation.enable"):
        if not -1 <= number <= reserved:
            yield "broker.id", f"broker.id must be within -1 and reserved.broker.max.id, {reserved}."
    elif number < 0:
        yield "broker.id", "broker.id must be at least 0 where broker.id.generation.enable is false."


def faulty_durations(config: NodeConfig) -> Iterator[Fault]:
    for key in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.optional_integer(key) == 0:
            yield key, f"{key} must be unlimited (-1) or at least 1."
    for key, least in (
        ("log.roll.ms", 1),
        ("log.roll.jitter.ms", 0),
        ("zookeeper.session.timeout.ms", LEAST_SESSION_MS),
    ):
        value = config.optional_integer(key)
        if value is not None and value < least:
            yield key, f"{key} must be at least {least}."


def _jaas(config: NodeConfig) -> Iterator[Fault]:
    for key in config.static:
        if key == JAAS_KEY or key.endswith(f".{JAAS_KEY}"):
            try:
                parse_jaas(config.string(key))
            except JaasError as error:
                yield key, f"{key}: {error}."


def faulty_connections(config: NodeConfig) -> Iterator[Fault]:
    try:
        overrides = config.max_connections_per_ip_overrides
    except ListenerFault as fault:
        yield fault.key, f"{fault.key}: {fault}."
        return
    if config.integer("max.connections.per.ip") == 0 and not overrides:
        yield (
            "max.connections.per.ip",
            "max.connections.per.ip can be 0 only where max.connections.per.ip.overrides is set.",
        )


def _request_sizes(config: NodeConfig) -> Iterator[Fault]:
    of_all, of_one = "queued.max.request.bytes", "socket.request.max.bytes"
    if 0 < config.integer(of_all) < config.integer(of_one):
        yield of_all, f"{of_all} must be at least {of_one}, {config.integer(of_one)}."


def _log_dirs(config: NodeConfig) -> Iterator[Fault]:
    if not config.log_dirs:
        key = "log.dirs" if config.string("log.dirs") else "log.dir"
        yield key, "log.dirs or log.dir must name at least one directory."


def _listeners(config: NodeConfig) -> Iterator[Fault]:
    try:
        protocols = parse_protocol_map(config.string("listener.security.protocol.map"))
        advertised = [listener for listener in config.listeners if listener.advertised_host is not None]
    except ListenerFault as fault:
        yield fault.key, f"{fault.key}: {fault}."
        return
    valid = {listener.name for listener in advertised}
    faults = [*_inter_broker(config, valid, set(protocols)), *_control_plane(config, valid)]
    yield from faults
    if not faults:
        yield from _inter_broker_sasl(config)


def _inter_broker(config: NodeConfig, valid: set[str], mapped: set[str]) -> Iterator[Fault]:
    by_name, by_protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    named = config.optional_string(by_name)
    if named is not None and by_protocol in config.static:
        yield by_protocol, f"only one of {by_name} and {by_protocol} may be set."
    elif named is not None and named.upper() not in mapped:
        yield by_name, f"{by_name} names {named}, which listener.security.protocol.map does not know."
    elif (named or config.string(by_protocol)).upper() not in valid:
        key = by_name if named is not None or by_protocol not in config.static else by_protocol
        yield (
            key,
            (
                f"{by_name} must name one of the advertised listeners, {_words(valid)}; it is "
                f"{(named or config.string(by_protocol)).upper()}{'' if named else f', by {by_protocol}'}."
            ),
        )


def _control_plane(config: NodeConfig, valid: set[str]) -> Iterator[Fault]:
    key = "control.plane.listener.name"
    named = config.optional_string(key)
    if named is None:
        return
    inter_broker = config.string("inter.broker.listener.name") or config.string("security.inter.broker.protocol")
    if named.upper() not in valid:
        yield key, f"{key} must name one of the advertised listeners, {_words(valid)}; it is {named.upper()}."
    elif named.upper() == inter_broker.upper():
        yield key, f"{key} must name another listener than inter.broker.listener.name does."


def _inter_broker_sasl(config: NodeConfig) -> Iterator[Fault]:
    key = "sasl.mechanism.inter.broker.protocol"
    listener = config.inter_broker_listener
    offered = config.strings(config.of_listener(listener.name, "sasl.enabled.mechanisms"))
    if listener.needs_sasl and config.string(key) not in offered:
        yield (
            key,
            (
                f"{key} is {config.string(key)}, which listener {listener.name} of the nodes does not offer: "
                f"its sasl.enabled.mechanisms has {', '.join(offered) or 'none'}."
            ),
        )


def _words(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "of which there are none"


assert {POLICY_KEY, *OLDER_POLICY_KEYS} <= KEYS.keys()


def super_users(text: str) -> frozenset[str]:
    """Return the principals in a list such as `User:alice;User:bob`. Semicolons separate them,
    because the name of a principal that comes from a certificate has commas. Raises ValueError.
    """
    principals = [each.strip() for each in text.split(";")]
    for each in principals:
        kind, colon, name = each.partition(":")
        if each and not (kind and colon and name):
            raise ValueError(f"{each!r} is no principal, which is written User:name")
    return frozenset(filter(None, principals))
