"""FindCoordinator: whose partition a key hashes to, in every version, and the making of the
coordinators' topics.
"""

from typing import Any

import pytest
import trio
import trio.testing

from minicontroller.cluster.coordinators import partition_for
from minicontroller.cluster.image import Image
from minicontroller.cluster.java_hash import java_hash
from minicontroller.controller.handlers.find_coordinator import PATIENCE_SECONDS
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.handlers.asking import Client, broker, image, led, node_with, see, topic
from tests.handlers.creations import Creations, client_of, ruling_node

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOBODY = (-1, "", -1)

OFFSETS = topic("__consumer_offsets", led(1), led(2), led(3), led(1, leader=-1))
TRANSACTIONS = topic("__transaction_state", led(3))
CLUSTER = image([broker(1), broker(2), broker(3)], [OFFSETS, TRANSACTIONS])


def finding(version: int, *keys: str, kind: int = GROUP) -> FindCoordinatorRequest:
    request = FindCoordinatorRequest(key_type=kind if version >= 1 else GROUP)
    if version >= 4:
        request.coordinator_keys = list(keys)
    else:
        (request.key,) = keys
    return request


def place(row: Any) -> tuple[int, str, int]:
    return row.node_id, row.host, row.port


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("g", 103),
        ("my-group", -1_906_497_762),
        ("console-consumer-12345", 158_455_506),
        ("polygenelubricants", -(2**31)),
        ("\u00fcml\u00e4ut", -1_271_284_472),
        ("\U0001f600", 1_772_899),
    ],
)
def test_hashes_are_java_s(text: str, number: int) -> None:
    """Hashes are String.hashCode of a Java 17: over UTF-16 units, wrapped to 32 bits
    with a sign.
    """
    assert java_hash(text) == number


def test_the_smallest_hash_has_a_partition() -> None:
    """The one integer without an absolute value falls into partition 0, as in Kafka's Utils.abs."""
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("my-group", 50) == 12
    assert partition_for("\u00fcml\u00e4ut", 50) == 22


@pytest.mark.parametrize("version", range(7))
async def test_a_group(version: int) -> None:
    """The leader of the partition that the group hashes to, where the client reaches it."""
    answer = Client(node_with(CLUSTER)).ask_at_once(finding(version, "a"), version)  # 97 % 4 = 1
    if version >= 4:
        (row,) = answer.coordinators
        assert (row.key, row.error_code, row.error_message) == ("a", 0, "")
        assert place(row) == (2, "plaintext.host", 9200)
    else:
        assert (answer.error_code, answer.error_message) == (0, "NONE" if version >= 1 else "")
        assert place(answer) == (2, "plaintext.host", 9200)


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_many_keys(version: int) -> None:
    """v4 and later: a row for each key, in order, also for one that is named twice; one without a
    leader fails alone.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(finding(version, "b", "c", "b", ""), version)
    assert [(row.key, row.node_id, row.error_code, row.error_message) for row in answer.coordinators] == [
        ("b", 3, 0, ""),
        ("c", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, ""),
        ("b", 3, 0, ""),
        ("", 1, 0, ""),
    ]


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_no_keys(version: int) -> None:
    """A request without keys gets an empty answer and creates nothing."""
    assert Client(node_with(Image())).ask_at_once(finding(version), version).coordinators == []


@pytest.mark.parametrize("version", range(1, 7))
async def test_a_transaction(version: int) -> None:
    """Key type 1 is hashed to the partitions of __transaction_state."""
    answer = Client(node_with(CLUSTER)).ask_at_once(finding(version, "t", kind=TRANSACTION), version)
    assert place(answer.coordinators[0] if version >= 4 else answer)[0] == 3


@pytest.mark.parametrize("version", range(7))
async def test_no_leader(version: int) -> None:
    """A partition without a leader is answered COORDINATOR_NOT_AVAILABLE, with a text in v1 to v3
    and an empty one afterwards.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(finding(version, "c"), version)
    row = answer.coordinators[0] if version >= 4 else answer
    assert (row.error_code, place(row)) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, NOBODY)
    assert bool(row.error_message) == (1 <= version <= 3)


@pytest.mark.parametrize("version", range(7))
async def test_a_leader_at_another_listener(version: int) -> None:
    """A coordinator that the client cannot reach is none."""
    node = node_with(image([broker(1), broker(2, "INTERNAL")], [OFFSETS]))
    answer = Client(node).ask_at_once(finding(version, "a"), version)
    row = answer.coordinators[0] if version >= 4 else answer
    assert (row.error_code, place(row)) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, NOBODY)


@pytest.mark.parametrize("version", range(1, 7))
async def test_share_groups(version: int) -> None:
    """There are no share groups in ZooKeeper mode: 15 where the version knows of them (v6), 42
    before.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(finding(version, "g", kind=SHARE), version)
    row = answer.coordinators[0] if version >= 4 else answer
    known = ErrorCode.COORDINATOR_NOT_AVAILABLE if version >= 6 else ErrorCode.INVALID_REQUEST
    assert (row.error_code, place(row), bool(row.error_message)) == (known, NOBODY, version < 4)


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("kind", [3, -1, 127])
async def test_an_unknown_type(version: int, kind: int) -> None:
    """An unknown type refuses the whole request, with a text in every version."""
    answer = Client(node_with(CLUSTER)).ask_at_once(finding(version, "g", kind=kind), version)
    row = answer.coordinators[0] if version >= 4 else answer
    assert (row.error_code, place(row)) == (ErrorCode.INVALID_REQUEST, NOBODY)
    assert str(kind) in row.error_message


@pytest.mark.parametrize("version", range(7))
async def test_a_missing_topic_is_made_and_waited_for(version: int) -> None:
    """K590-7: the controller is asked by CreateTopics; the answer waits until the topic is led,
    also where auto.create.topics.enable is off.
    """
    node = ruling_node(image([broker(1)]), {"auto.create.topics.enable": "false"})
    creations = Creations()
    answers = []

    async def ask() -> None:
        answers.append(await client_of(node, creations).ask(finding(version, "a"), version))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert creations.names == [["__consumer_offsets"]]
        assert creations.calls[0][0].policy_api == "FindCoordinator"
        see(node, image([broker(1)], [topic("__consumer_offsets", led(1), led(1, leader=-1))]))
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        see(node, image([broker(1)], [topic("__consumer_offsets", led(1), led(1))]))
    (answer,) = answers
    assert place(answer.coordinators[0] if version >= 4 else answer) == (1, "plaintext.host", 9100)


@pytest.mark.parametrize("version", range(7))
async def test_the_wait_has_an_end(version: int, autojump_clock: trio.testing.MockClock) -> None:
    """A topic that does not come is COORDINATOR_NOT_AVAILABLE after a while: clients come again."""
    started = trio.current_time()
    answer = await client_of(ruling_node(Image()), Creations()).ask(finding(version, "g"), version)
    assert (answer.coordinators[0] if version >= 4 else answer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert trio.current_time() - started == pytest.approx(PATIENCE_SECONDS)


async def test_a_refused_topic_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """Too few nodes for its replication factor, or a policy: no coordinator, at once, and the log
    says why.
    """
    creations = Creations(lambda _name: ErrorCode.INVALID_REPLICATION_FACTOR)
    answer = await client_of(ruling_node(Image()), creations).ask(finding(6, "t", kind=TRANSACTION), 6)
    assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert creations.names == [["__transaction_state"]]
    assert "__transaction_state was answered with INVALID_REPLICATION_FACTOR" in caplog.text
