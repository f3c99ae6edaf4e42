"""Whether an audit log is complete and consistent: events that are missing, double, cut, out of
order or contradict each other.

Rule: each fault is reported once, with its place, and reading goes on. A fault does not cause
findings about everything that follows it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from .event import AuditEvent, Dropped, SnapshotBegin, SnapshotEnd, SnapshotTopics, UnknownSchemaError
from .files import copies, name_parts, plain_name
from .reading import LinePlace, LocatedEvent, TornError, is_copy, read_all
from .replay import Replay


class LogFinding(msgspec.Struct, frozen=True):
    """A fault of an audit log, and the line where it shows."""

    kind: str
    """`gap`, `duplicate`, `torn`, `unreadable`, `unknown-schema`, `epoch-order`, `no-snapshot`,
    `snapshot`, `state`, `dropped`, `misplaced` or `no-copy`.
    """
    file: Path
    line: int
    text: str


class LogSummary(msgspec.Struct):
    files: set[Path] = msgspec.field(default_factory=set)
    events: int = 0
    findings: int = 0
    epochs: set[tuple[str, int]] = msgspec.field(default_factory=set)

    @property
    def clusters(self) -> set[str]:
        return {cluster for cluster, _ in self.epochs}


class _Cluster:
    """How far the log of one cluster was verified."""

    def __init__(self) -> None:
        self.epoch = -1
        self.sequence = 0
        self.node = -1
        self.replay = Replay()
        self.in_snapshot = False


class Verification:
    """Verifies an audit log. `summary` is complete after iterating over all `findings`."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.summary = LogSummary()
        self._paths = list(paths)
        self._clusters: dict[str, _Cluster] = {}

    def findings(self) -> Iterator[LogFinding]:
        for copy, original in sorted(copies(self._paths).items()):
            if not is_copy(copy, original):
                self.summary.findings += 1
                yield LogFinding("no-copy", copy, 1, f"it differs from {original.name}, which is read instead")
        for located in read_all(self._paths):
            self.summary.files.add(located.place.file)
            for kind, text in self._look(located):
                self.summary.findings += 1
                yield LogFinding(kind, located.place.file, located.place.line, text)

    def _look(self, located: LocatedEvent) -> Iterator[tuple[str, str]]:
        event = located.event
        if event is None:
            problem = located.problem
            kind = (
                "torn"
                if isinstance(problem, TornError)
                else "unknown-schema"
                if isinstance(problem, UnknownSchemaError)
                else "unreadable"
            )
            yield kind, str(problem)
            return
        self.summary.events += 1
        self.summary.epochs.add((event.cluster_id, event.epoch))
        yield from self._check_place(located.place, event)
        cluster = self._clusters.setdefault(event.cluster_id, _Cluster())
        if event.epoch < cluster.epoch:
            yield "epoch-order", f"epoch {event.epoch} comes after epoch {cluster.epoch}"
            return
        if event.epoch == cluster.epoch and event.sequence <= cluster.sequence:
            yield "duplicate", f"event {event.sequence} of epoch {event.epoch} was there before"
            return
        yield from self._follow(cluster, event)
        yield from self._check_snapshot(cluster, event)
        kind = "dropped" if isinstance(event, Dropped) else "snapshot" if isinstance(event, SnapshotEnd) else "state"
        for text in cluster.replay.apply(event):
            yield kind, text

    def _check_place(self, place: LinePlace, event: AuditEvent) -> Iterator[tuple[str, str]]:
        parts = name_parts(plain_name(place.file.name))
        if parts is not None and (parts.cluster_id, parts.epoch, parts.node) != (
            event.cluster_id,
            event.epoch,
            event.decided_node,
        ):
            yield (
                "misplaced",
                f"an event of cluster {event.cluster_id}, epoch {event.epoch}, node {event.decided_node} in another's file",
            )

    def _follow(self, cluster: _Cluster, event: AuditEvent) -> Iterator[tuple[str, str]]:
        """Report events that are missing between the last event of the cluster and this one."""
        is_new = event.epoch != cluster.epoch
        expected = 1 if is_new else cluster.sequence + 1
        if event.sequence != expected:
            what = (
                f"event {expected} is"
                if expected == event.sequence - 1
                else f"events {expected} to {event.sequence - 1} are"
            )
            yield "gap", f"{what} missing in epoch {event.epoch}"
            cluster.replay.lost()
            cluster.in_snapshot = False
        elif is_new and not isinstance(event, SnapshotBegin):
            yield "no-snapshot", f"epoch {event.epoch} does not begin with a snapshot"
            cluster.replay.lost()
        if is_new and cluster.in_snapshot:
            cluster.replay.lost()  # its controller was replaced while it wrote the snapshot
            cluster.in_snapshot = False
        cluster.epoch, cluster.sequence = event.epoch, event.sequence

    def _check_snapshot(self, cluster: _Cluster, event: AuditEvent) -> Iterator[tuple[str, str]]:
        if isinstance(event, SnapshotBegin):
            cluster.in_snapshot = True
        elif isinstance(event, SnapshotEnd):
            cluster.in_snapshot = False
        elif cluster.in_snapshot and not isinstance(event, SnapshotTopics):
            yield "snapshot", "the snapshot before this event has no end"
            cluster.in_snapshot = False
            cluster.replay.lost()
