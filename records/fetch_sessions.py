"""Fetch sessions (KIP-227): a consumer names its partitions once and then only what changed, and is
answered with what changed only. (Kafka: FetchSession, FetchManager.)
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.fetch import FetchedPartition, FetchPartition, FetchRequest
from ..protocol.schema import ZERO_UUID

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
LAST_EPOCH = 2**31 - 1
FIRST_VERSION_BY_ID = 13

Key = tuple[str, bytes, int]


class Wanted(msgspec.Struct):
    """A partition that a session, or a request without one, reads from."""

    topic: str
    """Its name, before version 13."""
    topic_id: bytes
    partition: FetchPartition
    high_watermark: int = -1
    """The high watermark that the client was last given."""
    log_start: int = -1

    @property
    def key(self) -> Key:
        return self.topic, self.topic_id, self.partition.partition

    def note(self, answered: FetchedPartition) -> bool:
        """Note what a partition is answered with, and return whether the client has to get it."""
        is_changed = (self.high_watermark, self.log_start) != (answered.high_watermark, answered.log_start_offset)
        failed = answered.error_code != ErrorCode.NONE
        self.high_watermark = -1 if failed else answered.high_watermark
        self.log_start = answered.log_start_offset
        return bool(
            is_changed
            or failed
            or answered.records
            or answered.preferred_read_replica != -1
            or answered.diverging_epoch.epoch != -1
        )


Row = tuple[Wanted, FetchedPartition]


class FetchAnswer(msgspec.Struct, frozen=True):
    error: ErrorCode
    session_id: int
    rows: Sequence[Row] = ()


class Session:
    def __init__(self, session_id: int, wanted: Iterable[Wanted], now: int, *, by_id: bool, privileged: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.by_id = by_id
        self.privileged = privileged
        self.created = self.last_used = now
        self.partitions = {each.key: each for each in wanted}

    @property
    def worth(self) -> tuple[bool, int, int]:
        return self.privileged, len(self.partitions), self.id

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        for each in wanted:
            known = self.partitions.setdefault(each.key, each)
            known.partition = each.partition
        for key in forgotten:
            self.partitions.pop(key, None)

    def advance(self, now: int) -> None:
        self.last_used = now
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1

    def changed(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that the client has to get. A partition with records goes behind the
        others, so that each gets its turn.
        """
        shown = []
        for wanted, answered in rows:
            if not wanted.note(answered):
                continue
            shown.append((wanted, answered))
            if answered.records and self.partitions.get(wanted.key) is wanted:
                self.partitions[wanted.key] = self.partitions.pop(wanted.key)
        return shown


class FetchContext:
    """One request of Fetch: what it reads, and how it is answered."""

    def __init__(self, wanted: Sequence[Wanted] = (), error: ErrorCode = ErrorCode.NONE) -> None:
        self.error = error
        """If there is one, it is the whole answer."""
        self.wanted = wanted

    def answer(self, rows: Sequence[Row]) -> FetchAnswer:
        return FetchAnswer(self.error, NO_SESSION, rows)

    def throttled(self) -> FetchAnswer:
        """Return the answer to a client that has to wait."""
        return FetchAnswer(self.error, NO_SESSION)


class _FullContext(FetchContext):
    """A request that asks for a session."""

    def __init__(self, wanted: Sequence[Wanted], create: Callable[[Sequence[Wanted]], int]) -> None:
        super().__init__(wanted)
        self._create = create

    def answer(self, rows: Sequence[Row]) -> FetchAnswer:
        for wanted, answered in rows:
            wanted.note(answered)
        return FetchAnswer(ErrorCode.NONE, self._create([wanted for wanted, _ in rows]), rows)


class _IncrementalContext(FetchContext):
    def __init__(self, session: Session) -> None:
        super().__init__(list(session.partitions.values()))
        self._session = session
        self._epoch = session.epoch

    def answer(self, rows: Sequence[Row]) -> FetchAnswer:
        if self._session.epoch != self._epoch:
            return FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self._session.id)
        return FetchAnswer(ErrorCode.NONE, self._session.id, self._session.changed(rows))

    def throttled(self) -> FetchAnswer:
        is_current = self._session.epoch == self._epoch
        error = ErrorCode.NONE if is_current else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return FetchAnswer(error, self._session.id)


class FetchSessions:
    """The sessions of one broker (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, draw: Callable[[], int], slots: int = 1000, min_eviction_ms: int = 120_000) -> None:
        """`draw` returns ids for sessions that nobody can guess, from 1 to 2^31 - 1."""
        self._draw = draw
        self._slots = slots
        self._min_eviction_ms = min_eviction_ms
        self._sessions: dict[int, Session] = {}
        """In the order of their last use."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def open(self, request: FetchRequest, version: int, now: int, *, privileged: bool = False) -> FetchContext:
        """Return what a request reads. A follower's session is privileged."""
        by_id = version >= FIRST_VERSION_BY_ID
        wanted = [
            Wanted("" if by_id else topic.topic, topic.topic_id if by_id else ZERO_UUID, partition)
            for topic in request.topics
            for partition in topic.partitions
        ]
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._continued(request, wanted, now, by_id=by_id)
        self._sessions.pop(request.session_id, None)
        distinct = list({each.key: each for each in wanted}.values())
        if request.session_epoch == FINAL_EPOCH:
            return FetchContext(distinct)
        return _FullContext(distinct, lambda found: self._create(found, now, by_id=by_id, privileged=privileged))

    def _continued(self, request: FetchRequest, wanted: Sequence[Wanted], now: int, *, by_id: bool) -> FetchContext:
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchContext(error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            return FetchContext(error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(wanted, _forgotten(request, by_id=by_id))
        del self._sessions[session.id]
        if not session.partitions:
            return FetchContext(wanted)
        self._sessions[session.id] = session
        session.advance(now)
        return _IncrementalContext(session)

    def _create(self, wanted: Sequence[Wanted], now: int, *, by_id: bool, privileged: bool) -> int:
        """Return the id of a new session, or NO_SESSION if there is no room: the client then goes
        on with full requests.
        """
        if len(self._sessions) >= self._slots and not self._evict(len(wanted), now, privileged=privileged):
            return NO_SESSION
        session_id = self._draw()
        while session_id in self._sessions:
            session_id = self._draw()
        self._sessions[session_id] = Session(session_id, wanted, now, by_id=by_id, privileged=privileged)
        return session_id

    def _evict(self, size: int, now: int, *, privileged: bool) -> bool:
        """End a session that is stale, or one that is worth less than a new one."""
        stale = next(iter(self._sessions.values()), None)
        if stale is None:
            return False
        if now - stale.last_used > self._min_eviction_ms:
            del self._sessions[stale.id]
            return True
        least = min(
            (each for each in self._sessions.values() if self._is_evictable(each, now, privileged=privileged)),
            key=lambda each: each.worth,
            default=None,
        )
        if least is None or (privileged, size, LAST_EPOCH) < least.worth:
            return False
        del self._sessions[least.id]
        return True

    def _is_evictable(self, session: Session, now: int, *, privileged: bool) -> bool:
        is_old = now - session.created > self._min_eviction_ms
        return is_old or (privileged and not session.privileged)


def _forgotten(request: FetchRequest, *, by_id: bool) -> list[Key]:
    return [
        ("" if by_id else topic.topic, topic.topic_id if by_id else ZERO_UUID, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]
