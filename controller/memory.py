"""How many bytes of clients' unfinished requests, and of answers that clients do not take, a node keeps over all connections.

Rule: what is small comes with its connection (`max.connections`). A large request has room for all of it before more of it is read, so that
whoever has begun can finish; the smallest that waits is next, so that nobody waits behind giants, and in turns with it whoever has waited
for long, so that small ones do not pass a giant for ever. Room that is needed by others is kept by progress alone: whoever sends nothing, too slowly, or is carried out for too long loses it with his connection, in the order in which they
got it. Where too many answers lie about, it is he who has taken nothing for the longest. Connections of nodes are not counted.
"""

import heapq
import logging
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from .logs import Seldom, about_caller
from .transport import READ_BYTES

if TYPE_CHECKING:
    from .security.caller import Caller

log = logging.getLogger("minicontroller.server")

DEFAULT_BYTES = 256 * 1024 * 1024
"""Of requests, where `queued.max.request.bytes` says nothing; Kafka has no limit then. One request always passes."""
UNREAD_BYTES = 256 * 1024 * 1024
"""Of answers: two of the largest."""
SMALL_BYTES = 8 * 1024
"""Of a request: less is not counted, and more is not read at once while there is no room."""
LONG_SECONDS = 10.0
"""In the line: nobody passes who has waited so long, when it is the turn of such."""
IDLE_SECONDS = 3.0
"""Without a byte."""
PATIENCE_SECONDS = 10.0
"""And as long as it takes at LEAST_BYTES_A_SECOND."""
LEAST_BYTES_A_SECOND = 1024 * 1024
RUNNING_SECONDS = 60.0
"""For a request that came in whole: twice Kafka's default timeout."""


class Holder(Protocol):
    """A connection."""

    caller: "Caller"
    last_active: float
    running: int

    @property
    def is_leaving(self) -> bool: ...

    def cancel(self) -> None: ...


class Room(msgspec.Struct):
    size: int
    since: float


class Place(msgspec.Struct, eq=False):
    """In the line."""

    holder: Holder
    size: int
    since: float
    given: trio.Event


class Memory:
    """Of one node."""

    def __init__(self, most: int = DEFAULT_BYTES) -> None:
        self.most = most
        self.read_bytes = READ_BYTES
        """Of one read."""
        self.of_requests = 0
        self.of_answers = 0
        self.closed = 0
        """Connections that lost theirs."""
        self._rooms: dict[Holder, Room] = {}
        self._answers: dict[Holder, int] = {}
        """Whoever has taken a part the longest ago comes first."""
        self._line: OrderedDict[Place, None] = OrderedDict()
        """As they came."""
        self._by_size: list[tuple[int, int, Place]] = []
        """The same as a heap, and some who are in the line no more."""
        self._numbers = count()
        self._turn_of_oldest = True
        self._told = Seldom(log)
        self._is_needed = trio.lowlevel.ParkingLot()

    @property
    def waiting(self) -> int:
        """Connections that are not read until there is room."""
        return len(self._line)

    async def room_for(self, holder: Holder, size: int) -> None:
        """Wait until the whole request may be read. Whoever asks holds none."""
        place = Place(holder, size, trio.current_time(), trio.Event())
        self._line[place] = None
        heapq.heappush(self._by_size, (size, next(self._numbers), place))
        self._admit()
        if place.given.is_set():
            return
        self._is_needed.unpark_all()
        try:
            await place.given.wait()
        finally:
            if not place.given.is_set():
                del self._line[place]
                self._admit()

    def keep(self, holder: Holder, size: int) -> None:
        """It came in whole, and is being carried out."""
        self._remove(holder)
        self._add(holder, size)
        self._admit()

    def give_back(self, holder: Holder) -> None:
        """What it held of requests."""
        if holder in self._rooms:
            self._remove(holder)
            self._admit()

    def unread(self, holder: Holder, size: int) -> None:
        """So much of answers waits for the holder, who has just taken a part, or begins to. With 0 he has taken all."""
        self.of_answers += size - self._answers.pop(holder, 0)
        if not size:
            return
        self._answers[holder] = size
        while self.of_answers > UNREAD_BYTES and len(self._answers) > 1:
            slowest = next(iter(self._answers))
            self.of_answers -= self._answers.pop(slowest)
            self._close(slowest)

    def forget(self, holder: Holder) -> None:
        """Its connection has ended."""
        self.give_back(holder)
        self.unread(holder, 0)

    async def run(self) -> None:
        """Take room from those who make nothing of it, whenever others wait for it."""
        while True:
            while not self._line:
                await self._is_needed.park()
            await trio.sleep(IDLE_SECONDS)
            self._admit()
            self._make_room(sum(place.size for place in self._line), trio.current_time())

    def _admit(self) -> None:
        """Whoever is next and finds room."""
        now = trio.current_time()
        while self._line:
            place = self._next(now)
            if self._rooms and self.of_requests + place.size > self.most:
                break
            del self._line[place]
            self._turn_of_oldest = not self._turn_of_oldest
            self._add(place.holder, place.size)
            place.given.set()
        self._tidy()
        self.read_bytes = SMALL_BYTES if self._line or self.of_requests >= self.most else READ_BYTES

    def _next(self, now: float) -> Place:
        """The smallest, and in turns with it whoever came first, if he has waited for long."""
        oldest = next(iter(self._line))
        if self._turn_of_oldest and now >= oldest.since + LONG_SECONDS:
            return oldest
        while self._by_size[0][2] not in self._line:
            heapq.heappop(self._by_size)
        return self._by_size[0][2]

    def _tidy(self) -> None:
        """Now and then those who are in the line no more."""
        if len(self._by_size) > 2 * len(self._line):
            self._by_size = [entry for entry in self._by_size if entry[2] in self._line]
            heapq.heapify(self._by_size)

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
