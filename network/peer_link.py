"""One connection to another node, from the moment it is open until it ends, and the requests that
wait for their answers on it.
"""

import math
from collections.abc import Sequence

import trio

from ..protocol.frame import FrameBuffer
from .node_frames import GO_AWAY_ID
from .transport import Disconnected, Outbox, Transport

MAX_IDLE_SECONDS = 540.0
"""Kafka's clients: connections.max.idle.ms, a minute below the server's. A connection that the
other end may be about to close is not used: a request on it would be left in doubt for nothing.
"""


class PendingAnswer:
    """The answer that one request waits for."""

    __slots__ = ("answered", "frame")

    def __init__(self) -> None:
        self.frame: bytes | None = None
        """The answer without its size; None until it came, and for good if the connection ended."""
        self.answered = trio.Event()
        """Set when the answer came or the connection ended."""


class PeerLink:
    """One connection to a node. Answers are matched to requests by correlation id."""

    def __init__(self, transport: Transport, basis: Sequence[object], max_bytes: int) -> None:
        """Take over a transport. `basis` is what the proofs made on it rest on; `max_bytes` limits
        an answer.
        """
        self.transport = transport
        self.basis = basis
        self.outbox = Outbox(transport)
        self.frames = FrameBuffer(max_bytes, skips_too_large=True)
        self.waiters: dict[int, PendingAnswer] = {}
        """By correlation id."""
        self.reason = "the connection was closed"
        """Why it ended."""
        self.ended = False
        self.goes_away = False
        """Whether the other end has sent GO_AWAY."""
        self.last_used = trio.current_time()
        self.expires = math.inf
        """trio's time from which on the other end wants a new authentication (KIP-368)."""

    @property
    def is_stale(self) -> bool:
        return not self.waiters and trio.current_time() - self.last_used > MAX_IDLE_SECONDS

    def deliver(self, frame: bytes) -> None:
        """Hand an answer to the request that waits for it, if it still does. Raises Disconnected
        for GO_AWAY.
        """
        correlation_id = int.from_bytes(frame[:4], signed=True)
        if correlation_id == GO_AWAY_ID:
            self.goes_away = True
            raise Disconnected("it stops")
        waiter = self.waiters.pop(correlation_id, None)
        if waiter is not None:
            waiter.frame = frame
            waiter.answered.set()

    def end(self) -> None:
        """Close the connection; the requests that wait get no answer."""
        self.ended = True
        self.transport.close()
        for waiter in self.waiters.values():
            waiter.answered.set()
        self.waiters.clear()
