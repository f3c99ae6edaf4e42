"""The history of topics and decisions, from the audit log if there is one, else from memory.

Rule: an answer says where it comes from, whether there is more, and what could not be read. Events
that are still in memory are written before a search, so that none is missing between memory and
files. Searches run one after the other, outside of the event loop; if too many wait, another client
is asked to come again.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
import trio

from ...admin.recording.decisions import MAX_CHARACTERS, RecentDecision, explanation, notes
from ...audit.event import AuditEvent, Dropped, Effect, Observed, Removal
from ...audit.event import Decision as Decided
from ...audit.outcomes import would_be_refused
from ...audit.searching import SearchCursor, SearchLimits, SearchQuery, SearchResult, parse_cursor, search
from ...protocol.error_codes import ErrorCode
from ...text import noun, plural
from .shown import ShownProcess

ROWS = 50
"""The most entries of one answer."""
MAX_WAITING = 8
"""The most searches that wait; each may take seconds."""
FLUSH_SECONDS = 2.0
"""How long a search waits until events are written."""
AUDIT, MEMORY = "audit", "memory"
NO_ERROR = ErrorCode.NONE.name
LAST_MS = 8_640_000_000_000_000
"""The latest time, in milliseconds since 1970, that a browser can show."""

MAX_DIGITS = 16
"""The most digits of a number in a query; milliseconds since 1970 have 13."""

T = TypeVar("T")


class BusyError(Exception):
    """Too many searches wait already."""


class HistoryFilter(NamedTuple):
    name: str = ""
    """The name of a topic; empty for all decisions."""
    refused: bool = False
    """Whether only changes are wanted that were refused or would be."""
    until_ms: float = math.inf
    """The end, in milliseconds since 1970."""

    def leaves_out(self, decision: RecentDecision) -> bool:
        return self.refused and decision.outcome == NO_ERROR and not decision.would_be_refused


class UnrequestedEvent(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An event of a topic that no request explains."""

    event: str
    """`removal`, `observed` or `dropped`, as in the audit log."""
    time: float
    node: int
    epoch: int
    name: str = ""
    reason: str = ""


class HistoryPage(msgspec.Struct, frozen=True):
    """The events of a topic, newest first."""

    source: str
    """`audit`, or `memory`: the last decisions of this process."""
    entries: Sequence[RecentDecision | UnrequestedEvent]
    older: str = ""
    """The cursor of the next, older page; empty if there is none."""
    problems: Sequence[str] = ()
    """Sentences about events that could not be read, or not be written yet."""


class DeletedTopic(msgspec.Struct, frozen=True):
    name: str
    time: float


class DeletedTopics(msgspec.Struct, frozen=True):
    """Deleted topics, newest first; each name once."""

    source: str
    rows: Sequence[DeletedTopic]
    older: str = ""
    problems: Sequence[str] = ()


class HistoryReader:
    """Reads the audit logs of the nodes of a process, for pages."""

    def __init__(self, process: ShownProcess) -> None:
        self._process = process
        self._turn = trio.Lock()

    async def history(self, wanted: HistoryFilter, older: str) -> HistoryPage:
        """Return a page of events; `older` is the cursor of the page before it. Raises
        BusyError.
        """
        if not self._process.audit_logs:
            return self._remembered(wanted, older)
        needles = [msgspec.json.encode(wanted.name) if wanted.name else b'"kind":"decision"', b'"kind":"dropped"']
        question: SearchQuery[RecentDecision | UnrequestedEvent] = SearchQuery(
            self._process.log_id, needles, partial(history_entry, wanted)
        )
        said = await self._search(question, older)
        return HistoryPage(AUDIT, said.rows, _text(said.next), said.problems)

    def _remembered(self, wanted: HistoryFilter, older: str) -> HistoryPage:
        before = int(older) if older.isascii() and older.isdigit() and len(older) < MAX_DIGITS else math.inf
        decisions = self._process.decisions
        known = decisions.of("topic", wanted.name) if wanted.name else list(decisions)
        found = [each for each in reversed(known) if each.number < before and not wanted.leaves_out(each)]
        return HistoryPage(MEMORY, found[:ROWS], str(found[ROWS - 1].number) if len(found) > ROWS else "")

    async def deleted(self, part: str, older: str) -> DeletedTopics:
        """Return the deleted topics whose names contain `part` in any case. Raises BusyError."""
        there = self._process.image.topics
        if not self._process.audit_logs:
            decided = reversed(list(self._process.decisions))
            gone = [DeletedTopic(each.name, each.time) for each in decided if _deletes(each, part)]
            return DeletedTopics(MEMORY, [each for each in _once(gone) if each.name not in there])
        needles = [b'"kind":"removal"', b'"kind":"observed"']
        said = await self._search(
            SearchQuery(self._process.log_id, needles, partial(deleted_topic, part.lower())), older
        )
        rows = [each for each in _once(said.rows) if each.name not in there]
        return DeletedTopics(AUDIT, rows, _text(said.next), said.problems)

    async def _search(self, question: SearchQuery[T], older: str) -> SearchResult[T]:
        if self._turn.statistics().tasks_waiting >= MAX_WAITING:
            raise BusyError
        async with self._turn:
            logs = self._process.audit_logs
            unwritten = sum([await each.flush(FLUSH_SECONDS) for each in logs])
            folders = list(dict.fromkeys(each.settings.folder for each in logs))
            found = await trio.to_thread.run_sync(
                search, folders, question, SearchLimits(ROWS), parse_cursor(older), trio.from_thread.check_cancelled
            )
        if unwritten:
            found.problems.append(f"events that could not be written yet: {unwritten}")
        return found


def _text(cursor: SearchCursor | None) -> str:
    return "" if cursor is None else str(cursor)


def _deletes(decision: RecentDecision, part: str) -> bool:
    is_deletion = decision.api == "DeleteTopics" and decision.outcome == NO_ERROR and not decision.validate_only
    return is_deletion and part.lower() in decision.name.lower()


def _once(topics: Sequence[DeletedTopic]) -> Sequence[DeletedTopic]:
    named: dict[str, DeletedTopic] = {}
    for each in topics:
        named.setdefault(each.name, each)
    return list(named.values())


# ------------------------------------------------------------------ from events to what is shown


def history_entry(wanted: HistoryFilter, event: AuditEvent) -> RecentDecision | UnrequestedEvent | None:
    name = wanted.name
    match event:
        case _ if event.time_ms > wanted.until_ms:
            return None
        case Decided():
            if name and (event.name != name or event.resource != "topic"):
                return None
            decision = _decision(event)
            return None if wanted.leaves_out(decision) else decision
        case Dropped():
            count = event.last_sequence - event.first_sequence + 1
            return _unrequested_event(
                event,
                "",
                f"{plural(count, 'event')} of all topics {noun(count, 'is', 'are')} missing here: {event.reason}",
            )
        case Removal() if event.topic == name:
            return _unrequested_event(event, name, "its clean-up is complete")
        case Observed() if event.topic == name:
            return _unrequested_event(event, name, _seen(event))
        case _:
            return None


def deleted_topic(part: str, event: AuditEvent) -> DeletedTopic | None:
    match event:
        case Removal(topic=name) | Observed(topic=name, after=None) if part in name.lower():
            return DeletedTopic(_cut(name), _seconds(event))
        case _:
            return None


def _seen(event: Observed) -> str:
    """Describe a change without a request: the topic appeared, vanished or changed."""
    if event.reassignment:
        return "a reassignment of its partitions went on or ended"
    if event.after is None:
        return "it was removed without a request"
    return "it was created without a request" if event.before is None else "it was changed without a request"


def _unrequested_event(event: AuditEvent, name: str, reason: str) -> UnrequestedEvent:
    kind = type(event).__name__.lower()
    return UnrequestedEvent(kind, _seconds(event), event.decided_node, event.epoch, _cut(name), _cut(reason))


def _decision(event: Decided) -> RecentDecision:
    objects = would_be_refused(event)
    explained = explanation(event.message or "", event.policy, objects, is_enforced=event.enforced)
    return RecentDecision(
        number=0,
        time=_seconds(event),
        node=event.decided_node,
        epoch=event.epoch,
        api=_cut(event.api),
        kind=_cut(event.resource),
        name=_cut(event.name),
        outcome=_cut(event.error),
        reason=_cut(explained.message),
        would_be_refused=objects is not None,
        policy=_cut(explained.policy),
        rule=_cut(explained.rule),
        principal=_cut(event.principal or ""),
        client=_cut(event.client_id or ""),
        host=_cut(event.client_host),
        software=_cut(event.software),
        validate_only=event.validate_only,
        sequence=event.sequence,
        in_doubt=event.effect is Effect.UNKNOWN,
        noted=notes(event.policy, objects),
    )


def _seconds(event: AuditEvent) -> float:
    """Convert the time of an event to seconds since 1970; 0 if it is out of range."""
    return event.time_ms / 1000 if 0 <= event.time_ms <= LAST_MS else 0.0


def _cut(text: str) -> str:
    """Shorten a text of an audit file, which may have any length."""
    return text[:MAX_CHARACTERS]
