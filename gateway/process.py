"""Runs a gateway in this process, until a signal.

Rule: the first SIGINT or SIGTERM lets the requests that were read be answered. The second one ends
the process immediately.
"""

import logging
import signal
from collections.abc import AsyncIterator

import trio

from ..network.http.listener import open_site
from ..network.limits import raise_limit, room_for_connections
from ..process.observe.logs import use_format
from ..process.observe.stdout import say
from .app import Gateway
from .configuration import GatewayConfig

log = logging.getLogger("minicontroller.gateway")

SITE = "minicontroller.gateway.site"
"""The module that makes the page, which is loaded when somebody looks at it."""
DESCRIPTORS_OF_A_CLIENT = 2
"""A client has a connection to the gateway, and one to its broker."""


async def run_gateway(config: GatewayConfig) -> None:
    """Run a gateway until a signal. Raises what `Gateway.run` raises."""
    use_format(config.node.string("log.format"))
    room = room_for_connections(raise_limit(), 1) // DESCRIPTORS_OF_A_CLIENT
    for warning in (*config.warnings, *config.upstream.warnings, *config.node.warnings):
        log.warning("%s", warning)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            gateway = Gateway(config, nursery, room=room)
            nursery.start_soon(_stop_on_signal, signals, gateway, nursery)
            http = await open_site(SITE, gateway, config.node, nursery)
            page = "" if http is None else f" http={http.address}"
            await gateway.run(lambda: say(f"ready: bootstrap.servers={gateway.bootstrap}{page}"))
            nursery.cancel_scope.cancel()


async def _stop_on_signal(signals: AsyncIterator[int], gateway: Gateway, nursery: trio.Nursery) -> None:
    stopping = False
    async for number in signals:
        if stopping or not gateway.is_serving:
            nursery.cancel_scope.cancel()
            return
        stopping = True
        log.info("%s: stopping; signal again to exit immediately", signal.Signals(number).name)
        gateway.stop()
