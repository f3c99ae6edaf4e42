"""The ids of producers, and transactions where there are none."""

import pytest

from minicontroller.cluster.znodes import layout
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from minicontroller.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from minicontroller.protocol.messages.describe_transactions import DescribeTransactionsRequest
from minicontroller.protocol.messages.init_producer_id import InitProducerIdRequest
from minicontroller.protocol.messages.list_transactions import ListTransactionsRequest
from minicontroller.store.base import SetData
from tests.handlers.asking import Client, broker, image, led, node_with, topic
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

TRANSACTIONS = wanted("__transaction_state", placed={0: [1]})


async def block(cluster: Ruling, broker_id: int = 2, *, epoch: int | None = None) -> tuple[int, int, int]:
    """Ask for a block as this broker, by default with its epoch."""
    registered = cluster.image.brokers[broker_id].epoch if epoch is None else epoch
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=registered)
    answer = await Client(cluster.node, handlers=APIS, peer=True).ask(request, 0)
    return answer.error_code, answer.producer_id_start, answer.producer_id_len


async def stored(cluster: Ruling) -> bytes | None:
    entry = await cluster.store.get(layout.LATEST_PRODUCER_ID_BLOCK)
    assert entry is not None
    return entry.data


async def store(cluster: Ruling, data: bytes) -> None:
    await cluster.store.commit([SetData(layout.LATEST_PRODUCER_ID_BLOCK, data)])


async def test_blocks_follow_each_other(autojump_clock: object) -> None:
    """The newest block is stored as Kafka stores it, with the broker that has it; the next begins
    behind it, whoever wrote it.
    """
    async with ruling() as cluster:
        assert await block(cluster) == (0, 0, 1000)
        assert await stored(cluster) == b'{"version":1,"broker":2,"block_start":"0","block_end":"999"}'
        assert await block(cluster, 3) == (0, 1000, 1000)
        await store(cluster, b'{"version":1,"broker":7,"block_start":"5","block_end":"20"}')
        assert await block(cluster) == (0, 21, 1000)
        assert await stored(cluster) == b'{"version":1,"broker":2,"block_start":"21","block_end":"1020"}'


async def test_a_block_is_for_a_registered_broker(autojump_clock: object) -> None:
    """An unknown broker is BROKER_ID_NOT_REGISTERED, an old registration STALE_BROKER_EPOCH; a
    client gets none.
    """
    async with ruling() as cluster:
        assert (await block(cluster, 2, epoch=1))[0] == ErrorCode.STALE_BROKER_EPOCH
        request = AllocateProducerIdsRequest(broker_id=9)
        answer = await Client(cluster.node, handlers=APIS, peer=True).ask(request, 0)
        assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert (await cluster.ask(request, 0)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await stored(cluster) is None


FULL = b'{"version":1,"broker":1,"block_start":"9223372036854775000","block_end":"9223372036854775807"}'


@pytest.mark.parametrize("data", [b"nonsense", FULL, b'{"version":1,"broker":1,"block_start":"0","block_end":"-1"}'])
async def test_no_block_behind_what_makes_no_sense(data: bytes, autojump_clock: object) -> None:
    """What cannot be read is not overwritten, and the ids end with the largest number."""
    async with ruling() as cluster:
        await store(cluster, data)
        assert (await block(cluster))[0] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert await stored(cluster) == data


@pytest.mark.parametrize("version", range(6))
async def test_each_producer_has_an_id_of_its_own(version: int, autojump_clock: object) -> None:
    """Ids come from the blocks of the node that was asked; where it cannot reach the controller,
    the producer is told to come again.
    """
    async with ruling() as cluster:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answer = await Client(cluster.nodes[2], handlers=APIS).ask(request, version)
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
        ids = [(await cluster.ask(request, version)).producer_id for _ in range(1001)]
        assert ids == list(range(1001))
        assert await block(cluster) == (0, 2000, 1000)


async def test_a_transactional_id(autojump_clock: object) -> None:
    """The checks and their order are Kafka's; who fences a producer gets an id that nobody has."""
    async with ruling() as cluster:

        async def ask(name: str = "tx", timeout_ms: int = 1000, producer: tuple[int, int] = (-1, -1)) -> int:
            request = InitProducerIdRequest(
                transactional_id=name,
                transaction_timeout_ms=timeout_ms,
                producer_id=producer[0],
                producer_epoch=producer[1],
            )
            return int((await cluster.ask(request, 5)).error_code)

        assert await ask() == ErrorCode.NOT_COORDINATOR
        await cluster.make(TRANSACTIONS)
        assert await ask("") == await ask(producer=(3, -1)) == await ask(producer=(-1, 3)) == ErrorCode.INVALID_REQUEST
        assert await ask(timeout_ms=0) == await ask(timeout_ms=900_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert await ask() == 0


async def test_there_are_no_transactions(autojump_clock: object) -> None:
    """None is listed, unknown states are named, and a coordinator knows none."""
    async with ruling() as cluster:
        await cluster.make(TRANSACTIONS)
        answer = await cluster.ask(ListTransactionsRequest(state_filters=["Ongoing", "no", "no", ""]), 1)
        assert (answer.error_code, answer.unknown_state_filters, answer.transaction_states) == (0, ["", "no"], [])
        described = await cluster.ask(DescribeTransactionsRequest(transactional_ids=["t", "", "t"]), 0)
        rows = [(row.transactional_id, row.error_code) for row in described.transaction_states]
        assert rows == [("t", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", 42), ("t", 105)]
        elsewhere = await Client(cluster.nodes[2], handlers=APIS).ask(
            DescribeTransactionsRequest(transactional_ids=["t"]), 0
        )
        assert [row.error_code for row in elsewhere.transaction_states] == [ErrorCode.NOT_COORDINATOR]


async def test_partitions_have_no_producers() -> None:
    """Partitions with a replica here have none; others are elsewhere, unknown or misnamed."""
    cluster = image([broker(1), broker(2)], [topic("t", led(2, 1), led(2))])
    topics = [DescribeProducersTopic(name=name, partition_indexes=[0, 1, 2]) for name in ("t", "u", "a b")]
    answer = await Client(node_with(cluster), handlers=APIS).ask(DescribeProducersRequest(topics=topics), 0)
    assert [[row.error_code for row in each.partitions] for each in answer.topics] == [[0, 6, 3], [3] * 3, [17] * 3]


async def test_who_may_do_what(autojump_clock: object) -> None:
    """IDEMPOTENT_WRITE, or WRITE on any topic, gives an id; WRITE on a transactional id fences it;
    DESCRIBE shows it.
    """
    rights = (
        (),
        ((AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE),),
        ((AclResourceType.TRANSACTIONAL_ID, "tx", AclOperation.WRITE),),
        ((AclResourceType.TOPIC, "t", AclOperation.READ),),
    )
    found = []
    async with ruling() as cluster:
        await cluster.make(TRANSACTIONS, wanted("t", placed={0: [1]}))
        for granted in rights:
            client = cluster.client(principal=ALICE, authorization=allowing(*granted))
            nameless = await client.ask(InitProducerIdRequest(transactional_id=None), 4)
            named = await client.ask(InitProducerIdRequest(transactional_id="tx"), 4)
            (state,) = (await client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0)).transaction_states
            topics = [DescribeProducersTopic(name="t", partition_indexes=[0])]
            (seen,) = (await client.ask(DescribeProducersRequest(topics=topics), 0)).topics
            found.append((nameless.error_code, named.error_code, state.error_code, seen.partitions[0].error_code))
    assert found == [(31, 53, 53, 29), (0, 53, 53, 29), (31, 50, 105, 29), (31, 53, 53, 0)]
