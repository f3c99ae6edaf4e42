"""Server-sent events, by which the page follows the cluster.

Rule: nothing is queued for a listener. When it has read a message it gets the newest state, and the
decisions of the meantime that are still known; it never sees the states in between. So a slow
listener costs no more than a fast one, and a thousand changes a second are two messages.
"""

import msgspec
import trio
from starlette.types import Receive, Scope, Send

from .listener import BoundedStream
from .shown import ShownProcess
from .topic_statistics import TopicStatistics
from .views import PageState

MAX_LISTENERS = 32
GATHERING_SECONDS = 0.5
"""The pause between two messages."""
HEARTBEAT_SECONDS = 10.0
"""The longest time between two messages: a listener that is gone is noticed, and figures are shown
whose changes send no message, such as connections.
"""
EVENT_STREAM = "text/event-stream; charset=utf-8"


class EventFeed:
    """Encodes the newest state of the cluster once for all listeners."""

    def __init__(self, process: ShownProcess, statistics: TopicStatistics) -> None:
        self.listeners = 0
        self.process = process
        self._statistics = statistics
        self._lock = trio.Lock()
        self._made_at = float("-inf")
        self._encoded = b""

    async def state(self) -> bytes:
        async with self._lock:
            if trio.current_time() - self._made_at >= GATHERING_SECONDS / 2:
                made_at = trio.current_time()
                current: PageState = await self.process.state(self._statistics)
                self._encoded, self._made_at = msgspec.json.encode(current), made_at
            return self._encoded

    def decisions(self, after: int) -> bytes:
        return msgspec.json.encode(self.process.decisions.after(after))


async def send_events(feed: EventFeed, stream: BoundedStream, _scope: Scope, receive: Receive, send: Send) -> None:
    """Send events to a client until it disconnects or reads no more."""
    feed.listeners += 1
    stream.listens = True
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_with_client, receive, nursery.cancel_scope)
            await _send_all(feed, send)
    finally:
        feed.listeners -= 1
        stream.listens = False


async def _end_with_client(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _send_all(feed: EventFeed, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", EVENT_STREAM.encode())]})
    process, sent, last = feed.process, 0, b""
    while True:
        seen, count = process.generation, process.decisions.count
        current = await feed.state()
        text = b"" if current == last else _event(b"state", current)
        if count > sent:
            text += _event(b"decisions", feed.decisions(sent))
        await send({"type": "http.response.body", "body": text or b":\n\n", "more_body": True})
        last, sent = current, max(sent, count)
        await trio.sleep(GATHERING_SECONDS)
        with trio.move_on_after(HEARTBEAT_SECONDS):
            await process.wait_for_change(seen)


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: " + name + b"\ndata: " + data + b"\n\n"
