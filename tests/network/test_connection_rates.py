"""How fast connections are accepted: by the rate of the node and of its listeners, and by the quota
of an address.
"""

from collections.abc import Mapping

import msgspec
import pytest
import trio

from minicontroller.cluster.quotas.client_quotas import ClientQuotas
from minicontroller.cluster.quotas.connection_rates import MANY_ADDRESSES, NODE, ConnectionRates
from minicontroller.cluster.quotas.rates import Windows
from minicontroller.controller.broker.node_quotas import clock_ms
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.small_server import CLIENTS, NODES, Served, serving

AT_ONCE = 10
"""How many connections a limit of one a second lets through at once: the windows but the last."""
EMPTY = MetadataRequest(topics=[])


def rates_of(limits: Mapping[str, int], addresses: Mapping[str | None, int] | None = None) -> ConnectionRates:
    quotas = ClientQuotas()
    for address, rate in (addresses or {}).items():
        quotas.set({"ip": address}, {"connection_creation_rate": str(rate)})
    return ConnectionRates(quotas, limits.get, Windows(), clock_ms)


async def seconds_for(served: Served, count: int, listener: object = CLIENTS) -> float:
    """How long it takes until so many new connections are answered."""
    began = trio.current_time()
    for _ in range(count):
        async with await served.connect(listener) as client:  # type: ignore[arg-type]
            await client.ask(1, EMPTY, MetadataResponse)
    return trio.current_time() - began


@pytest.mark.parametrize("limited", [NODE, CLIENTS.name])
async def test_a_listener_that_is_too_fast_waits(autojump_clock: object, limited: str) -> None:
    """Connections beyond the rate are served, later; those who are connected do not wait."""
    rates = rates_of({limited: 1})
    async with serving(rates=rates) as served, await served.connect() as early:
        assert await seconds_for(served, AT_ONCE - 1) < 1
        assert await seconds_for(served, 1) == pytest.approx(1, abs=0.3)
        await early.ask(1, EMPTY, MetadataResponse)
        assert rates.throttled == {"listener": 1}
        assert await seconds_for(served, 20) > 10


async def test_nodes_are_not_slowed_down_by_clients(autojump_clock: object) -> None:
    """At the listener of the nodes, beside which there is another, the rate of the node does not
    count, and a rate of its own does.
    """
    rates = rates_of({NODE: 1})
    wait = [rates.wait_ms(NODES.name, is_protected=True) for _ in range(AT_ONCE + 5)]
    assert not any(wait)
    rates = rates_of({NODES.name: 1})
    wait = [rates.wait_ms(NODES.name, is_protected=True) for _ in range(AT_ONCE + 5)]
    assert (wait[AT_ONCE - 1], wait[AT_ONCE]) == (0, 1000)


async def test_the_quota_of_an_address_does_not_lock_out_nodes(autojump_clock: object) -> None:
    """At the listener of the nodes, beside which there is another, an address has no quota."""
    rates = rates_of({}, {"127.0.0.1": 0})
    between_nodes = msgspec.structs.replace(CLIENTS, name="INTERNAL", inter_broker=True)
    async with serving(listeners=(CLIENTS, between_nodes), rates=rates) as served:
        async with await served.connect(between_nodes) as client:
            await client.ask(1, EMPTY, MetadataResponse)
        async with await served.connect(CLIENTS) as refused:
            await refused.send(refused.encode(1, EMPTY))
            assert await refused.ended()


async def test_an_address_that_is_too_fast_is_refused(autojump_clock: object) -> None:
    """A connection beyond the quota is closed after a while, unanswered; other addresses, and later
    connections of the same one, are served.
    """
    rates = rates_of({}, {"127.0.0.1": 1})
    async with serving(rates=rates) as served:
        assert await seconds_for(served, AT_ONCE) < 1
        began = trio.current_time()
        async with await served.connect() as refused:
            await refused.send(refused.encode(1, EMPTY))
            assert await refused.ended()
        assert trio.current_time() - began == pytest.approx(1, abs=0.3)
        assert rates.throttled["address"] == 1
        assert rates.refused_ms("127.0.0.2") == 0
        await trio.sleep(12)
        assert await seconds_for(served, 1) < 1


async def test_a_shutdown_does_not_wait_for_the_rate(autojump_clock: object) -> None:
    """A connection that waits to be served is closed when the node stops."""
    rates = rates_of({NODE: 0})
    async with serving(rates=rates) as served, await served.connect() as waiting:
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        await served.server.shutdown(30)
        assert trio.current_time() - began < 1
        assert await waiting.ended()


async def test_addresses_are_forgotten(autojump_clock: object) -> None:
    """A default quota for all addresses does not make a node remember all of them for ever."""
    rates = rates_of({}, {None: 1})
    for number in range(3 * MANY_ADDRESSES):
        rates.refused_ms(f"10.0.{number // 256}.{number % 256}")
        if number % 100 == 0:
            await trio.sleep(12)
    assert len(rates._by_address) <= MANY_ADDRESSES + 100
