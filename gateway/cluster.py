"""The brokers behind the gateway, and the address of the gateway that stands for each of them.

Rule: clients learn addresses of the gateway and no others. An answer that names a broker which is
new is held until a listener stands for it.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import trio

from ..client.configuration import Address
from ..client.errors import ClusterUnreachable
from ..client.network import Network
from ..controller.network.transport import Disconnected

log = logging.getLogger("minicontroller.gateway")

POLL_SECONDS = 5.0
"""How often the brokers are asked for where no answer that passes names them."""
RETRY_SECONDS = 0.5
PATIENCE_SECONDS = 30.0  # Kafka's clients: socket.connection.setup.timeout.max.ms
"""How long a client is held whose broker is not known yet."""


class UpstreamCluster:
    """The brokers by id: their own addresses, and those that clients get."""

    def __init__(self, network: Network, open_listener: Callable[[int], Awaitable[Address]]) -> None:
        """Prepare a cluster that is asked through `network`. `open_listener` opens a listener that
        stands for a broker, and returns the address that clients get.
        """
        self._network = network
        self._open_listener = open_listener
        self._addresses: dict[int, Address] = {}
        self._advertised: dict[int, Address] = {}
        self._opening = trio.Lock()
        self._changed = trio.lowlevel.ParkingLot()

    async def begin(self) -> None:
        """Learn the brokers of the cluster, waiting until one of them answers."""
        said = ""
        while True:
            try:
                await self._ask()
            except ClusterUnreachable as error:
                if str(error) != said:
                    log.warning("waiting for the cluster: %s", error)
                said = str(error)
                await trio.sleep(RETRY_SECONDS)
            else:
                return

    async def follow(self) -> None:
        """Follow brokers that come, go and move, until cancelled."""
        said = ""
        while True:
            await trio.sleep(POLL_SECONDS)
            try:
                await self._ask()
                said = ""
            except ClusterUnreachable as error:
                if str(error) != said:
                    log.warning("the cluster does not answer: %s", error)
                said = str(error)
                self._network.forget()

    async def learn(self, brokers: Mapping[int, Address]) -> None:
        """Take over the addresses of brokers that are alive, and open a listener for those that
        have none.
        """
        async with self._opening:
            for broker_id in sorted(brokers.keys() - self._advertised.keys()):
                self._advertised[broker_id] = await self._open_listener(broker_id)
                log.info("broker %d at %s is reached by %s", broker_id, brokers[broker_id], self._advertised[broker_id])
        self._addresses.update(brokers)
        self._changed.unpark_all()

    def advertised(self, broker_id: int) -> Address | None:
        """Return the address of the gateway that stands for a broker; None for one that it has
        never heard of.
        """
        return self._advertised.get(broker_id)

    async def address_of(self, broker_id: int) -> Address:
        """Return the address of a broker, as soon as it is known. Raises Disconnected."""
        with trio.move_on_after(PATIENCE_SECONDS):
            while broker_id not in self._addresses:
                await self._changed.park()
            return self._addresses[broker_id]
        raise Disconnected(f"broker {broker_id} is not known")

    @property
    def addresses(self) -> Iterable[Address]:
        """The addresses of all brokers, at any of which a client may begin."""
        return dict.fromkeys((*self._addresses.values(), *self._network.config.bootstrap_servers))

    async def _ask(self) -> None:
        view = await self._network.look()
        await self.learn({each.node_id: Address(each.host, each.port) for each in view.brokers.values()})
