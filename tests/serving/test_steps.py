"""Handlers that answer in steps: little work is done at once, and much of it in time slices."""

from collections.abc import Awaitable

import pytest
import trio

from minicontroller.network.serving.api import response_of
from minicontroller.process import time_slices
from minicontroller.process.steps import Steps, one_by_one
from minicontroller.process.time_slices import STEPS_AT_ONCE, at_once, carried_out
from minicontroller.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse


@pytest.mark.parametrize("count", [0, 1, STEPS_AT_ONCE - 1, STEPS_AT_ONCE, 3 * STEPS_AT_ONCE])
async def test_few_steps_are_taken_at_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work of fewer steps than are taken at once is over then. What is left of more goes on where
    it stopped, and other tasks run in between.
    """
    monkeypatch.setattr(time_slices, "SLICE_SECONDS", 0.0)
    turns = 0

    async def look_on() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    made = at_once(one_by_one(range(count)))
    assert isinstance(made, list) == (count < STEPS_AT_ONCE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        whole = made if isinstance(made, list) else await carried_out(made)
        nursery.cancel_scope.cancel()
    assert whole == list(range(count))
    assert turns >= count - 2 * STEPS_AT_ONCE  # trio shuffles tasks, so some turns are missed


async def test_steps_may_end_in_what_is_awaited() -> None:
    """Steps lead to a response also where they end in an awaitable, and that in further steps."""

    def rows() -> Steps[DescribeGroupsResponse]:
        return DescribeGroupsResponse(groups=(yield from one_by_one([DescribedGroup(group_id="g")])))

    async def later() -> Steps[DescribeGroupsResponse]:
        await trio.lowlevel.checkpoint()
        return rows()

    def first() -> Steps[Awaitable[Steps[DescribeGroupsResponse]]]:
        yield
        return later()

    assert [row.group_id for row in (await response_of(first())).groups] == ["g"]


async def test_one_long_task_at_a_time_has_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "SLICE_SECONDS", 0.0)
    taken = 0

    def endless() -> Steps[None]:
        nonlocal taken
        while True:
            taken += 1
            yield

    tasks, rounds = 10, 40
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(time_slices.carried_out, endless())
        for _ in range(rounds):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert rounds // 4 < taken <= tasks + rounds
