"""The brokers behind the gateway, and the address of the gateway that stands for each of them.

Rule: clients learn addresses of the gateway and no others. An answer that names a broker which is
new is held until a listener stands for it.
"""

import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import trio

from ..client.configuration import Address
from ..client.errors import AdminError, ClusterUnreachable
from ..client.network import Network
from ..cluster.errors import ConfigurationError
from ..policies.configs.values import MAX_PORT
from ..process.observe.logs import RateLimitedLog

log = logging.getLogger("minicontroller.gateway")

POLL_SECONDS = 5.0
"""How often the brokers are asked for where no answer that passes names them."""
RETRY_SECONDS = 0.5
PATIENCE_SECONDS = 30.0  # Kafka's clients: socket.connection.setup.timeout.max.ms
"""How long a client is held whose broker is not known yet."""
MOST_FAILED = 1000
"""How many addresses are remembered at which there was no broker."""
MOST_BROKERS = 1000
"""How many brokers the gateway stands for: each may take a port, whatever an answer claims."""
MOST_HOST_CHARACTERS = 255
"""The length of the longest name in DNS."""


class UpstreamCluster:
    """The brokers by id: their own addresses, and those that clients get."""

    def __init__(self, network: Network, place_of: Callable[[int], Awaitable[Address | None]]) -> None:
        """Prepare a cluster that is asked through `network`. `place_of` has the gateway stand for a
        broker, and returns the address that clients get, None if there is none for it.
        """
        self._network = network
        self._place_of = place_of
        self._addresses: dict[int, Address] = {}
        self._advertised: dict[int, Address | None] = {}
        self._failed: dict[Address, None] = {}
        """The addresses that could not be reached when they were last tried."""
        self._turns = itertools.count()
        self._in_doubt = trio.Event()
        """Set when a broker is not where it was, so that the cluster is asked at once."""
        self._opening = trio.Lock()
        self._changed = trio.lowlevel.ParkingLot()
        self._has_begun = False
        self._no_place = RateLimitedLog(log)
        self.failure: str | None = None
        """Why the cluster did not answer the last time; None if it did."""
        self._silent = RateLimitedLog(log)

    async def begin(self) -> None:
        """Learn the brokers of the cluster, waiting until one of them answers."""
        while not await self._look():  # noqa: ASYNC110 - nothing here could tell of an answer
            await trio.sleep(RETRY_SECONDS)
        self._has_begun = True

    async def follow(self) -> None:
        """Follow brokers that come, go and move, until cancelled."""
        while True:
            with trio.move_on_after(POLL_SECONDS):
                await self._in_doubt.wait()
            self._in_doubt = trio.Event()
            await self._look()
            await trio.sleep(RETRY_SECONDS)

    async def learn(self, brokers: Mapping[int, Address]) -> None:
        """Take over the addresses of brokers that are alive, and open a listener for those that
        have none. What cannot be a broker's is passed over.
        """
        brokers = {number: address for number, address in brokers.items() if _may_be_a_broker(number, address)}
        async with self._opening:
            for broker_id in sorted(brokers.keys() - self._advertised.keys()):
                await self._stand_for(broker_id, brokers[broker_id])
        others = self._addresses.keys() - brokers.keys()
        taken = set(brokers.values())
        for broker_id in [each for each in others if self._addresses[each] in taken]:
            del self._addresses[broker_id]  # another broker is there now
        for broker_id in [each for each in brokers if self._addresses.get(each) != brokers[each]]:
            if broker_id in self._addresses:
                log.info("broker %d has moved to %s", broker_id, brokers[broker_id])
            self._failed.pop(brokers[broker_id], None)
        self._addresses.update((each, brokers[each]) for each in brokers.keys() & self._advertised.keys())
        self._changed.unpark_all()

    async def _stand_for(self, broker_id: int, upstream: Address) -> None:
        """Have the gateway stand for a broker. If that fails while it serves, the broker is not
        told of, and the next answer that names it has it tried again.
        """
        if len(self._advertised) >= MOST_BROKERS:
            text = "clients cannot reach broker %d: the gateway already serves %d brokers"
            self._no_place.say(logging.ERROR, text, broker_id, MOST_BROKERS)
            return
        try:
            address = await self._place_of(broker_id)
        except (OSError, ConfigurationError) as error:
            if not self._has_begun:
                raise
            self._no_place.say(logging.ERROR, "clients cannot reach broker %d: %s", broker_id, error)
            return
        self._advertised[broker_id] = address
        if address is not None:
            log.info("clients reach broker %d (%s) at %s", broker_id, upstream, address)

    def advertised(self, broker_id: int) -> Address | None:
        """Return the address of the gateway that stands for a broker; None for one that it has
        never heard of, or has no place for.
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
        """The addresses of all brokers, at any of which a client may begin: each in its turn, and
        those that could not be reached last.
        """
        every = list(dict.fromkeys((*self._addresses.values(), *self._network.config.bootstrap_servers)))
        turn = next(self._turns) % len(every)
        return sorted(every[turn:] + every[:turn], key=lambda each: each in self._failed)

    def failed_at(self, address: Address) -> None:
        self._failed.pop(address, None)
        self._failed[address] = None
        if len(self._failed) > MOST_FAILED:
            del self._failed[next(iter(self._failed))]
        self._in_doubt.set()

    def reached(self, address: Address) -> None:
        self._failed.pop(address, None)

    async def _look(self) -> bool:
        """Ask for the brokers, and return whether they were told."""
        try:
            view = await self._network.look()
        except (AdminError, ClusterUnreachable) as error:
            self._silent.say(logging.WARNING, "the cluster does not answer: %s", error)
            self.failure = str(error)
            return False
        self.failure = None
        await self.learn({each.node_id: Address(each.host, each.port) for each in view.brokers.values()})
        return True


def _may_be_a_broker(broker_id: int, address: Address) -> bool:
    return broker_id >= 0 and 0 < len(address.host) <= MOST_HOST_CHARACTERS and 0 < address.port <= MAX_PORT
