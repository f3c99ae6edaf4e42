"""Tells how the listeners of a node change while it runs, and which changes of them are refused.

Rule: the functions are pure. Kafka takes another address for a listener that is open, and registers
it, but goes on to listen at the old one; here such a listener moves. Where nodes meet, its address
stays, because the other nodes would lose this one.
"""

from collections.abc import Mapping

from .listeners import ConfiguredListener
from .node_config import LISTENERS_AT_RUN_TIME, NodeConfig

INVALID_DYNAMIC = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic configuration"
)
"""The form of Kafka's refusal, which people and programs search for."""


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
