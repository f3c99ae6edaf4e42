"""DescribeTopicPartitions: pages, cursors, and the same partitions as in Metadata."""

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.controller.metadata.entities import UNKNOWN_PARTITION, Topic
from minicontroller.protocol.acls import AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.handlers.asking import Client, broker, image, led, node_with, see, topic, topic_id
from tests.handlers.test_authorization import ALICE, allowing

Page = tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]
CLUSTER = image(
    [broker(1), broker(2)],
    [topic("b", led(1, 2), led(2, 1), led(1)), topic("a", led(1)), topic("c", led(2), led(2))],
)


def wanting(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def page(answer: Any) -> Page:
    cursor = answer.next_cursor
    return (
        [(each.name, [partition.partition_index for partition in each.partitions]) for each in answer.topics],
        None if cursor is None else (cursor.topic_name, cursor.partition_index),
    )


async def ask(*names: str, **how: Any) -> Page:
    return page(Client(node_with(CLUSTER)).ask_at_once(wanting(*names, **how), 0))


async def test_all_topics() -> None:
    """No names are all topics, in the order of their names."""
    assert await ask() == ([("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])], None)


async def test_all_topics_again() -> None:
    """A client that asks again, and another one, see the topics as they are by then, and each what
    it may see.
    """
    node = node_with(CLUSTER)
    may_see_a = allowing((AclResourceType.TOPIC, "a", AclOperation.DESCRIBE))
    alice = Client(node, principal=ALICE, authorization=may_see_a)
    for _ in range(2):
        assert page(Client(node).ask_at_once(wanting(), 0)) == ([("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])], None)
        assert page(Client(node).ask_at_once(wanting(limit=1), 0)) == ([("a", [0])], ("b", 0))
        assert page(alice.ask_at_once(wanting(), 0)) == ([("a", [0])], None)
    see(node, image([broker(1), broker(2)], [topic("a", led(1), led(2))]))
    assert page(Client(node).ask_at_once(wanting(), 0)) == ([("a", [0, 1])], None)
    assert page(alice.ask_at_once(wanting(), 0)) == ([("a", [0, 1])], None)


async def test_named_topics() -> None:
    """Names are described in order, each once."""
    assert await ask("c", "a", "c") == ([("a", [0]), ("c", [0, 1])], None)


async def test_what_is_told_of_a_partition() -> None:
    """A partition has the same fields as in Metadata's newest version, with the operations of each
    topic and empty lists of eligible replicas.
    """
    dead = topic("dead", led(3, 1, offline_replicas=(3,)), led(2, 1))
    node = node_with(image([broker(1), broker(2, "INTERNAL")], [dead]))
    (row,) = Client(node).ask_at_once(wanting("dead"), 0).topics
    assert (row.error_code, row.topic_id, row.is_internal) == (0, topic_id("dead"), False)
    assert [bit for bit in range(31) if row.topic_authorized_operations >> bit & 1] == [3, 4, 5, 6, 7, 8, 10, 11]
    first, second = row.partitions
    assert (first.error_code, first.leader_id, first.leader_epoch) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, 3)
    assert (first.replica_nodes, first.isr_nodes, first.offline_replicas) == ([3, 1], [3, 1], [3])
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])
    assert second.error_code == ErrorCode.LISTENER_NOT_FOUND


async def test_missing_topics() -> None:
    """Named, they are 3 or 17 in their place; they take nothing of the page."""
    answer = Client(node_with(CLUSTER)).ask_at_once(wanting("nobody", "a", "bad!", limit=1), 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [
        ("a", 0),
    ]
    assert page(answer)[1] == ("bad!", 0)
    rest = Client(node_with(CLUSTER)).ask_at_once(wanting("nobody", "a", "bad!", cursor=("bad!", 0)), 0)
    assert [(each.name, each.error_code) for each in rest.topics] == [
        ("bad!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (6, ([("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])], None)),
        (5, ([("a", [0]), ("b", [0, 1, 2]), ("c", [0])], ("c", 1))),
        (4, ([("a", [0]), ("b", [0, 1, 2])], ("c", 0))),
        (3, ([("a", [0]), ("b", [0, 1])], ("b", 2))),
        (1, ([("a", [0])], ("b", 0))),
        (0, ([("a", [0])], ("b", 0))),
        (-5, ([("a", [0])], ("b", 0))),
    ],
)
async def test_the_limit(limit: int, expected: Page) -> None:
    """A page ends at the limit, which is at least 1, and its cursor names the next partition; the
    last page has no cursor.
    """
    assert await ask(limit=limit) == expected


async def test_the_node_s_limit() -> None:
    """A client cannot ask for more than max.request.partition.size.limit."""
    node = node_with(CLUSTER, {"max.request.partition.size.limit": "2"})
    assert page(Client(node).ask_at_once(wanting(limit=1000), 0)) == ([("a", [0]), ("b", [0])], ("b", 1))


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        (("a", 0), [("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])]),
        (("b", 1), [("b", [1, 2]), ("c", [0, 1])]),
        (("b", 7), [("b", []), ("c", [0, 1])]),
        (("bb", 1), [("c", [0, 1])]),
        (("d", 0), []),
    ],
)
async def test_a_cursor(cursor: tuple[str, int], expected: list[tuple[str, list[int]]]) -> None:
    """The page begins at the cursor's partition, or where its topic would stand if that is gone."""
    assert await ask(cursor=cursor) == (expected, None)


@pytest.mark.parametrize(("names", "cursor"), [(("a", "b"), ("c", 0)), (("a", "b"), ("a", -1))])
async def test_a_wrong_cursor(names: tuple[str, ...], cursor: tuple[str, int]) -> None:
    """A cursor outside of the names that are asked for, or a negative partition, refuses all that
    the request names.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(wanting(*names, cursor=cursor), 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [
        (name, ErrorCode.INVALID_REQUEST) for name in names
    ]


async def test_a_wrong_cursor_of_all_topics() -> None:
    """An invalid cursor in a request for all topics gives an empty page without a cursor."""
    assert await ask(cursor=("a", -1)) == ([], None)


@given(
    counts=st.dictionaries(
        st.text("abc._", min_size=1, max_size=3).filter(lambda name: set(name) != {"."}), st.integers(0, 5), max_size=6
    ),
    holes=st.booleans(),
    limit=st.integers(1, 7),
)
@settings(max_examples=60)
def test_the_pages_are_the_whole(counts: dict[str, int], limit: int, *, holes: bool) -> None:
    """Following the cursors gives every partition of every topic once, in order."""

    def made(name: str, count: int) -> Topic:
        partitions = [led(1) for _ in range(count)]
        if holes and count > 1:
            partitions[0] = UNKNOWN_PARTITION
        return topic(name, *partitions)

    async def read() -> list[tuple[str | None, int]]:
        cluster = image([broker(1)], [made(name, count) for name, count in counts.items()])
        client = Client(node_with(cluster))
        seen: list[tuple[str | None, int]] = []
        cursor: tuple[str, int] | None = None
        for _ in range(100):
            rows, cursor = page(client.ask_at_once(wanting(limit=limit, cursor=cursor), 0))
            assert sum(len(indices) for _, indices in rows) <= limit
            seen += [(name, index) for name, indices in rows for index in indices]
            if cursor is None:
                return seen
        raise AssertionError("the pages do not end")

    expected = [
        (name, index) for name in sorted(counts) for index in range(int(holes and counts[name] > 1), counts[name])
    ]
    assert trio.run(read) == expected
