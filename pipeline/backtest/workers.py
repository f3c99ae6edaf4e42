"""What Spark's workers do: a slice's rows in, differences and a tally out, in batches of Arrow.

Rule: Spark carries and nothing more; what is asked and how it is compared stands in `replaying.py`. A worker holds one batch and its cluster's
topics, however long the history is. A policy that cannot be loaded or a line that cannot be read is a row of its own, because an exception
would be tried again, and told as a trace.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

import msgspec
import pyarrow as pa

from ...policies.audit_event import AuditEvent, NamedState, State, UnreadableLineError, decode
from ...policies.faults import PolicyLoadError
from ...policies.rules import RuleFileError
from .candidate import Candidate
from .counterfactual import Otherwise
from .existing import Existing, Now, refused
from .replaying import ALWAYS, NOWHERE, AsRecorded, Backtest, Window, World
from .slices import Slice
from .tally import Tally
from .verdicts import Difference

STATE = -1
"""The epoch of rows that are topics at the slice's begin."""
OUT_ROWS = 500
"""Of a batch that goes back."""
DIFFERENCE, TALLY, REFUSED, FAILURE = "difference", "tally", "refused", "failure"

IN = "slice int, epoch int, sequence bigint, event string"
OUT = (
    "what string, cluster_id string, epoch int, sequence bigint, time timestamp, kind string, principal string, operation string, "
    "topic string, rule string, recorded string, recorded_message string, candidate string, candidate_message string, "
    "is_certain boolean, is_steady boolean, hidden array<string>, body string"
)
"""`body` is the difference, the tally, the refused topic or the failure as JSON."""
TEXTS = (
    "cluster_id",
    "kind",
    "principal",
    "operation",
    "topic",
    "rule",
    "recorded",
    "recorded_message",
    "candidate",
    "candidate_message",
)
OUT_ARROW = pa.schema(
    [
        ("what", pa.string()),
        ("cluster_id", pa.string()),
        ("epoch", pa.int32()),
        ("sequence", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        *((name, pa.string()) for name in TEXTS[1:]),
        ("is_certain", pa.bool_()),
        ("is_steady", pa.bool_()),
        ("hidden", pa.list_(pa.string())),
        ("body", pa.string()),
    ]
)

_states: msgspec.json.Decoder[NamedState] = msgspec.json.Decoder(NamedState)
_topics: msgspec.json.Decoder[Existing] = msgspec.json.Decoder(Existing)

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Row = tuple[int, memoryview]
"""Epoch, and the event's line or a topic as JSON."""


class Job(msgspec.Struct, frozen=True):
    """What all workers are told."""

    candidate: Candidate
    slices: tuple[Slice, ...] = ()
    window: Window = ALWAYS
    counterfactual: bool = False
    clusters: tuple[Now, ...] = ()
    """By the numbers that stand for slices where existing topics are asked for."""


class FailedError(Exception):
    """What kept a slice from being replayed, in a sentence."""


def replay(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One slice: first its topics, then its events in their order."""
    return _answered(partial(_replayed, job), batches)


def scan(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The existing topics of one cluster."""
    return _answered(partial(_scanned, job), batches)


def _replayed(job: Job, number: int, rows: Iterator[Row]) -> Iterator[dict[str, Any]]:
    slice_ = job.slices[number]
    topics: dict[str, State] = {}
    row = next(rows, None)
    while row is not None and row[0] == STATE:
        named = _states.decode(row[1])
        assert named.state is not None
        topics[named.topic] = named.state
        row = next(rows, None)
    known = None if slice_.after == NOWHERE else topics
    world: World = Otherwise(known) if job.counterfactual else AsRecorded(known)
    with job.candidate.watched() as watched:
        backtest = Backtest(watched, world, after=slice_.after, window=job.window)
        while row is not None:
            difference = backtest.feed(_event(row[1]), row[1])
            if difference is not None:
                yield _difference(difference)
            row = next(rows, None)
    tally = backtest.tally()
    if isinstance(world, Otherwise):
        world.tell(tally, slice_.cluster_id)
    yield {"what": TALLY, "cluster_id": slice_.cluster_id, "body": tally.encode()}


def _scanned(job: Job, number: int, rows: Iterator[Row]) -> Iterator[dict[str, Any]]:
    topics = {existing.topic: existing for _, text in rows for existing in [_topics.decode(text)]}
    with job.candidate.watched() as watched:
        for each in refused(watched, topics, job.clusters[number]):
            yield {
                "what": REFUSED, "cluster_id": each.cluster_id, "topic": each.topic, "principal": each.principal,
                "rule": each.candidate.rule, "candidate": each.candidate.decision, "candidate_message": each.candidate.message,
                "body": msgspec.json.encode(each).decode(),
            }  # fmt: skip
    tally = Tally()
    tally.counts["existing",] = len(topics)
    tally.deeds |= watched.deeds
    yield {"what": TALLY, "cluster_id": job.clusters[number].cluster_id, "body": tally.encode()}


def _event(line: memoryview) -> AuditEvent:
    try:
        return decode(line)
    except UnreadableLineError as error:
        raise FailedError(f"The table of events holds a line that is {error}.") from None


# ------------------------------------------------------------------ Arrow


def _answered(
    work: Callable[[int, Iterator[Row]], Iterator[dict[str, Any]]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    filled = filter(lambda batch: batch.num_rows, batches)
    first = next(filled, None)
    if first is None:
        return
    number = first.column(0)[0].as_py()
    answers = _told(work(number, chain.from_iterable(map(_rows, chain([first], filled)))))
    while rows := list(islice(answers, OUT_ROWS)):
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in OUT_ARROW]
        yield pa.RecordBatch.from_arrays(columns, schema=OUT_ARROW)


def _told(answers: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A failure is an answer as well."""
    try:
        yield from answers
    except (PolicyLoadError, RuleFileError, FailedError) as error:
        yield {"what": FAILURE, "body": str(error)}


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Without a copy of the texts, which are most of what comes."""
    epochs, texts = batch.column(1), batch.column(3)
    size = len(texts)
    numbers = memoryview(epochs.buffers()[1]).cast("i")[epochs.offset : epochs.offset + size]
    _, begins, data = texts.buffers()
    ends = memoryview(begins).cast("i")[texts.offset : texts.offset + size + 1]
    text = memoryview(data)
    return zip(numbers, (text[begin:end] for begin, end in pairwise(ends)), strict=True)


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "what": DIFFERENCE,
        "cluster_id": difference.cluster_id,
        "epoch": difference.epoch,
        "sequence": difference.sequence,
        "time": difference.time_ms * 1000,
        "kind": difference.kind.value,
        "principal": difference.principal,
        "operation": difference.operation,
        "topic": difference.topic,
        "rule": difference.rule,
        "recorded": difference.recorded.decision,
        "recorded_message": difference.recorded.message,
        "candidate": difference.candidate.decision,
        "candidate_message": difference.candidate.message,
        "is_certain": difference.is_certain,
        "is_steady": difference.is_steady,
        "hidden": list(difference.hidden),
        "body": msgspec.json.encode(difference).decode(),
    }
