"""Finds which dynamic configs a node can have together, and which changes of listeners it refuses.

Rule: the functions are pure. A change is judged by the node that plans it, with the values that
this node has; what comes together at another node, or was stored by another program, only that node
sees. It goes without what breaks a rule, so that it stays reachable. Kafka's brokers keep all that
was in force before, and after a restart go without everything in the znode.

Kafka takes another address for a listener that is open, and registers it, but goes on to listen at
the old one; here such a listener moves. Where nodes meet, its address stays, because the other
nodes would lose this one.
"""

from collections.abc import Iterator, Mapping

from .dynamic_keys import PER_IP_OVERRIDES
from .listeners import ConfiguredListener
from .node_config import LISTENERS_AT_RUN_TIME, ConfigSource, NodeConfig
from .node_rules import faulty_connections, faulty_durations
from .refused_keys import Fault

BESIDE = {"max.connections.per.ip": PER_IP_OVERRIDES}
"""For the key of a fault, the other key whose value may be the reason."""
AT_LEAST_ONE = ("max.connections", "max.connection.creation.rate")
"""Kafka lets nobody set these to 0 while a broker runs, for all listeners or for one."""
DYNAMIC = frozenset({ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG})
INVALID_DYNAMIC = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic configuration"
)
"""The form of Kafka's refusal, which people and programs search for."""


def in_force(node: NodeConfig, broker: Mapping[str, str], default: Mapping[str, str]) -> NodeConfig:
    """Return the configuration of a node that has the configs `broker` and `default` in the store,
    without those that it cannot have. Its own give way before those of all nodes.
    """
    config = node.with_dynamic(broker, default)
    keys = {key for key, _ in faults_together(config)}
    keys |= {BESIDE[key] for key in keys if key in BESIDE}
    if keys & config.dynamic_broker.keys():
        return in_force(node, _without(keys, config.dynamic_broker), default)
    if keys & config.dynamic_default.keys():
        return in_force(node, config.dynamic_broker, _without(keys, config.dynamic_default))
    return config


def faults_together(config: NodeConfig) -> Iterator[Fault]:
    """Yield (key, sentence) for each rule that the dynamic configs break with the values beside
    them.
    """
    yield from faulty_durations(config)
    yield from faulty_connections(config)
    prefixes = ("", *(f"listener.name.{listener.name.lower()}." for listener in config.listeners))
    for base in AT_LEAST_ONE:
        for key in (f"{prefix}{base}" for prefix in prefixes):
            if config.source(key) in DYNAMIC and config.integer(key) == 0:
                yield key, INVALID_DYNAMIC.format(f"Invalid {base} 0")


def _without(keys: set[str], configs: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in configs.items() if key not in keys}


def fault_of_change(before: NodeConfig, configs: Mapping[str, str]) -> str | None:
    """Return why a node with the configuration `before` cannot have the listeners of `configs`, in
    Kafka's words where it has some, or None. `configs` are those of the node in `/config/brokers`.
    """
    dynamic = {key: configs[key] for key in LISTENERS_AT_RUN_TIME if key in configs}
    if dynamic == {key: text for key, text in before.dynamic_broker.items() if key in LISTENERS_AT_RUN_TIME}:
        return None
    after = NodeConfig({**before.static, **dynamic})
    fault = after.fault_of_listeners()
    if fault is not None:
        return fault
    present = {listener.name: listener for listener in before.listeners}
    for listener in after.listeners:
        open_one = present.get(listener.name, listener)
        if open_one.security_protocol != listener.security_protocol:
            problem = f"Security protocol cannot be updated for existing listener ListenerName({listener.name})"
            return INVALID_DYNAMIC.format(problem)
        if open_one.address != listener.address and listener.name in before.names_between_nodes():
            return (
                f"listeners: nodes meet at {listener.name}, whose address cannot change while the node runs: "
                "change it in the file of the node, and start the node again."
            )
    return None


def added_listeners(before: NodeConfig, after: NodeConfig) -> list[ConfiguredListener]:
    present = {listener.address for listener in before.listeners}
    return [listener for listener in after.listeners if listener.address not in present]
