"""With `audit.flush=always`, decisions are in the file before the request is answered."""

import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.audit.logs import decisions_in
from tests.handlers.ruling import NoDice, Ruling, creating, ruling, wanted


async def carried_out(world: Ruling) -> ErrorCode:
    answer = await world.ask(creating(wanted("new", 1, 1)), 7)
    return ErrorCode(answer.topics[0].error_code)


async def validated(world: Ruling) -> ErrorCode:
    answer = await world.ask(creating(wanted("new", 1, 1), validate_only=True), 7)
    return ErrorCode(answer.topics[0].error_code)


async def refused(world: Ruling) -> ErrorCode:
    answer = await world.ask(creating(wanted("a/b", 1, 1)), 7)
    return ErrorCode(answer.topics[0].error_code)


async def refused_whole(world: Ruling) -> ErrorCode:
    answer = await world.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 5)
    return ErrorCode(answer.responses[0].error_code)


async def failed(world: Ruling) -> ErrorCode:
    world.node.random = NoDice()
    answer = await world.ask(creating(wanted("t", 1, 1)), 7)
    return ErrorCode(answer.topics[0].error_code)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (carried_out, ErrorCode.NONE),
        (validated, ErrorCode.NONE),
        (refused, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (refused_whole, ErrorCode.TOPIC_DELETION_DISABLED),
        (failed, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_no_answer_before_the_disk(
    ask: Callable[[Ruling], Awaitable[ErrorCode]], code: ErrorCode, tmp_path: Path
) -> None:
    """Carried out, validated, or refused for whatever reason: the file says so when the answer
    comes.
    """
    settings = {"audit.dir": str(tmp_path), "audit.flush": "always", "delete.topic.enable": "false"}
    async with ruling(settings) as world:
        assert await ask(world) == code
        assert [event.error for event in decisions_in(tmp_path)] == [code.name]


async def test_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer waits until the disk has said that it has everything: that the file shows it is not
    enough.
    """
    forced, on_disk = os.fsync, threading.Event()

    def force_later(descriptor: int) -> None:
        on_disk.wait()
        forced(descriptor)

    answers: list[ErrorCode] = []

    async def ask() -> None:
        answers.append(await carried_out(world))

    async with ruling({"audit.dir": str(tmp_path), "audit.flush": "always"}) as world, trio.open_nursery() as nursery:
        await validated(world)
        monkeypatch.setattr(os, "fsync", force_later)
        nursery.start_soon(ask)
        while len(decisions_in(tmp_path)) < 2:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked(0.05)
        unanswered = not answers
        on_disk.set()
    assert unanswered
    assert answers == [ErrorCode.NONE]
