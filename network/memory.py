"""Limits the memory of a node for large requests of clients, and for answers that clients do not
read, over all connections.

Small requests are not counted; `max.connections` limits them. A large request reserves room for all
of it before the rest is read, so that it can finish. Of the requests that wait for room the
smallest is next. While others wait, a connection keeps its room only if it makes progress: one that
sends nothing, sends too slowly, or whose request runs for too long is closed, the oldest first. If
too many bytes of answers wait, the connection that has not read for the longest time is closed.
Connections of nodes are not counted.
"""

import heapq
import logging
from itertools import count
from typing import Protocol

import msgspec
import trio

from ..process.observe.logs import RateLimitedLog
from ..security.caller import Caller, about_caller
from .transport import READ_BYTES

log = logging.getLogger("minicontroller.server")

DEFAULT_BYTES = 256 * 1024 * 1024
"""How many bytes of requests are kept where `queued.max.request.bytes` says nothing; Kafka has no
limit then. One request always passes.
"""
UNREAD_BYTES = 256 * 1024 * 1024
"""How many bytes of answers that clients do not take are kept: two of the largest answers."""
SMALL_BYTES = 8 * 1024
"""A request up to this size is not counted, and no more is read at once while there is no room."""
IDLE_SECONDS = 3.0
"""How long a connection may send nothing while others wait for its room."""
PATIENCE_SECONDS = 10.0
"""How long a request may take to come in while others wait, beside the time that it takes at
LEAST_BYTES_A_SECOND.
"""
LEAST_BYTES_A_SECOND = 1024 * 1024
RUNNING_SECONDS = 60.0
"""How long a request that came in whole may take while others wait for its room: twice Kafka's
default timeout.
"""


class Holder(Protocol):
    """A connection that holds memory."""

    caller: Caller
    last_active: float

    @property
    def running(self) -> int: ...

    @property
    def is_leaving(self) -> bool: ...

    def cancel(self) -> None: ...


class Room(msgspec.Struct):
    size: int
    since: float


class Place(msgspec.Struct):
    """The place of a connection in the line for room."""

    given: trio.Event
    holder: Holder | None
    """The connection; None once it has left the line."""


class RequestMemory:
    """The memory of one node for clients' requests and answers."""

    def __init__(self, most: int = DEFAULT_BYTES) -> None:
        self.most = most
        self.read_bytes = READ_BYTES
        """How many bytes a connection reads at once."""
        self.of_requests = 0
        self.of_answers = 0
        self.waiting = 0
        """Connections that are not read until there is room."""
        self.closed = 0
        """Connections that were closed for the memory that they held."""
        self._rooms: dict[Holder, Room] = {}
        self._answers: dict[Holder, int] = {}
        """How many bytes of answers wait for each connection; the one that has taken none for the
        longest comes first.
        """
        self._line: list[tuple[int, int, Place]] = []
        self._numbers = count()
        self._told = RateLimitedLog(log)
        self._is_needed = trio.lowlevel.ParkingLot()

    async def room_for(self, holder: Holder, size: int) -> None:
        """Wait until a whole request of this size may be read. The connection must hold no room
        yet.
        """
        place = Place(trio.Event(), holder)
        heapq.heappush(self._line, (size, next(self._numbers), place))
        self.waiting += 1
        self._admit()
        if place.given.is_set():
            return
        self._is_needed.unpark_all()
        try:
            await place.given.wait()
        finally:
            if not place.given.is_set():
                place.holder = None
                self.waiting -= 1
                self._tidy()
                self._admit()

    def keep(self, holder: Holder, size: int) -> None:
        """Count a request that came in whole and is being carried out."""
        self._remove(holder)
        self._add(holder, size)
        self._admit()

    def give_back(self, holder: Holder) -> None:
        if holder in self._rooms:
            self._remove(holder)
            self._admit()

    def unread(self, holder: Holder, size: int) -> None:
        """Count the bytes of answers that wait for a connection, which has just taken some or
        begins to wait; 0 if it has taken all.
        """
        self.of_answers += size - self._answers.pop(holder, 0)
        if not size:
            return
        self._answers[holder] = size
        while self.of_answers > UNREAD_BYTES and len(self._answers) > 1:
            slowest = next(iter(self._answers))
            self.of_answers -= self._answers.pop(slowest)
            self._close(slowest)

    def forget(self, holder: Holder) -> None:
        """Give back all memory of a connection that has ended."""
        self.give_back(holder)
        self.unread(holder, 0)

    async def run(self) -> None:
        """Close connections that make no progress, whenever others wait for their room."""
        while True:
            while not self._line:
                await self._is_needed.park()
            await trio.sleep(IDLE_SECONDS)
            self._admit()
            self._make_room(sum(size for size, _, place in self._line if place.holder), trio.current_time())

    def _admit(self) -> None:
        """Give room to the connections in the line that find it, the smallest request first."""
        line = self._line
        while line:
            size, _, place = line[0]
            if place.holder is not None:
                if self._rooms and self.of_requests + size > self.most:
                    break
                self.waiting -= 1
                self._add(place.holder, size)
                place.given.set()
            heapq.heappop(line)
        self.read_bytes = SMALL_BYTES if line or self.of_requests >= self.most else READ_BYTES

    def _tidy(self) -> None:
        """Remove the places that connections have left from the line, once they are more than half
        of it.
        """
        if len(self._line) > 2 * self.waiting:
            self._line = [entry for entry in self._line if entry[2].holder is not None]
            heapq.heapify(self._line)

    def _make_room(self, wanted: int, now: float) -> None:
        missing = self.of_requests + wanted - self.most
        for holder, room in list(self._rooms.items()):
            if missing <= 0:
                break
            if holder.is_leaving:
                missing -= room.size
            elif _is_overdue(holder, room, now):
                missing -= room.size
                self._close(holder)

    def _close(self, holder: Holder) -> None:
        self.closed += 1
        self._told.say(
            logging.WARNING, "closing %s: others need the memory that it takes", holder.caller,
            extra=about_caller(holder.caller),
        )  # fmt: skip
        holder.cancel()

    def _add(self, holder: Holder, size: int) -> None:
        self._rooms[holder] = Room(size, trio.current_time())
        self.of_requests += size

    def _remove(self, holder: Holder) -> None:
        room = self._rooms.pop(holder, None)
        if room is not None:
            self.of_requests -= room.size


def _is_overdue(holder: Holder, room: Room, now: float) -> bool:
    if holder.running:
        return now >= room.since + RUNNING_SECONDS
    if now < room.since + IDLE_SECONDS:
        return False
    return (
        holder.last_active <= now - IDLE_SECONDS
        or now >= room.since + PATIENCE_SECONDS + room.size / LEAST_BYTES_A_SECOND
    )
