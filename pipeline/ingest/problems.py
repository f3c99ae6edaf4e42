"""The table `problems`: what is wrong with the log, in sentences.

Rule: what is missing or double is told, never hidden; what is explained by something else is told once.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .files import CANONICAL, Found
from .places import Run, Runs
from .state import ClusterState, EpochState, State


def problem_rows(state: State, found: Mapping[str, Found]) -> Iterator[dict[str, Any]]:
    """In order; `found` are the files as they are now."""
    for cluster_id, cluster in sorted(state.clusters.items()):
        for row in _of_cluster(cluster):
            yield {"cluster_id": cluster_id, **row}
    yield from _torn(state, found)


def _of_cluster(cluster: ClusterState) -> Iterator[dict[str, Any]]:
    dropped: dict[int, Runs] = {}
    for mark in cluster.marks:
        if mark.kind == "dropped":
            runs = dropped.setdefault(mark.epoch, Runs())
            if mark.first <= mark.last:
                runs.add(Run(mark.first, mark.last, 0, 0))
            text = f"The controller dropped events, because it could not write them: {mark.text}."
            yield _row("dropped", text, mark.epoch, mark.first, mark.last)
    for number, epoch in sorted(cluster.epochs.items()):
        yield from _of_epoch(number, epoch, dropped.get(number, Runs()))


def _of_epoch(number: int, epoch: EpochState, dropped: Runs) -> Iterator[dict[str, Any]]:
    for first, last, _ in Runs(epoch.runs).gaps():
        if dropped.within(first, last) != [(first, last)]:
            text = (
                "These events are in no file; what the topics were from here on is not known until the next snapshot."
            )
            yield _row("gap", text, number, first, last)
    for run in epoch.repeated:
        text = "These events were in the files more than once; each is in the tables once."
        yield _row("duplicate", text, number, run.first, run.last)
    for run in epoch.conflicts:
        text = "Two different events claim this place in the log; the one that was ingested first is in the tables."
        yield _row("conflict", text, number, run.first, run.last)
    if epoch.runs and epoch.runs[0].first == 1 and not epoch.begins_with_snapshot:
        text = "The epoch does not begin with a snapshot, so the topics are not known until the next one."
        yield _row("no-snapshot", text, number, 1, 1)


def _row(kind: str, text: str, epoch: int, first: int, last: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "text": text,
        "epoch": epoch,
        "first_sequence": first,
        "last_sequence": last,
        "events": last - first + 1,
        "file": None,
    }


def _torn(state: State, found: Mapping[str, Found]) -> Iterator[dict[str, Any]]:
    for name, rest in pending(state, found).items():
        if _is_finished(name, found):
            text = f"The file is finished, and its last line has no end: {rest} bytes of an event that was never written whole."
            row = dict.fromkeys(("cluster_id", "epoch", "first_sequence", "last_sequence", "events"))
            yield {"kind": "torn", "text": text, **row, "file": str(found[name].path)}


def pending(state: State, found: Mapping[str, Found]) -> dict[str, int]:
    """Files with something in them that was not read: how many bytes."""
    waiting = {}
    for name, file in found.items():
        progress = state.files.get(name)
        if progress is None:
            rest = file.size
        elif file.ending:
            rest = progress.rest
        else:
            rest = file.size - progress.consumed
        if rest > 0:
            waiting[name] = rest
    return waiting


def _is_finished(name: str, found: Mapping[str, Found]) -> bool:
    """It is compressed, or its node has begun another one."""
    if found[name].ending:
        return True
    key = _key(name)
    return key is not None and any(
        other is not None and other[:2] == key[:2] and other[2:] > key[2:] for other in map(_key, found)
    )


def _key(name: str) -> tuple[str, int, int, int, int] | None:
    """Cluster, node, epoch, first sequence, and which one of several of this name."""
    base = name.rpartition("/")[2]
    if CANONICAL.fullmatch(base) is None:
        return None
    stem, _, again = base.removesuffix(".ndjson").removeprefix("audit-").partition(".")
    cluster, (epoch, sequence, node) = stem[:22], stem[23:].split("-")
    return cluster, int(node), int(epoch), int(sequence), int(again or 0)
