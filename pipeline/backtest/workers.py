"""What Spark's workers do: what a slice is and its topics in, differences and a tally out, in batches of Arrow.

Rule: Spark carries and nothing more; what is asked and how it is compared stands in `replaying.py`. A worker holds one piece of its slice and the
cluster's topics, however long the history is. A policy that cannot be loaded or a line that cannot be read is a row of its own, because an exception
would be tried again, and told as a trace.
"""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from ...policies.audit_event import NamedState, State
from ...policies.faults import PolicyLoadError
from ...policies.rules import RuleFileError
from .candidate import Candidate
from .counterfactual import Otherwise
from .existing import Existing, Now, refused
from .reading import UnreadableTableError, events
from .replaying import ALWAYS, NOWHERE, AsRecorded, Backtest, Window, World
from .slices import Slice
from .tally import Tally
from .verdicts import Difference

HEAD, TOPIC = 0, 1
"""What a row is. First the head comes, which says what is to be done: a slice, or a cluster as it is now. Then its topics."""
NEW_OBJECTS = 10_000
"""After so many Python looks for cycles. Events have none, a candidate's exceptions may: with Python's own 700 it is a tenth of the time."""
OUT_ROWS = 500
"""Of a batch that goes back."""
DIFFERENCE, TALLY, REFUSED, FAILURE = "difference", "tally", "refused", "failure"

IN = "slice int, what int, text string"
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

_slices: msgspec.json.Decoder[Slice] = msgspec.json.Decoder(Slice)
_clusters: msgspec.json.Decoder[Now] = msgspec.json.Decoder(Now)
_states: msgspec.json.Decoder[NamedState] = msgspec.json.Decoder(NamedState)
_topics: msgspec.json.Decoder[Existing] = msgspec.json.Decoder(Existing)

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Job(msgspec.Struct, frozen=True):
    """What all workers are told."""

    candidate: Candidate
    window: Window = ALWAYS
    counterfactual: bool = False


def replay(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One slice."""
    return _answered(partial(_replayed, job), batches)


def scan(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The existing topics of one cluster."""
    return _answered(partial(_scanned, job), batches)


def _replayed(job: Job, head: str, texts: Iterator[str]) -> Iterator[dict[str, Any]]:
    gc.set_threshold(NEW_OBJECTS)
    slice_ = _slices.decode(head)
    topics: dict[str, State] = {}
    for named in map(_states.decode, texts):
        assert named.state is not None
        topics[named.topic] = named.state
    known = None if slice_.after == NOWHERE else topics
    world: World = Otherwise(known) if job.counterfactual else AsRecorded(known)
    with job.candidate.watched() as watched:
        backtest = Backtest(watched, world, after=slice_.after, window=job.window)
        for event, line in events(slice_.pieces):
            difference = backtest.feed(event, line)
            if difference is not None:
                yield _difference(difference)
    tally = backtest.tally()
    if isinstance(world, Otherwise):
        world.tell(tally, slice_.cluster_id)
    yield {"what": TALLY, "cluster_id": slice_.cluster_id, "body": tally.encode()}


def _scanned(job: Job, head: str, texts: Iterator[str]) -> Iterator[dict[str, Any]]:
    now = _clusters.decode(head)
    topics = {existing.topic: existing for existing in map(_topics.decode, texts)}
    with job.candidate.watched() as watched:
        for each in refused(watched, topics, now):
            yield {
                "what": REFUSED, "cluster_id": each.cluster_id, "topic": each.topic, "principal": each.principal,
                "rule": each.candidate.rule, "candidate": each.candidate.decision, "candidate_message": each.candidate.message,
                "body": msgspec.json.encode(each).decode(),
            }  # fmt: skip
    tally = Tally()
    tally.counts["existing",] = len(topics)
    tally.deeds |= watched.deeds
    yield {"what": TALLY, "cluster_id": now.cluster_id, "body": tally.encode()}


# ------------------------------------------------------------------ Arrow


def _answered(
    work: Callable[[str, Iterator[str]], Iterator[dict[str, Any]]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    texts = (text for batch in batches for text in batch.column(2).to_pylist())
    head = next(texts, None)
    if head is None:
        return
    answers = _told(work(head, texts))
    while rows := list(islice(answers, OUT_ROWS)):
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in OUT_ARROW]
        yield pa.RecordBatch.from_arrays(columns, schema=OUT_ARROW)


def _told(answers: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A failure is an answer as well."""
    try:
        yield from answers
    except (PolicyLoadError, RuleFileError, UnreadableTableError) as error:
        yield {"what": FAILURE, "body": str(error)}


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
