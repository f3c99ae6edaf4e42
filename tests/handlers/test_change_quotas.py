"""The quota of changes, `controller_mutation_rate` (KIP-599): who is refused, who has to wait, and
what counts.
"""

from typing import Any

import pytest
import trio

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestOrigin
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.handlers.ruling import PATIENT_MS, Ruling, codes, creating, ruling, wanted

ALICE = "User:alice"
BURST = 11
"""What a quota of one a second lets through at once: controller.quota.window.num seconds."""
MARGIN_MS = 200
"""How far the clock moves while a request is under way."""
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(wanted("small", 1, 1), wanted("large", 4, 1))
        limit(cluster, {"user": "alice"}, 1.0)
        yield cluster


def limit(cluster: Ruling, entity: dict[str, str | None], rate: float) -> None:
    for node in cluster.nodes.values():
        node.quotas.clients.set(entity, {"controller_mutation_rate": str(rate)})


def about(milliseconds: int) -> Any:
    return pytest.approx(milliseconds, abs=MARGIN_MS)


async def create(cluster: Ruling, name: str, partitions: int, version: int = 7, **how: Any) -> Any:
    how.setdefault("principal", ALICE)
    return await cluster.ask(creating(wanted(name, partitions, 1)), version, **how)


async def test_new_clients_are_refused_and_told_how_long_to_wait(cluster: Ruling, autojump_clock: object) -> None:
    """From CreateTopics 6 on a topic is refused while the bucket lacks tokens; a request that finds
    any may take more than there are.
    """
    first = await create(cluster, "a", BURST + 4)
    assert (codes(first), first.throttle_time_ms) == ([0], 0)
    second = await create(cluster, "b", 1)
    assert (codes(second), second.topics[0].error_message, second.throttle_time_ms) == ([EXCEEDED], None, about(4000))
    assert "b" not in cluster.image.topics
    await trio.sleep(4)
    assert codes(await create(cluster, "b", 1)) == [0]


async def test_old_clients_are_not_refused_and_have_to_wait(cluster: Ruling, autojump_clock: object) -> None:
    """Before CreateTopics 6 the topic is created, and the client is throttled afterwards."""
    await create(cluster, "a", BURST + 4, 5)
    answer = await create(cluster, "b", 1, 5)
    assert (codes(answer), answer.throttle_time_ms) == ([0], about(5000))


async def test_elements_of_one_request_count_one_after_the_other(cluster: Ruling, autojump_clock: object) -> None:
    """The topics before the one that exceeds the quota are created."""
    topics = [wanted(name, 6, 1) for name in ("a", "b", "c")]
    answer = await cluster.ask(creating(*topics), 7, principal=ALICE)
    assert (codes(answer), answer.throttle_time_ms) == ([0, 0, EXCEEDED], about(1000))


@pytest.mark.parametrize(("version", "code"), [(3, EXCEEDED), (2, 0)])
async def test_new_partitions_count(cluster: Ruling, version: int, code: int, autojump_clock: object) -> None:
    """CreatePartitions counts the partitions that it adds, and refuses from version 3 on."""
    await create(cluster, "a", BURST + 1)
    topic = CreatePartitionsTopic(name="small", count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=PATIENT_MS)
    answer = await cluster.ask(request, version, principal=ALICE)
    assert answer.results[0].error_code == code
    assert answer.throttle_time_ms == about(1000 if code else 3000)


@pytest.mark.parametrize(("version", "code"), [(6, EXCEEDED), (5, EXCEEDED), (4, 0)])
async def test_deleted_partitions_count(cluster: Ruling, version: int, code: int, autojump_clock: object) -> None:
    """DeleteTopics counts the partitions of the topic, and refuses from version 5 on."""
    await create(cluster, "a", BURST + 1)
    request = DeleteTopicsRequest(topic_names=["large"], timeout_ms=PATIENT_MS)
    if version == 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="large")], timeout_ms=PATIENT_MS)
    answer = await cluster.ask(request, version, principal=ALICE)
    assert answer.responses[0].error_code == code
    assert answer.throttle_time_ms == about(1000 if code else 5000)


async def test_what_is_only_validated_or_wrong_does_not_count(cluster: Ruling, autojump_clock: object) -> None:
    """As in Kafka, a dry run is not limited, and an error comes before the quota."""
    await create(cluster, "a", BURST + 1)
    dry = creating(wanted("b", 50, 1), validate_only=True)
    answer = await cluster.ask(dry, 7, principal=ALICE)
    assert (codes(answer), answer.throttle_time_ms) == ([0], 0)
    answer = await create(cluster, "a", 1)
    assert (codes(answer), answer.throttle_time_ms) == ([ErrorCode.TOPIC_ALREADY_EXISTS], 0)


async def test_others_are_not_limited(cluster: Ruling, autojump_clock: object) -> None:
    """The quota of a user is shared by all of their clients and by nobody else."""
    await create(cluster, "a", BURST + 1)
    assert codes(await create(cluster, "b", 1)) == [EXCEEDED]
    for principal in ("User:bob", None):
        assert codes(await create(cluster, f"of-{principal}".replace(":", "-"), 20, principal=principal)) == [0]


async def test_clients_without_authentication_are_kafkas_anonymous(cluster: Ruling, autojump_clock: object) -> None:
    """A quota of the user ANONYMOUS holds for them."""
    limit(cluster, {"user": "ANONYMOUS"}, 1.0)
    await create(cluster, "a", BURST + 1, principal=None)
    assert codes(await create(cluster, "b", 1, principal=None)) == [EXCEEDED]


async def test_a_forwarded_request_counts_for_its_client(cluster: Ruling, autojump_clock: object) -> None:
    """The client's principal, client id and version decide, whoever brings the request."""
    await create(cluster, "a", BURST + 1)

    async def forwarded(name: str, version: int) -> Any:
        origin = RequestOrigin(principal=ALICE, api_version=version, received_node=2)
        return await cluster.client(peer=True).ask(creating(wanted(name, 1, 1)), 7, origin=origin)

    refused, old = await forwarded("b", 7), await forwarded("c", 5)
    assert (codes(refused), refused.throttle_time_ms) == ([EXCEEDED], about(1000))
    assert (codes(old), old.throttle_time_ms) == ([0], about(2000))


async def test_topics_created_automatically_count_and_are_not_refused(cluster: Ruling, autojump_clock: object) -> None:
    """As in Kafka, a read that creates a topic takes from the quota without limit."""
    origin = RequestOrigin(principal=ALICE, api_version=9, api_key=3, received_node=2)
    for name in ("a", "b"):
        answer = await cluster.client(peer=True).ask(creating(wanted(name, BURST, 1)), 7, origin=origin)
        assert codes(answer) == [0]
    assert codes(await create(cluster, "c", 1)) == [EXCEEDED]
