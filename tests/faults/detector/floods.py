"""Clients that nobody would miss: they cost, change nothing that is looked at, and do not wait for
answers that come late.
"""

import random
from collections.abc import Awaitable, Callable, Sequence

import trio

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from minicontroller.protocol.messages.metadata import MetadataRequest
from tests.faults.detector.connection import Connection, Lost, Request, open_connection

PAUSE_SECONDS = 0.2
BATCH = 60
DEAD_NAMES = 4
Addresses = Callable[[], Sequence[tuple[int, str]]]
Flood = Callable[[Addresses, random.Random, trio.Event], Awaitable[None]]


async def _flood(
    addresses: Addresses, dice: random.Random, over: trio.Event, pour: Callable[[Connection, int], Awaitable[None]]
) -> None:
    while not over.is_set():
        choices = addresses()
        if choices:
            node, address = dice.choice(choices)
            try:
                connection = await open_connection(address, "flood")
                try:
                    await pour(connection, node)
                finally:
                    await connection.close()
            except Lost:
                pass
        await trio.sleep(PAUSE_SECONDS * dice.random())


async def dry_runs(addresses: Addresses, dice: random.Random, over: trio.Event) -> None:
    """Large requests that only validate."""

    async def pour(connection: Connection, _node: int) -> None:
        topics = [
            CreatableTopic(name=f"dry-{number}", num_partitions=5, replication_factor=1) for number in range(BATCH)
        ]
        message = CreateTopicsRequest(topics=topics, timeout_ms=5_000, validate_only=True)
        async for _ in connection.ask([Request(ApiKey.CREATE_TOPICS, 7, message)] * 5):
            pass

    await _flood(addresses, dice, over, pour)


async def dead_requests(addresses: Addresses, dice: random.Random, over: trio.Event) -> None:
    """Whoever asked is gone before he can be answered."""

    async def pour(connection: Connection, _node: int) -> None:
        name = f"dead-{dice.randrange(DEAD_NAMES)}"
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        creation = Request(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=1))
        deletion = Request(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[name], timeout_ms=1))
        await connection.send([creation, deletion] * 5)

    await _flood(addresses, dice, over, pour)


async def large_answers(addresses: Addresses, dice: random.Random, over: trio.Event) -> None:
    """A small question with a large answer."""

    async def pour(connection: Connection, node: int) -> None:
        resources = [DescribeConfigsResource(resource_type=4, resource_name=str(node), configuration_keys=None)] * 20
        describing = Request(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=resources))
        telling = Request(ApiKey.METADATA, 12, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        async for _ in connection.ask([describing, telling]):
            pass

    await _flood(addresses, dice, over, pour)


FLOODS: dict[str, Flood] = {flood.__name__: flood for flood in (dry_runs, dead_requests, large_answers)}
