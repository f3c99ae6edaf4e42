"""Changes of the listeners of a running node: which are refused, in Kafka's words as a Kafka 3.9.2
said them, and what has to be opened.
"""

import pytest

from minicontroller.process.settings.in_force import added_listeners, fault_of_change
from minicontroller.process.settings.loading import config_from_mapping

LISTENERS, ADVERTISED, PROTOCOLS = "listeners", "advertised.listeners", "listener.security.protocol.map"
NODES, CLIENT, EXTRA = "NODES://127.0.0.1:1", "CLIENT://127.0.0.1:2", "EXTRA://127.0.0.1:3"
MAP = "NODES:PLAINTEXT,CLIENT:PLAINTEXT,EXTRA:PLAINTEXT"
NODE = config_from_mapping(
    {
        "broker.id": "1",
        LISTENERS: f"{NODES},{CLIENT}",
        ADVERTISED: f"{NODES},{CLIENT}",
        PROTOCOLS: MAP,
        "inter.broker.listener.name": "NODES",
    }
)


def both(*listeners: str) -> dict[str, str]:
    return dict.fromkeys((LISTENERS, ADVERTISED), ",".join(listeners))


@pytest.mark.parametrize(
    ("configs", "added"),
    [
        ({}, []),
        ({"num.io.threads": "9"}, []),
        ({LISTENERS: f"{NODES},{CLIENT},{EXTRA}"}, ["EXTRA"]),
        (both(NODES, EXTRA), ["EXTRA"]),
        (both(NODES, "CLIENT://127.0.0.1:9"), ["CLIENT"]),
        (both(NODES), []),
        ({PROTOCOLS: f"{MAP},MORE:SSL"}, []),
        ({PROTOCOLS: f"{MAP},MORE:SSL"} | both(NODES, "MORE://:4"), ["MORE"]),
        ({ADVERTISED: "NODES://[::]:8,CLIENT://:7"}, []),
    ],
)
def test_what_a_running_node_may_listen_at(configs: dict[str, str], added: list[str]) -> None:
    """Listeners of clients come, go and move; what is taken is in force and stays so."""
    assert fault_of_change(NODE, configs) is None
    after = NODE.with_dynamic(configs, {})
    assert [listener.name for listener in added_listeners(NODE, after)] == added
    assert dict(after.dynamic_broker) == configs
    assert fault_of_change(after, configs) is None and added_listeners(after, after) == []


@pytest.mark.parametrize(
    ("configs", "fault"),
    [
        ({ADVERTISED: ""}, "requirement failed: There must be at least one broker advertised listener."),
        ({ADVERTISED: "NODES://0.0.0.0:1"}, "advertised.listeners: 0.0.0.0 is every interface and nobody can connect to it: "),
        ({ADVERTISED: "x"}, "advertised.listeners: 'x' is not of the form NAME://host:port."),
        ({ADVERTISED: f"{NODES},SSL://h:1"}, "advertised.listeners: listener SSL is advertised, but listeners has only CLIENT, NODES."),
        ({LISTENERS: NODES}, "advertised.listeners: listener CLIENT is advertised, but listeners has only NODES."),
        (
            {ADVERTISED: CLIENT},
            ("requirement failed: inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            "The valid options based on currently configured listeners are CLIENT"),
        ),
        (
            both(CLIENT, EXTRA),
            ("requirement failed: inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            "The valid options based on currently configured listeners are CLIENT,EXTRA"),
        ),
        ({LISTENERS: ""}, "Error creating broker listeners from '': there must be at least one listener."),
        (both(NODES, "MORE://:4"), f"Error creating broker listeners from '{NODES},MORE://:4': no security protocol is defined for listener MORE: "),
        (both(NODES, "CLIENT://:x"), f"Error creating broker listeners from '{NODES},CLIENT://:x': 'CLIENT://:x' is not of the form NAME://host:port."),
        (both(NODES, "CLIENT://:1"), f"Error creating broker listeners from '{NODES},CLIENT://:1': each listener must have a different port, "),
        (
            {PROTOCOLS: MAP.replace("CLIENT:PLAINTEXT", "CLIENT:SSL")},
            ("Invalid value org.apache.kafka.common.config.ConfigException: Security protocol cannot be updated for existing "
            "listener ListenerName(CLIENT) for configuration Invalid dynamic configuration"),
        ),
        ({PROTOCOLS: "NODES:PLAINTEXT"}, f"Error creating broker listeners from '{NODES},{CLIENT}': no security protocol is defined for listener CLIENT: "),
        ({PROTOCOLS: "NODES"}, "listener.security.protocol.map: 'NODES' is not of the form NAME:PROTOCOL."),
        (both("NODES://127.0.0.1:9", CLIENT), "listeners: nodes meet at NODES, whose address cannot change while the node runs: "),
    ],
)  # fmt: skip
def test_what_a_running_node_cannot_listen_at(configs: dict[str, str], fault: str) -> None:
    """The nodes keep their meeting point, and an open listener what it speaks."""
    assert (fault_of_change(NODE, configs) or "").startswith(fault)


def test_stored_listeners_that_contradict_each_other_are_ignored() -> None:
    """All of them, because each is one of several that have to fit; the other configs hold. So are
    those that would move, or change, the listener at which nodes meet.
    """
    moved, spoken = both("NODES://127.0.0.1:9", CLIENT), {PROTOCOLS: MAP.replace("NODES:PLAINTEXT", "NODES:SSL")}
    assert spoken[PROTOCOLS] != MAP
    for configs in ({ADVERTISED: ""}, both(CLIENT), {LISTENERS: NODES}, {PROTOCOLS: "x"}, moved, spoken):
        stored = NODE.with_dynamic(configs | {"num.io.threads": "9"}, {})
        assert stored.listeners == NODE.listeners and stored.integer("num.io.threads") == 9
