"""Requests about the same things take turns."""

from random import Random

import pytest
import trio
import trio.testing

from minicontroller.gateway.judging.turns import Turns


async def test_each_has_its_things_for_itself(autojump_clock: trio.testing.MockClock) -> None:
    """Of many requests about some of a few things no two have the same thing at once; each comes to
    its turn, also if others give up while they wait.
    """
    assert autojump_clock is not None
    random, turns = Random(5), Turns()
    held: set[str] = set()
    served = []

    async def request(number: int) -> None:
        names = random.sample("abcde", random.randint(0, 3))
        turn = turns.stand(names)
        try:
            with trio.move_on_after(random.choice([0.5, 1000])):
                await turns.wait(turn)
                assert not held & set(names)
                held.update(names)
                with trio.CancelScope(shield=True):
                    await trio.sleep(random.random())
                held.difference_update(names)
                served.append(number)
        finally:
            turns.end(turn)

    async with trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(request, number)
            await trio.sleep(random.random() / 10)
    assert len(served) > 50 and not turns.names


async def test_the_first_comes_first() -> None:
    """Turns come in the order in which requests stood in line."""
    turns = Turns()
    first, second = turns.stand(["a", "b"]), turns.stand(["b", "c"])
    await turns.wait(first)
    with pytest.raises(trio.TooSlowError), trio.fail_after(0.01):
        await turns.wait(second)
    assert turns.names == {"a", "b", "c"}
    turns.end(first)
    await turns.wait(second)
    turns.end(second)
    assert not turns.names
