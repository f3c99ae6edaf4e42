"""The table `problems`: what is wrong with the log, in sentences.

Rule: what is missing or double is told, never hidden; what is explained by something else is told
once.
"""

from collections.abc import Iterator
from typing import Any

from .places import Run, Runs
from .state import ClusterState, EpochState, State


def problem_rows(state: State) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of problems, in order."""
    for cluster_id, cluster in sorted(state.clusters.items()):
        for row in _of_cluster(cluster):
            yield {"cluster_id": cluster_id, **row}
    yield from _of_files(state)


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
    for first, last, _ in Runs.of(epoch.runs).gaps():
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


def _of_files(state: State) -> Iterator[dict[str, Any]]:
    nowhere = dict.fromkeys(("cluster_id", "epoch", "first_sequence", "last_sequence", "events"))
    for file, rest in sorted(state.torn.items()):
        text = f"The file is finished, and ends in the middle of a line: {rest} bytes of an event that was not written to its end."
        yield {"kind": "torn", "text": text, **nowhere, "file": file}
    for file, why in sorted(state.unreadable.items()):
        text = f"The file cannot be read: {why}. It will be when it can."
        yield {"kind": "unreadable", "text": text, **nowhere, "file": file}
