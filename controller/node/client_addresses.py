"""The addresses of the nodes of `up`: where they listen for clients, and what clients are given.

Rule: the nodes meet at a listener of their own on 127.0.0.1, whatever clients are given.
"""

from collections.abc import Sequence

import msgspec

from ...cluster.errors import ConfigurationError
from ...network.binding import WILDCARDS
from ...policies.configs.values import MAX_PORT, host_and_port
from ...process.settings.listeners import ListenerFault, parse_endpoints

NODE_ID = "$(nodeId)"
"""Stands for the number of a node in `--advertise`."""
INTERNAL = "INTERNAL"
OF_NODES = f"{INTERNAL}://127.0.0.1:0"


class ClientAddresses(msgspec.Struct, frozen=True):
    """The options `--listen` and `--advertise` of `up`."""

    listen: str = "127.0.0.1"
    advertise: str = ""
    """HOST or HOST:PORT; empty for the address at which a node listens."""

    def settings(self, number: int, first_port: int) -> dict[str, str]:
        """Return the settings of node `number`, where node 1 listens at `first_port`. Raises
        ConfigurationError.
        """
        port = first_port + number - 1 if first_port else 0
        settings = {"listeners": f"PLAINTEXT://{_bracketed(self.listen)}:{port},{OF_NODES}"}
        if self.advertise or self.listen in WILDCARDS:
            settings["advertised.listeners"] = f"PLAINTEXT://{self._advertised(number, port)},{OF_NODES}"
        return settings

    def _advertised(self, number: int, port: int) -> str:
        if not self.advertise:
            return f":{port}"  # an empty host is this machine's name
        text = self.advertise.replace(NODE_ID, str(number))
        if ":" not in text:
            return f"{text}:{port}"
        found = host_and_port(text)
        if found is None or not found[1]:
            raise ConfigurationError(
                f"--advertise {self.advertise} is not HOST or HOST:PORT, such as kafka-{NODE_ID}:9092."
            )
        host, first = found
        own = first if NODE_ID in self.advertise else first + number - 1
        if own > MAX_PORT:
            raise ConfigurationError(f"--advertise {self.advertise} leaves no room for node {number}.")
        return f"{_bracketed(host)}:{own}"


HERE = ClientAddresses()


def with_internal_listener(settings: Sequence[str], brokers: int) -> list[str]:
    """Return the settings of `up` with the listener of the nodes in those that name listeners.
    Raises ConfigurationError if several nodes would have one address.
    """
    return [_completed(setting, brokers) for setting in settings]


def _completed(setting: str, brokers: int) -> str:
    key, _, value = setting.partition("=")
    if key.strip() not in {"listeners", "advertised.listeners"}:
        return setting
    try:
        endpoints = parse_endpoints(key, value)
    except ListenerFault:
        return setting  # which is told when the configuration is read
    if brokers > 1 and any(each.port for each in endpoints):
        raise ConfigurationError(
            f"--set {key.strip()} gives all {brokers} nodes one address: use --port with --listen and --advertise, "
            "which count up from node to node, or --brokers 1."
        )
    return setting if any(each.name == INTERNAL for each in endpoints) else f"{setting},{OF_NODES}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
