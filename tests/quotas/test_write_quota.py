"""How many bytes the changes of one user may write to the store."""

from typing import Any

import trio

from minicontroller.cluster.quotas import write_quota
from minicontroller.cluster.quotas.write_quota import BURST_BYTES, BYTES_PER_SECOND, MANY_USERS, WriteQuota
from minicontroller.protocol.messages.offset_commit import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.handlers.test_groups import COORDINATORS

EVE = "User:eve"


def quota() -> WriteQuota:
    return WriteQuota(lambda: int(trio.current_time() * 1000))


async def test_who_wrote_too_much_waits_on_every_connection(autojump_clock: object) -> None:
    """A burst is free. Behind it the user's changes wait in turn for what they wrote, and nobody
    else waits.
    """
    writes = quota()
    assert writes.take(EVE, BURST_BYTES) == 0
    assert writes.take(EVE, 3 * BYTES_PER_SECOND) == 3_000
    began = trio.current_time()
    seen: list[float] = []

    async def change() -> None:
        async with writes.turn(EVE):
            seen.append(trio.current_time() - began)
            writes.take(EVE, 2 * BYTES_PER_SECOND)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(change)
        async with writes.turn("User:alice"):
            assert trio.current_time() == began
    assert [round(each) for each in seen] == [3, 5, 7]


async def test_what_is_remembered_of_users_is_bounded(autojump_clock: object) -> None:
    """A user whose bucket is full again is forgotten."""
    writes = quota()
    writes.take(EVE, 2 * BURST_BYTES)
    for number in range(3 * MANY_USERS):
        writes.take(f"User:{number}", 1)
        await trio.sleep(0.01)
    assert EVE in writes._users and len(writes._users) <= MANY_USERS


async def commit(cluster: Ruling, metadata: str, version: int, **who: Any) -> int:
    parts = [OffsetCommitPartition(partition_index=0, committed_offset=5, committed_metadata=metadata)]
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitTopic(name="t", partitions=parts)])
    answer = await cluster.ask(request, version, **who)
    assert answer.topics[0].partitions[0].error_code == 0
    return int(answer.throttle_time_ms)


async def test_clients_are_told(monkeypatch: Any, autojump_clock: object) -> None:
    """Every change counts with what it writes. The answer that goes beyond the limit is a success,
    and says how long the client has to wait.
    """
    monkeypatch.setattr(write_quota, "BURST_BYTES", 2_000)
    monkeypatch.setattr(write_quota, "BYTES_PER_SECOND", 1_000)
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 1, 1))
        assert await commit(cluster, "x", 9, principal=EVE) == 0
        assert 1_000 < await commit(cluster, "x" * 4_000, 9, principal=EVE) < 20_000
        assert await commit(cluster, "x", 9, principal="User:alice") == 0
        began = trio.current_time()
        await commit(cluster, "x", 9, principal=EVE)
        assert trio.current_time() - began > 1
