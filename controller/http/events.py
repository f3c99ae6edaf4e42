"""Server-sent events: the page's news.

Rule: nothing is kept for a listener but what it was last sent. When it has taken that it gets the
newest state, and the decisions that were made meanwhile and are still known; what came in between
it never sees. So a slow listener costs no more than a fast one, and a thousand changes a second are
two messages.
"""

import msgspec
import trio
from starlette.types import Receive, Send

from .census import Census
from .process import Process
from .views import PageState, state

MAX_LISTENERS = 32
GATHERING_SECONDS = 0.5
"""Between two messages."""
HEARTBEAT_SECONDS = 10.0
"""A message comes at least so often: who is gone is noticed, and what stirs nobody (connections) is
shown.
"""
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]


class Newsroom:
    """Encodes the newest state of the cluster once for all who listen to events."""

    def __init__(self, process: Process, census: Census) -> None:
        self.listeners = 0
        self.process = process
        self._census = census
        self._lock = trio.Lock()
        self._made_at = float("-inf")
        self._encoded = b""

    async def state(self) -> bytes:
        async with self._lock:
            if trio.current_time() - self._made_at >= GATHERING_SECONDS / 2:
                made_at = trio.current_time()
                current: PageState = await state(self.process, self._census)
                self._encoded, self._made_at = msgspec.json.encode(current), made_at
            return self._encoded

    def decisions(self, after: int) -> bytes:
        return msgspec.json.encode(self.process.decisions.after(after))


async def send_events(newsroom: Newsroom, receive: Receive, send: Send) -> None:
    """Send events to a client until it disconnects or takes nothing any more."""
    newsroom.listeners += 1
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_with_client, receive, nursery.cancel_scope)
            await _tell(newsroom, send)
    finally:
        newsroom.listeners -= 1


async def _end_with_client(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _tell(newsroom: Newsroom, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    process, told, last = newsroom.process, 0, b""
    while True:
        seen, count = process.generation, process.decisions.count
        current = await newsroom.state()
        text = b"" if current == last else _event(b"state", current)
        if count > told:
            text += _event(b"decisions", newsroom.decisions(told))
        await send({"type": "http.response.body", "body": text or b":\n\n", "more_body": True})
        last, told = current, max(told, count)
        await trio.sleep(GATHERING_SECONDS)
        with trio.move_on_after(HEARTBEAT_SECONDS):
            await process.wait_news(seen)


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: " + name + b"\ndata: " + data + b"\n\n"


async def refuse_listener(send: Send) -> None:
    """Answer that as many clients listen to events as may."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"10")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"Too many listen already.\n"})
