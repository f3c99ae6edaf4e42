"""The offsets of groups in the store: what every node and the next controller have of them, what
others write, and what is removed when.
"""

import base64

import trio

from minicontroller.clock import Clock, now_ms
from minicontroller.cluster.groups import CommittedOffset, Group, GroupHeader
from minicontroller.cluster.znodes import groups
from minicontroller.controller.active.entity_writing import stage_group
from minicontroller.controller.active.jobs import Draft
from minicontroller.controller.active.offset_expiry import OffsetExpiry
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.store.base import Create, SetData, Store
from tests.store.worlds import in_both_worlds
from tests.support.small_cluster import SmallCluster

HOUR_MS, NEVER_OLD_MS = 3_600_000, 2**50
PATH = groups.group_path("g")


def group(
    cluster: SmallCluster, *offsets: int, topic: str = "t", group_id: str = "g", at_ms: int = NEVER_OLD_MS
) -> Group:
    """Return a group with these offsets in the partitions of a topic, from 0 on."""
    kept = {index: CommittedOffset(offset, 1, "é", at_ms) for index, offset in enumerate(offsets)}
    known = cluster.controller.image.groups.get(groups.name_of(group_id))
    before = known or Group.of(GroupHeader(group_id, "User:alice"), {})
    return before.with_offsets(cluster.controller.image.topics[topic], kept)


async def write(cluster: SmallCluster, after: Group | None, name: str = "g") -> None:
    """Write as a handler does, and wait until every node has it."""

    async def plan(draft: Draft) -> None:
        stage_group(draft, name, after)

    await cluster.controller.writer.write(plan)
    await cluster.controller.propagation.wait_acknowledged(configs=True)


def known(cluster: SmallCluster) -> list[dict[str, list[int]]]:
    """Return the offsets of each group, as each node knows them."""
    return [
        {name: [each.offset for _, each in sorted(found.placed())]
         for name, found in member.node.cache.image.groups.items()}
        for _, member in sorted(cluster.members.items())
    ]  # fmt: skip


@in_both_worlds
async def test_offsets_are_kept_everywhere(cluster: SmallCluster) -> None:
    """Every node has the offsets when the change is complete, and so has the next controller, which
    can change and remove them.
    """
    await cluster.create("t")
    await write(cluster, group(cluster, 5, 6))
    assert known(cluster) == [{"g": [5, 6]}] * 3
    await cluster.elect_anew()
    assert [each.metadata for _, each in cluster.controller.image.groups["g"].placed()] == ["é"] * 2
    assert cluster.controller.image.rooms["User:alice"].size == cluster.controller.image.groups["g"].size > 0
    await write(cluster, group(cluster, 7, 6))
    assert known(cluster) == [{"g": [7, 6]}] * 3
    await write(cluster, None)
    assert known(cluster) == [{}] * 3
    assert not cluster.controller.image.rooms


async def test_what_others_write_is_followed(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """With a notification it is known everywhere; an offset that cannot be read is none, a group
    keeps its name without a header, and the next change writes either over.
    """
    await cluster.create("t")
    topic_id = cluster.controller.image.topics["t"].topic_id
    at_0, notice = f"{PATH}/t-0", Create(groups.CHANGE_PREFIX, b"g\nt-0", sequential=True)
    header = Create(PATH, groups.encode_header(GroupHeader("g", "User:alice")))
    one, two = (groups.encode_offset(CommittedOffset(each, -1, "", NEVER_OLD_MS, topic_id)) for each in (1, 2))
    await other.commit([header, Create(at_0, one), Create(f"{PATH}/what?", b""), notice])
    await cluster.until(lambda: known(cluster) == [{"g": [1]}] * 3)
    nonsense = Create(groups.CHANGE_PREFIX, b"\xff/", sequential=True)
    await other.commit([SetData(at_0, b"no offset"), nonsense, notice])
    everywhere = [member.node for member in cluster.members.values()]
    await cluster.until(
        lambda: all(not each.cache.image.groups["g"].offsets["t"][0].is_readable for each in everywhere)
    )
    assert all(each.reader.counts()["unreadable"] == 1 for each in everywhere)
    await write(cluster, group(cluster, 3))
    await write(cluster, group(cluster, 4))
    assert known(cluster) == [{"g": [4]}] * 3
    await other.commit([SetData(at_0, two), SetData(PATH, b'{"version":2,"group":"h"}'), notice])
    await cluster.until(lambda: all(not each.cache.image.groups["g"].header.is_readable for each in everywhere))
    assert {each.cache.image.groups["g"].header.owner for each in everywhere} == {"User:alice"}
    await cluster.elect_anew()
    assert cluster.controller.image.groups["g"].header == GroupHeader("g", version=1, is_readable=False)
    await write(cluster, group(cluster, 2, group_id="h"), "h")
    await write(cluster, group(cluster, 5).repaired("g", "User:bob"))
    assert known(cluster) == [{"g": [5], "h": [2]}] * 3
    assert {each.cache.image.groups["g"].header for each in everywhere} == {GroupHeader("g", "User:bob", version=2)}
    assert cluster.controller.image.rooms["User:bob"].size == cluster.controller.image.groups["g"].size


OLDER = b'{"version":1,"group":"g","topics":{"t":{"id":"%s","partitions":{"0":[5,1,%d,"x"],"1":[6,-1,%d,""]}}}}'


async def test_offsets_of_an_earlier_version_move(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """An earlier version kept all offsets of a group in its own znode. They are read, and when a
    controller begins, or somebody sets one of them, each moves to a znode of its own.
    """
    await cluster.create("t")
    topic_id = base64.urlsafe_b64encode(cluster.controller.image.topics["t"].topic_id).rstrip(b"=")
    older = OLDER % (topic_id, NEVER_OLD_MS, NEVER_OLD_MS)
    await other.commit([Create(PATH, older), Create(groups.CHANGE_PREFIX, b"g", sequential=True)])
    await cluster.until(lambda: known(cluster) == [{"g": [5, 6]}] * 3)
    await write(cluster, group(cluster, 7))
    await other.commit([Create(groups.group_path("h"), older.replace(b'"g"', b'"h"'))])
    await cluster.elect_anew()
    await cluster.until(lambda: cluster.controller.image.groups["h"].header.older is None)
    await cluster.until(lambda: known(cluster) == [{"g": [7, 6], "h": [5, 6]}] * 3)
    for name in ("g", "h"):
        assert await other.children(groups.group_path(name)) == ["t-0", "t-1"]
    moved = cluster.controller.image.groups["h"].offsets["t"][0]
    assert (moved.leader_epoch, moved.metadata, moved.committed_ms) == (1, "x", NEVER_OLD_MS)


async def test_offsets_expire(cluster: SmallCluster, other: Store, jumping_clock: Clock) -> None:
    """Offsets that were set longer ago than `offsets.retention.minutes` are removed, and so are
    those of topics that are gone, also damaged ones; a group without any is removed.
    """
    await cluster.create("t", "u")
    await write(cluster, group(cluster, 1, at_ms=now_ms()))
    jumping_clock.advance(2 * HOUR_MS / 1000)
    now = now_ms()
    await write(cluster, group(cluster, 2, at_ms=now, group_id="young"), "young")
    await write(cluster, group(cluster, 3, topic="u", at_ms=now, group_id="orphan"), "orphan")
    junk = [
        Create(f"{groups.group_path(name)}/{offset}", b"junk") for name, offset in (("orphan", "u-1"), ("young", "t-1"))
    ]
    notices = [Create(groups.CHANGE_PREFIX, data, sequential=True) for data in (b"orphan\nu-1", b"young\nt-1")]
    await other.commit([*junk, *notices])
    await cluster.until(lambda: known(cluster)[0] == {"g": [1], "young": [2, 0], "orphan": [3, 0]})
    await cluster.until(lambda: len(cluster.controller.image.groups["orphan"].offsets["u"]) == 2)
    await cluster.delete("u")
    await cluster.until(lambda: "u" not in cluster.controller.image.topics)
    config = config_from_mapping({"offsets.retention.minutes": "60"})
    with trio.move_on_after(1):
        await OffsetExpiry(config, cluster.controller.writer).run()
    await cluster.controller.propagation.wait_acknowledged(configs=True)
    assert known(cluster) == [{"young": [2, 0]}] * 3
    assert await other.children(groups.ROOT) == ["young"]
