"""The sockets of a listener: every address of both families, and one port."""

import errno
import socket
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from minicontroller.network.binding import EVERY_ADDRESS, MOST_TRIES, open_listeners, port_of
from minicontroller.network.http.listener import HttpListener, Serve
from minicontroller.network.http.protection import HttpProtection
from minicontroller.process.settings.node_config import NodeConfig
from tests.support.ports import free_port

BOTH = ("127.0.0.1", "::1")
OpenTcp = trio.open_tcp_listeners


async def reached(port: int, hosts: Sequence[str] = BOTH) -> list[str]:
    """Return those of the hosts that let somebody connect."""
    found = []
    for host in hosts:
        try:
            with socket.create_connection((host, port), timeout=5):
                found.append(host)
        except ConnectionRefusedError:
            continue
    await trio.lowlevel.checkpoint()
    return found


async def close(listeners: Sequence[trio.SocketListener]) -> None:
    for each in listeners:
        await each.aclose()


@pytest.mark.parametrize("host", ["", *EVERY_ADDRESS])
@pytest.mark.parametrize("port", ["free", "fixed"])
async def test_a_wildcard_is_both_families(host: str, port: str) -> None:
    """As with Kafka, whose Java binds both for either of them; a free port is the same for both."""
    listeners = await open_listeners(host, 0 if port == "free" else free_port())
    assert await reached(port_of(listeners[0])) == list(BOTH)
    await close(listeners)


async def test_a_caller_has_an_address_of_its_own_family() -> None:
    """ACLs and quotas name 127.0.0.1, and not ::ffff:127.0.0.1."""
    listeners = await open_listeners("::", 0)
    for listener, host in zip(listeners, BOTH, strict=True):
        with socket.create_connection((host, port_of(listener)), timeout=5):
            async with await listener.accept() as stream:
                assert stream.socket.getpeername()[0] == host
    await close(listeners)


async def test_an_address_is_itself_alone() -> None:
    """Whoever names one address does not open another."""
    for host in BOTH:
        listeners = await open_listeners(host, 0)
        assert await reached(port_of(listeners[0])) == [host]
        await close(listeners)


class TwoAddresses(trio.abc.HostnameResolver):
    """Every name has an address of either family."""

    async def getaddrinfo(self, *_: object, **__: object) -> Any:
        await trio.lowlevel.checkpoint()
        return [(socket.AF_INET, 0, 0, "", ("127.0.0.1", 0)), (socket.AF_INET6, 0, 0, "", ("::1", 0, 0, 0))]

    async def getnameinfo(self, *_: object) -> Any:
        raise AssertionError("nobody asks")


async def test_a_name_has_one_port() -> None:
    """A name with two addresses gets a port that is free at both."""
    trio.socket.set_custom_hostname_resolver(TwoAddresses())
    listeners = await open_listeners("two.example", 0)
    assert len({port_of(each) for each in listeners}) == 1 and len(listeners) == 2
    assert await reached(port_of(listeners[0])) == list(BOTH)
    await close(listeners)


@pytest.mark.parametrize("missing", [("::", "127.0.0.1"), ("0.0.0.0", "::1")])
@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
async def test_a_machine_may_have_one_family(
    missing: tuple[str, str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wildcard is then the other family; one address of the missing family is an error."""

    async def open_tcp(port: int, *, host: str) -> list[trio.SocketListener]:
        if host == missing[0]:
            raise OSError(code, "no such family")
        return list(await OpenTcp(port, host=host))

    monkeypatch.setattr(trio, "open_tcp_listeners", open_tcp)
    listeners = await open_listeners("", 0)
    assert await reached(port_of(listeners[0])) == [missing[1]]
    await close(listeners)


async def test_a_port_that_is_taken_at_one_of_the_addresses_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stays open; a free port is looked for until one is free at both, but not for ever."""
    [other] = await open_listeners("::1", 0)
    with pytest.raises(OSError, match="in use"):
        await open_listeners("0.0.0.0", port_of(other))
    assert await reached(port_of(other)) == ["::1"]
    tries = []

    async def taken(port: int, *, host: str) -> list[trio.SocketListener]:
        tries.append(port)
        if port:
            raise OSError(errno.EADDRINUSE, "in use")
        return list(await OpenTcp(port, host=host))

    monkeypatch.setattr(trio, "open_tcp_listeners", taken)
    with pytest.raises(OSError, match="in use"):
        await open_listeners("", 0)
    assert len(tries) == 2 * MOST_TRIES
    await other.aclose()


async def test_the_http_port_is_bound_like_the_others() -> None:
    """`http.listen` takes a wildcard for both families, too."""

    async def load(_: HttpListener) -> Serve:
        raise AssertionError("nobody asks")

    for host in ("0.0.0.0", "[::]"):
        http = HttpListener(load, HttpProtection(NodeConfig({})))
        await http.open(f"{host}:0")
        assert await reached(http.port) == list(BOTH)
        await close(http._listeners)
