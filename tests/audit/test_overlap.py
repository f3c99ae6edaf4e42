"""A replaced controller that still writes its decisions while its successor decides and writes."""

from pathlib import Path

import trio

from minicontroller.audit.files import audit_files
from tests.audit.logs import changed, events_in, found, replayed, shown, told, write
from tests.audit.test_replay import end
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster

NEVER_MS = "86400000"


def epochs(folder: Path) -> list[int]:
    return [event.epoch for event in events_in(folder)]


async def test_the_fenced_one_writes_last(tmp_path: Path, nursery: trio.Nursery) -> None:
    """Events of the replaced controller are ordered before its successor's. While they are missing
    nothing is invented, if some never come this is reported, and clocks that go backwards change
    nothing.
    """
    folder = tmp_path / "audit"
    settings = {"audit.dir": str(folder), "audit.flush.interval.ms": NEVER_MS}
    cluster = SmallCluster(nursery, MemoryWorld(), settings=settings)
    await cluster.start_in_turn(1)
    await cluster.create("early", "gone")
    await cluster.delete("gone")
    settings["audit.flush.interval.ms"] = "1"
    await cluster.start_in_turn(2)
    await cluster.create("last-of-the-first")
    first = cluster.controller
    await cluster.expire(1)
    await cluster.until_succeeded(first.epoch)
    second = cluster.controller
    assert (first.broker_id, second.broker_id) == (1, 2)
    await cluster.create("first-of-the-second")
    image = second.image
    assert second.recorder is not None
    await second.recorder.log.close()
    assert set(epochs(folder)) == {second.epoch}
    assert found(folder) == []

    await end(cluster)
    files = audit_files([folder])
    assert [file.stat().st_mtime_ns for file in files] == sorted((f.stat().st_mtime_ns for f in files), reverse=True)
    assert epochs(folder) == sorted(epochs(folder))
    assert set(epochs(folder)) == {first.epoch, second.epoch}
    assert found(folder) == []
    events = events_in(folder)
    assert told(replayed(events).topics) == shown(image)

    lines = files[0].read_bytes().splitlines(keepends=True)
    creation = next(number for number, line in enumerate(lines) if b'"last-of-the-first"' in line)
    files[0].write_bytes(b"".join(lines[:creation]))
    assert found(folder) == ["snapshot"]

    for file in files:
        file.unlink()
    for number, epoch in enumerate((first.epoch, second.epoch)):
        own = [
            changed(event, time_ms=10_000 - 5_000 * number - event.sequence) for event in events if event.epoch == epoch
        ]
        write(files[number], own)
    assert found(folder) == []
    assert told(replayed(events_in(folder)).topics) == shown(image)
