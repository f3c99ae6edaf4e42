"""Forwarding while nobody rules, and when the controller goes: what waits, what is in doubt, and
what is sent again.

Requirement K590-2. Time is trio's mock clock.
"""

from functools import partial

import pytest
import trio
from trio.testing import MockClock

from minicontroller.network.serving.forwarding import REPLY_GRACE_SECONDS, SUCCEEDED_SECONDS
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from minicontroller.security.credentials import PlainCredentials
from tests.serving.pair import CREATE, Recorder, codes, pair
from tests.support.ports import free_port
from tests.support.small_server import (
    TinyNode,
    created_when_open,
    until,
)

# ------------------------------------------------------------------ no client


async def test_nobody_works_for_clients_that_are_gone() -> None:
    """When a client disconnects from the forwarding node, the controller cancels its request; other
    requests on the same connection go on.
    """
    async with pair(far_handler=created_when_open) as nodes, await nodes.near.connect() as patient:
        far = nodes.far.node
        await patient.send(patient.encode(7, CREATE))
        await until(lambda: far.waiting == 1)
        for gone in range(1, 4):
            async with await nodes.near.connect() as client:
                await client.send(client.encode(7, CREATE) + client.encode(7, CREATE))
                await until(lambda: far.waiting == 2)
            await until(partial(_have_gone, far, gone))
        assert len(far.seen) == 4
        (link,) = (each for each in nodes.far.connections if each.caller.forwards)
        assert link.running == 1
        far.gate.set()
        assert codes((await patient.answer(CreateTopicsResponse, 7))[1]) == [0, 0]
        assert (link.running, len(link._scopes)) == (0, 0)


def _have_gone(node: TinyNode, clients: int) -> bool:
    return (node.waiting, node.cancelled) == (1, clients)


async def test_a_client_that_is_gone_at_once() -> None:
    """The controller may read a request and its cancellation at once."""
    async with pair(far_handler=created_when_open) as nodes:
        for _ in range(20):
            async with await nodes.near.connect() as client:
                await client.send(client.encode(7, CREATE))
                await trio.testing.wait_all_tasks_blocked()
        await until(lambda: nodes.far.node.waiting == 0 and not nodes.near.connections)
        async with await nodes.near.connect() as client:
            nodes.far.node.gate.set()
            assert codes(await client.ask(7, CREATE, CreateTopicsResponse)) == [0, 0]


# ------------------------------------------------------------------ no controller


async def test_without_a_controller_a_request_waits_for_one(autojump_clock: MockClock) -> None:
    """A request waits for an election without polling, and the controller gets the rest of the
    client's timeout.
    """
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await trio.sleep(4)
        assert nodes.recorder.calls == []
        elected = trio.current_time()
        nodes.elect(2)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]
        assert trio.current_time() == elected
        assert nodes.recorder.calls[0][1].timeout_ms == pytest.approx(6000, abs=10)


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(10_000, 10), (0, 30), (-1, 30)])
async def test_nobody_waits_for_a_controller_for_ever(
    timeout_ms: int, seconds: float, autojump_clock: MockClock
) -> None:
    """At the request's timeout, or `request.timeout.ms` if it has none, every topic carries
    REQUEST_TIMED_OUT.
    """
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        began = trio.current_time()
        asked = CreateTopicsRequest(topics=CREATE.topics, timeout_ms=timeout_ms)
        await client.send(client.encode(7, asked))
        await trio.sleep(seconds - 1)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert trio.current_time() - began == pytest.approx(seconds)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2


async def test_not_controller_is_asked_again_at_the_next_one(autojump_clock: MockClock) -> None:
    """A forwarded request that is answered NOT_CONTROLLER waits for the next controller and is sent
    to it; the client never sees the code.
    """
    async with pair() as nodes, await nodes.near.connect() as client:
        nodes.far.node.controller = None
        await client.send(client.encode(7, CREATE))
        await trio.sleep(0.05)
        assert await client.silent()
        nodes.far.node.controller = "again"
        nodes.elect(2, epoch=2)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]
        assert len(nodes.recorder.calls) == 1


async def test_a_controller_that_has_not_begun_is_asked_again(autojump_clock: MockClock) -> None:
    """Elected but not serving yet: no news will come of it, so it is tried every tenth
    of a second.
    """
    async with pair() as nodes, await nodes.near.connect() as client:
        nodes.far.node.controller = None
        await client.send(client.encode(7, CREATE))
        await trio.sleep(0.35)
        nodes.far.node.controller = "ready"
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]


async def test_a_controller_that_cannot_be_reached_has_done_nothing(autojump_clock: MockClock) -> None:
    """Connection refused: the request goes to the next controller as soon as it is known."""
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        nodes.elect(2, port=free_port())
        await client.send(client.encode(7, CREATE))
        await trio.sleep(3)
        nodes.elect(2, epoch=2)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]


# ------------------------------------------------------------------ in doubt


async def test_a_broken_connection_leaves_the_request_in_doubt() -> None:
    """A request that was sent and not answered is REQUEST_TIMED_OUT, in the sense of "may still
    happen", and is never sent a second time.
    """
    arrived = 0

    async def never(_node: object, _ctx: object, _request: object) -> CreateTopicsResponse:
        nonlocal arrived
        arrived += 1
        await trio.sleep_forever()
        raise AssertionError

    async with pair(far_handler=never) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await until(lambda: arrived == 1)
        for connection in nodes.far.connections:
            connection.cancel()
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert "may have been carried out" in str(answer.topics[0].error_message)
        assert arrived == 1


async def test_what_a_stopping_controller_has_not_read_is_done_by_the_next(autojump_clock: MockClock) -> None:
    """K590-2b: what it has read it answers; what comes later is sent to its successor, and no
    client sees anything of it.
    """
    here = Recorder()
    async with (
        pair(far_handler=created_when_open, near_handler=here.create) as nodes,
        await nodes.near.connect() as early,
        await nodes.near.connect() as late,
        trio.open_nursery() as nursery,
    ):
        await early.send(early.encode(7, CREATE))
        await until(lambda: nodes.far.node.waiting == 1)
        nursery.start_soon(nodes.far.server.shutdown, 30)
        await trio.testing.wait_all_tasks_blocked()
        await late.send(late.encode(7, CREATE))
        await trio.testing.wait_all_tasks_blocked()
        nodes.far.node.gate.set()
        assert codes((await early.answer(CreateTopicsResponse, 7))[1]) == [0, 0]
        assert here.calls == []
        nodes.near.node.controller = "this one"
        nodes.elect(1, epoch=2)
        assert codes((await late.answer(CreateTopicsResponse, 7))[1]) == [0, 0]
        assert len(nodes.far.node.seen) == len(here.calls) == 1


async def test_nobody_waits_for_a_controller_that_was_succeeded(autojump_clock: MockClock) -> None:
    """K590-2b: requests sent to a frozen controller are answered as in doubt soon after this node
    learns of its successor, which gets the next request.
    """
    here = Recorder()
    async with (
        pair(far_handler=created_when_open, near_handler=here.create) as nodes,
        await nodes.near.connect() as client,
    ):
        await client.send(client.encode(7, CREATE))
        await until(lambda: nodes.far.node.waiting == 1)
        nodes.near.node.controller = "this one"
        before = trio.current_time()
        nodes.elect(1, epoch=2)
        assert codes((await client.answer(CreateTopicsResponse, 7))[1]) == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert trio.current_time() - before == SUCCEEDED_SECONDS
        assert codes(await client.ask(7, CREATE, CreateTopicsResponse)) == [0, 0]


async def test_a_controller_that_is_elected_again_keeps_its_requests(autojump_clock: MockClock) -> None:
    """A controller that is elected again after another one ruled for a moment lives, and answers
    the requests itself.
    """
    async with pair(far_handler=created_when_open) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await until(lambda: nodes.far.node.waiting == 1)
        nodes.elect(3, epoch=2)
        nodes.elect(2, epoch=3)
        await trio.sleep(SUCCEEDED_SECONDS * 2)
        nodes.far.node.gate.set()
        assert codes((await client.answer(CreateTopicsResponse, 7))[1]) == [0, 0]


async def test_a_controller_that_hangs_is_given_up(autojump_clock: MockClock) -> None:
    """No answer within the request's timeout and the grace for its journey: REQUEST_TIMED_OUT."""

    async def never(_node: object, _ctx: object, _request: object) -> CreateTopicsResponse:
        await trio.sleep_forever()
        raise AssertionError

    async with pair(far_handler=never) as nodes, await nodes.near.connect() as client:
        began = trio.current_time()
        await client.send(client.encode(7, CREATE))
        await trio.sleep(9)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert trio.current_time() - began == pytest.approx(10 + REPLY_GRACE_SECONDS)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2


async def test_nodes_that_do_not_know_each_other_say_so(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """With a wrong inter-broker password nothing is done, the client gets a timeout, and the log
    has the reason without the password.
    """
    stale = PlainCredentials("node", "stale-password")
    async with pair(logins=lambda *_: (stale,)) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await trio.sleep(9)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2
    assert caplog.text.count("it does not accept us as 'node'") == 1
    assert "stale-password" not in caplog.text
    assert nodes.recorder.calls == []
