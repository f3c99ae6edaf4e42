"""The offsets of groups: set, read, removed and kept, at the controller and elsewhere."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from minicontroller.cluster import group_rooms
from minicontroller.cluster.group_rooms import GroupRoom
from minicontroller.cluster.znodes import groups
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_groups import DeleteGroupsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.describe_groups import DescribeGroupsRequest
from minicontroller.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from minicontroller.protocol.messages.list_groups import ListGroupsRequest
from minicontroller.protocol.messages.offset_commit import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from minicontroller.protocol.messages.offset_delete import OffsetDeletePartition, OffsetDeleteRequest, OffsetDeleteTopic
from minicontroller.protocol.messages.offset_fetch import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic
from minicontroller.store.base import Delete, SetData
from tests.audit.logs import decisions_in
from tests.handlers.asking import Client
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

AT = Mapping[int, int]
"""Offsets by partition."""
COORDINATORS = wanted("__consumer_offsets", placed={0: [1]})


async def commit(cluster: Ruling, group: str, at: AT, *, topic: str = "t", version: int = 9, **more: Any) -> list[int]:
    """Set offsets at node 1, and return the codes in the order of the answer."""
    parts = [OffsetCommitPartition(partition_index=index, committed_offset=each) for index, each in at.items()]
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitTopic(name=topic, partitions=parts)], **more)
    return [row.error_code for each in (await cluster.ask(request, version)).topics for row in each.partitions]


async def fetch(cluster: Ruling, group: str, *, node: int = 1, topic: str = "t") -> AT:
    """Return the offsets of a group, as this node knows them."""
    client = Client(cluster.nodes[node], handlers=APIS)
    request = OffsetFetchRequest(groups=[OffsetFetchGroup(group_id=group, topics=None)])
    ((row,),) = ((await client.ask(request, 9)).groups,)
    assert row.error_code == 0
    return {
        each.partition_index: each.committed_offset
        for found in row.topics
        if found.name == topic
        for each in found.partitions
    }


async def remove(cluster: Ruling, group: str, partitions: Sequence[int], topic: str = "t") -> tuple[int, list[int]]:
    parts = [OffsetDeletePartition(partition_index=index) for index in partitions]
    request = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteTopic(name=topic, partitions=parts)])
    answer = await cluster.ask(request, 0)
    return answer.error_code, [row.error_code for each in answer.topics for row in each.partitions]


async def state(cluster: Ruling, group: str) -> str:
    ((row,),) = ((await cluster.ask(DescribeGroupsRequest(groups=[group]), 5)).groups,)
    return str(row.group_state)


async def listed(cluster: Ruling) -> list[str]:
    return sorted(row.group_id for row in (await cluster.ask(ListGroupsRequest(), 5)).groups)


@pytest.mark.parametrize("version", range(10))
async def test_every_version_sets_the_same(version: int) -> None:
    """Offsets of partitions that exist are kept; the others are UNKNOWN_TOPIC_OR_PARTITION and come
    first.
    """
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 2, 1))
        assert await commit(cluster, "g", {0: 5, 9: 1, 1: 6}, version=version) == [3, 0, 0]
        assert await fetch(cluster, "g") == {0: 5, 1: 6}
        assert await listed(cluster) == ["g"]
        assert await state(cluster, "g") == "Empty"


@pytest.mark.parametrize("version", range(10))
async def test_every_version_reads_the_same(version: int) -> None:
    """What was never set is -1; in version 0 it is an error."""
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 2, 1))
        await commit(cluster, "g", {0: 5})
        topics = [OffsetFetchTopic(name="t", partition_indexes=[1, 0])]
        request = OffsetFetchRequest(group_id="g", topics=topics)
        if version >= 8:
            request = OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=topics)])
        answer = await cluster.ask(request, version)
        ((row,),) = (answer.groups[0].topics if version >= 8 else answer.topics,)
        unset = ErrorCode.NONE if version else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [(each.partition_index, each.committed_offset, each.error_code) for each in row.partitions] == [
            (1, -1, unset),
            (0, 5, 0),
        ]


async def test_offsets_are_merged_with_those_before() -> None:
    """A later commit replaces the partitions that it names, and no others."""
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 3, 1), wanted("u", 1, 1))
        await commit(cluster, "g", {0: 1, 1: 2})
        await commit(cluster, "g", {1: 3, 2: 4})
        await commit(cluster, "g", {0: 9}, topic="u")
        assert await fetch(cluster, "g") == {0: 1, 1: 3, 2: 4}
        assert await fetch(cluster, "g", topic="u") == {0: 9}


async def test_only_the_coordinator_answers() -> None:
    """Any other node answers NOT_COORDINATOR in each API's own way, and so do all nodes while there
    is no topic of coordinators.
    """
    async with ruling() as cluster:
        await cluster.make(wanted("t", 1, 1))
        for _ in range(2):
            assert await commit(cluster, "g", {0: 5, 4: 4}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 16]
            assert await remove(cluster, "g", [0]) == (16, [])
            deleted = await cluster.ask(DeleteGroupsRequest(groups_names=["g", "g"]), 2)
            assert [(row.group_id, row.error_code) for row in deleted.results] == [("g", 16)]
            many = OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=None)])
            ((row,),) = ((await cluster.ask(many, 9)).groups,)
            assert (row.error_code, row.topics) == (16, [])
            named = OffsetFetchRequest(group_id="g", topics=[OffsetFetchTopic(name="t", partition_indexes=[0])])
            assert (await cluster.ask(named, 7)).error_code == 16
            ((topic,),) = ((await cluster.ask(named, 1)).topics,)
            assert [each.error_code for each in topic.partitions] == [16]
            assert await listed(cluster) == []
            if "__consumer_offsets" not in cluster.image.topics:
                await cluster.make(wanted("__consumer_offsets", placed={0: [2]}))


async def test_a_group_has_no_members() -> None:
    """A commit of a generation is refused: UNKNOWN_MEMBER_ID if the group exists, else
    ILLEGAL_GENERATION.
    """
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 1, 1))
        of_member: dict[str, Any] = {"generation_id_or_member_epoch": 4, "member_id": "me"}
        assert await commit(cluster, "g", {0: 1}, **of_member) == [ErrorCode.ILLEGAL_GENERATION]
        assert await commit(cluster, "g", {0: 1}, member_id="me", group_instance_id="i") == [0]
        assert await commit(cluster, "g", {0: 2}, **of_member) == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert await fetch(cluster, "g") == {0: 1}


async def test_a_group_without_offsets_is_none() -> None:
    """With its last offset a group is gone, whoever removed it."""
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 2, 1))
        await commit(cluster, "g", {0: 1, 1: 2})
        assert await remove(cluster, "g", [0, 7]) == (0, [0, 3])
        assert await state(cluster, "g") == "Empty"
        assert await remove(cluster, "g", [1]) == (0, [0])
        assert await state(cluster, "g") == "Dead"
        assert await remove(cluster, "g", [1]) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
        assert await remove(cluster, "", [1]) == (ErrorCode.INVALID_GROUP_ID, [])
        assert await cluster.store.children(groups.ROOT) == []
        await commit(cluster, "g", {0: 1})
        answer = await cluster.ask(DeleteGroupsRequest(groups_names=["g", "h", "g"]), 2)
        assert [(row.group_id, row.error_code) for row in answer.results] == [("g", 0), ("h", 69)]
        assert await cluster.store.children(groups.ROOT) == []


LONG_NAME = "ö" * 300
"""The id of a group whose znode is named by a hash."""


async def damage(cluster: Ruling, group: str) -> str:
    """Damage the header of a group and its offset in partition 0, put foreign znodes below, and
    have every node see it. Returns the path of the group's znode.
    """
    path, store = groups.group_path(group), cluster.store
    await store.commit([SetData(path, b"junk"), SetData(f"{path}/t-0", b"")])
    for below in ("t-0/kid/more", "t-1/kid", "kid/more", "t-2"):
        await store.ensure(f"{path}/{below}")
    names = (f"{path}{below}" for below in ("", "/t-0", "/t-2"))
    cluster.controller.watches.entities_changed(names)
    for node in cluster.nodes.values():
        assert await node.reader.catch_up(store, [path, f"{path}/t-0", f"{path}/t-2"])
    await wait_all_tasks_blocked()
    return path


@pytest.mark.parametrize("name", ["g", LONG_NAME], ids=["short", "long"])
async def test_a_damaged_group_is_written_over(name: str, autojump_clock: object) -> None:
    """An offset that another program has damaged counts as none and a damaged header hides no
    offset; commits write both over, and a group is deleted with all that lies below it.
    """
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 3, 1))
        await commit(cluster, name, {0: 1, 1: 2})
        path = await damage(cluster, name)
        assert (await fetch(cluster, name), await listed(cluster)) == ({1: 2}, [name])
        assert await commit(cluster, name, {0: 5, 1: 6, 2: 7}) == [0, 0, 0]
        assert await fetch(cluster, name) == {0: 5, 1: 6, 2: 7}
        entry = await cluster.store.get(path)
        assert entry is not None and groups.decode_header(path.rpartition("/")[2], entry.data, 1).group_id == name
        await damage(cluster, name)
        assert await remove(cluster, name, [0]) == (0, [0])
        assert await cluster.store.children(path) == ["kid", "t-1", "t-2"]
        assert await remove(cluster, name, [1, 2]) == (0, [0, 0])
        assert await cluster.store.children(groups.ROOT) == []


@pytest.mark.parametrize("is_known", [False, True])
async def test_what_is_left_of_a_damaged_group_can_be_deleted(is_known: bool, autojump_clock: object) -> None:
    """A group of which nothing can be read is deleted as any other, also if a controller that has
    just begun has found it; without a name, it is not listed.
    """
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 3, 1))
        for name in ("g", LONG_NAME):
            if is_known:
                await commit(cluster, name, {0: 1})
            else:
                await cluster.store.ensure(f"{groups.group_path(name)}/t-0")
            path = await damage(cluster, name)
            await cluster.store.commit([Delete(f"{path}/t-1/kid"), Delete(f"{path}/t-1")])
            assert await listed(cluster) == []
            assert await state(cluster, name) == "Dead"
        answer = await cluster.ask(DeleteGroupsRequest(groups_names=["g", LONG_NAME]), 2)
        assert [row.error_code for row in answer.results] == [0, 0]
        assert await cluster.store.children(groups.ROOT) == []


async def test_offsets_go_with_their_topic() -> None:
    """The offsets of a deleted topic are gone at once, and a new topic of its name has none."""
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 1, 1))
        await commit(cluster, "g", {0: 1})
        await cluster.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=PATIENT_MS), 5)
        assert await fetch(cluster, "g") == {}
        assert (await state(cluster, "g"), await listed(cluster)) == ("Dead", [])
        while "t" in cluster.image.topics:
            await wait_all_tasks_blocked()
        await cluster.make(wanted("t", 1, 1))
        assert await fetch(cluster, "g") == {}
        assert await commit(cluster, "g", {0: 8}, generation_id_or_member_epoch=1) == [ErrorCode.ILLEGAL_GENERATION]
        assert await commit(cluster, "g", {0: 7}) == [0]
        assert await fetch(cluster, "g") == {0: 7}


NAMES = ("", ".", "..", "a/b", "a b%~", "ü" * 100, "x" * 32_000, "~empty", "<default>")


async def test_any_name_is_a_group_of_its_own() -> None:
    """A group id is any text; each has a znode of its own, below one parent."""
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 1, 1))
        for number, name in enumerate(NAMES):
            assert await commit(cluster, name, {0: number}) == [0]
        for number, name in enumerate(NAMES):
            assert await fetch(cluster, name) == {0: number}
        assert await listed(cluster) == sorted(NAMES)
        assert len(await cluster.store.children(groups.ROOT)) == len(NAMES)


async def test_offsets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one group, nor all together, nor their number outgrows what nodes can hold; what is
    there can still be changed.
    """
    too_large = [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 50, 1))
        await commit(cluster, "g", {0: 1})
        monkeypatch.setattr(group_rooms, "MAX_GROUP_BYTES", 1_000)
        assert await commit(cluster, "g", dict.fromkeys(range(50), 5)) == too_large * 50
        monkeypatch.setattr(group_rooms, "MAX_GROUPS", 1)
        assert await commit(cluster, "h", {0: 1}) == too_large
        ((owner, room),) = cluster.image.rooms.items()
        assert room == GroupRoom(cluster.image.groups["g"].size, 1) and owner == "User:ANONYMOUS"
        monkeypatch.setattr(group_rooms, "MAX_BYTES", room.size)
        assert await commit(cluster, "g", {1: 1}) == too_large
        assert await commit(cluster, "g", {0: 2**62}) == [0]
        assert await fetch(cluster, "g") == {0: 2**62}


@pytest.mark.parametrize("most", [{"MAX_GROUPS": 40}, {"MAX_BYTES": 30_000}])
async def test_a_user_leaves_room_for_others(most: Mapping[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may take no more room than is still free for users, however many groups and offsets
    that is, and none of what is set aside for operators. Who shares a group takes no room.
    """
    for name, value in most.items():
        monkeypatch.setattr(group_rooms, name, value)
    rights = (GROUP, "*", READ), (TOPIC, "*", READ)
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 200, 1))

        async def fill(user: str, *, operator: bool = False) -> int:
            """Set offsets for as long as a user may, and return how many groups have some."""
            also = [(CLUSTER, CLUSTER_NAME, AclOperation.ALTER)] if operator else []
            client = cluster.client(principal=user, authorization=allowing(*rights, *also, principal=user))
            count = 0
            while True:
                parts = [OffsetCommitPartition(partition_index=at, committed_offset=1) for at in range(5)]
                topics = [OffsetCommitTopic(name="t", partitions=parts)]
                answer = await client.ask(OffsetCommitRequest(group_id=f"{user}-{count}", topics=topics), 9)
                if answer.topics[0].partitions[0].error_code:
                    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                    return count
                count += 1

        eve, mallory, honest = [await fill(user) for user in ("User:eve", "User:mallory", "User:honest")]
        assert eve > mallory > honest > 1
        taken = eve + mallory + honest
        assert await commit(cluster, "User:eve-0", {0: 7}) == [0]
        assert await fill("User:admin", operator=True) >= taken // 3 > 1
        assert set(cluster.image.rooms) == {"User:eve", "User:mallory", "User:honest", "User:admin"}
        await cluster.ask(DeleteGroupsRequest(groups_names=["User:eve-0"]), 2)
        assert await commit(cluster, "User:eve-0", {0: 7}) == [0], "room comes back"


async def test_what_a_commit_writes_does_not_depend_on_the_group() -> None:
    """Only the znodes of the offsets that a request names are written."""
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 200, 1), wanted("u", 1, 1))
        await commit(cluster, "g", dict.fromkeys(range(200), 5))
        await commit(cluster, "g", {7: 6})
        await commit(cluster, "g", {0: 6}, topic="u")
        paths = [f"{groups.ROOT}/g", *(f"{groups.ROOT}/g/t-{at}" for at in range(200)), f"{groups.ROOT}/g/u-0"]
        entries = await cluster.store.get_many(paths)
        assert {path: each.stat.version for path, each in zip(paths, entries, strict=True) if each} == {
            path: int(path.endswith("/t-7")) for path in paths
        }
        assert max(len(each.data or b"") for each in entries if each) < 100


async def test_answers_are_bounded() -> None:
    """A short request cannot make an answer that fills the memory: neither by naming a group often,
    nor by very many numbers.
    """
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 100, 1))
        await commit(cluster, "g", dict.fromkeys(range(100), 5))
        often = OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=None)] * 2_001)
        assert {row.error_code for row in (await cluster.ask(often, 9)).groups} == {ErrorCode.INVALID_REQUEST}
        numbers = [OffsetFetchTopic(name="t", partition_indexes=list(range(200_001)))]
        assert (await cluster.ask(OffsetFetchRequest(group_id="g", topics=numbers), 7)).error_code == 42
        producers = [DescribeProducersTopic(name="t", partition_indexes=list(range(200_001)))]
        (row,) = (await cluster.ask(DescribeProducersRequest(topics=producers), 0)).topics
        assert {each.error_code for each in row.partitions} == {ErrorCode.INVALID_REQUEST}


async def test_metadata_is_bounded_as_in_kafka() -> None:
    """`offset.metadata.max.bytes` bounds what a client notes beside an offset; null is nothing."""
    async with ruling({"offset.metadata.max.bytes": "3"}) as cluster:
        await cluster.make(COORDINATORS, wanted("t", 3, 1))
        parts = [
            OffsetCommitPartition(partition_index=index, committed_offset=1, committed_metadata=text)
            for index, text in enumerate(("four", "abc", None))
        ]
        request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitTopic(name="t", partitions=parts)])
        answer = await cluster.ask(request, 9)
        assert [(row.partition_index, row.error_code) for row in answer.topics[0].partitions] == [
            (0, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            (1, 0),
            (2, 0),
        ]


# ------------------------------------------------------------------ who may do what

GROUP, TOPIC, CLUSTER = AclResourceType.GROUP, AclResourceType.TOPIC, AclResourceType.CLUSTER
READ, DESCRIBE, DELETE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE
NO_GROUP, NO_TOPIC = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
RIGHTS: dict[str, tuple[list[tuple[AclResourceType, str, AclOperation]], dict[str, object]]] = {
    "nothing": ([], {"set": [NO_GROUP] * 3, "read": (NO_GROUP, []), "all": (NO_GROUP, []), "remove": NO_GROUP}),
    "the group": (
        [(GROUP, "g", READ)],
        {"set": [NO_TOPIC] * 3, "read": (0, [NO_TOPIC] * 3), "all": (0, []), "remove": NO_GROUP, "list": ["g"]},
    ),
    "the group and a topic": (
        [(GROUP, "g", READ), (TOPIC, "t", READ)],
        {"set": [NO_TOPIC, NO_TOPIC, 0], "read": (0, [0, NO_TOPIC, NO_TOPIC]), "all": (0, ["t"]), "list": ["g"]},
    ),
    "to describe": (
        [(GROUP, "g", DESCRIBE), (TOPIC, "u", DESCRIBE)],
        {"set": [NO_GROUP] * 3, "read": (0, [0, NO_TOPIC, NO_TOPIC]), "all": (0, ["u"]), "list": ["g"]},
    ),
    "to delete": (
        [(GROUP, "g", DELETE), (TOPIC, "t", READ)],
        {"remove": 0, "delete": [NO_GROUP, 0], "list": ["g"]},
    ),
    "the cluster": ([(CLUSTER, CLUSTER_NAME, DESCRIBE)], {"list": ["g", "h"], "delete": [NO_GROUP] * 2}),
}


@pytest.mark.parametrize("rights", RIGHTS)
async def test_what_clients_may_do(rights: str, autojump_clock: object) -> None:
    """READ and DESCRIBE on a group and on topics, DELETE on a group: as Kafka asks for them; what
    may not be seen is left out where it was not named.
    """
    granted, expected = RIGHTS[rights]
    async with ruling() as cluster:
        await cluster.make(COORDINATORS, wanted("t", 1, 1), wanted("u", 1, 1))
        for group in ("g", "h"):
            for topic in ("t", "u"):
                await commit(cluster, group, {0: 1}, topic=topic)
        client = cluster.client(principal=ALICE, authorization=allowing(*granted))
        found = {what: await ask(client) for what, ask in QUESTIONS.items() if what in expected or what == "list"}
        assert found == {"list": [], **expected}


async def _set(client: Client) -> list[int]:
    topics = [
        OffsetCommitTopic(name=name, partitions=[OffsetCommitPartition(committed_offset=2)]) for name in ("t", "u", "v")
    ]
    answer = await client.ask(OffsetCommitRequest(group_id="g", topics=topics), 8)
    return [row.error_code for topic in answer.topics for row in topic.partitions]


async def _read(client: Client) -> tuple[int, list[int]]:
    topics = [OffsetFetchTopic(name=name, partition_indexes=[0]) for name in ("t", "u", "v")]
    answer = await client.ask(OffsetFetchRequest(group_id="g", topics=topics), 7)
    return answer.error_code, [row.error_code for topic in answer.topics for row in topic.partitions]


async def _read_all(client: Client) -> tuple[int, list[str]]:
    (row,) = (await client.ask(OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=None)]), 9)).groups
    return row.error_code, [topic.name for topic in row.topics]


async def _remove(client: Client) -> int:
    topics = [OffsetDeleteTopic(name="t", partitions=[OffsetDeletePartition(partition_index=5)])]
    return int((await client.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0)).error_code)


async def _delete(client: Client) -> list[int]:
    answer = await client.ask(DeleteGroupsRequest(groups_names=["h", "g"]), 2)
    return [row.error_code for row in answer.results]


async def _list(client: Client) -> list[str]:
    return sorted(row.group_id for row in (await client.ask(ListGroupsRequest(), 5)).groups)


QUESTIONS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "list": _list,
    "set": _set,
    "read": _read,
    "all": _read_all,
    "remove": _remove,
    "delete": _delete,
}


async def test_changes_are_recorded(tmp_path: Path) -> None:
    """Each change of a group is an event of the audit log with the offsets that it sets or removes,
    refused ones too.
    """
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        await cluster.make(COORDINATORS, wanted("t", 2, 1))
        await commit(cluster, "g", {0: 5, 1: 6})
        await commit(cluster, "g", {9: 6})
        await remove(cluster, "g", [1])
        await cluster.ask(DeleteGroupsRequest(groups_names=["g", "h"]), 2)
    seen = [
        (each.operation, each.name, each.config_operations, each.error_code)
        for each in decisions_in(tmp_path)
        if each.resource == "group"
    ]
    assert seen == [
        ("offset_commit", "g", {"t-0": "5", "t-1": "6"}, 0),
        ("offset_commit", "g", {"t-9": "6"}, 3),
        ("offset_delete", "g", {"t-1": None}, 0),
        ("delete_groups", "g", {}, 0),
        ("delete_groups", "h", {}, 69),
    ]
