"""The brokers behind the gateway, and the address of the gateway that stands for each of them.

Rule: clients learn addresses of the gateway and no others. An answer that names a broker which is
new is held until a listener stands for it.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import trio

from ..client.configuration import Address
from ..client.errors import AdminError, ClusterUnreachable
from ..client.network import Network

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
        self._said = ""
        """The last failure to ask the cluster, so that it is logged once."""

    async def begin(self) -> None:
        """Learn the brokers of the cluster, waiting until one of them answers."""
        while not await self._look():  # noqa: ASYNC110 - nothing here could tell of an answer
            await trio.sleep(RETRY_SECONDS)

    async def follow(self) -> None:
        """Follow brokers that come, go and move, until cancelled."""
        while True:
            await trio.sleep(POLL_SECONDS)
            await self._look()

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

    async def address_of(self, broker_id: int) -> Address | None:
        """Return the address of a broker, as soon as it is known; None if it does not become known
        in time.
        """
        with trio.move_on_after(PATIENCE_SECONDS):
            while broker_id not in self._addresses:
                await self._changed.park()
        return self._addresses.get(broker_id)

    @property
    def addresses(self) -> Iterable[Address]:
        """The addresses of all brokers, at any of which a client may begin."""
        return dict.fromkeys((*self._addresses.values(), *self._network.config.bootstrap_servers))

    async def _look(self) -> bool:
        """Ask for the brokers, and return whether they were told. A failure is logged once."""
        try:
            view = await self._network.look()
        except (AdminError, ClusterUnreachable) as error:
            if str(error) != self._said:
                log.warning("the cluster does not answer: %s", error)
            self._said = str(error)
            self._network.forget()
            return False
        self._said = ""
        await self.learn({each.node_id: Address(each.host, each.port) for each in view.brokers.values()})
        return True
