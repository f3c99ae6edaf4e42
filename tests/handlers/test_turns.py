"""Large requests: what they are made of is done part by part, and everyone else is served between
two parts.
"""

from typing import Any

import pytest
import trio

from minicontroller.process import time_slices
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from minicontroller.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from minicontroller.protocol.messages.describe_groups import DescribeGroupsRequest
from minicontroller.protocol.messages.find_coordinator import FindCoordinatorRequest
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.altering import BROKER, TOPIC
from tests.handlers.ruling import PATIENT_MS, Ruling, creating, ruling, wanted

MANY, LARGE = 300, 20_000


@pytest.fixture(autouse=True)
def _no_turn_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """End each time slice at the next checkpoint, so that slices are counted alike on fast and slow
    machines.
    """
    monkeypatch.setattr(time_slices, "SLICE_SECONDS", 0.0)


async def turns_of_others(cluster: Ruling, request: Any, version: int) -> int:
    """Count how often another task runs before the request is answered."""
    had = 0

    async def look_on() -> None:
        nonlocal had
        while True:
            await trio.lowlevel.checkpoint()
            had += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        await cluster.ask(request, version)
        nursery.cancel_scope.cancel()
    return had


async def test_many_topics() -> None:
    """Creating, altering and deleting hundreds of topics at once lets others have their turn."""
    names = [f"t{number}" for number in range(MANY)]
    change = [IncrementalAlterableConfig(name="retention.ms", value="1")]
    async with ruling({"log.retention.ms": "5"}) as cluster:
        for request, version in (
            (creating(*(wanted(name, 5, 3) for name in names)), 7),
            (
                IncrementalAlterConfigsRequest(
                    resources=[
                        IncrementalAlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=change)
                        for name in names
                    ]
                ),
                1,
            ),
            (DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=PATIENT_MS), 6),
        ):
            assert await turns_of_others(cluster, request, version) >= MANY, type(request).__name__


async def test_large_topics() -> None:
    """One topic with tens of thousands of partitions, and as many more for one that is there."""
    grown = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="small", count=LARGE, assignments=None)], timeout_ms=PATIENT_MS
    )
    async with ruling() as cluster:
        assert await turns_of_others(cluster, creating(wanted("large", LARGE, 3)), 7) >= LARGE
        await cluster.make(wanted("small", 1, 3))
        assert await turns_of_others(cluster, grown, 3) >= LARGE


NAMES = [f"!{number}" for number in range(3_000)]
QUESTIONS: dict[str, tuple[Any, int]] = {
    "names": (MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in NAMES]), 12),
    "ids": (
        MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=f"{name:>16}".encode()) for name in NAMES]),
        12,
    ),
    "keys": (FindCoordinatorRequest(coordinator_keys=NAMES), 4),
    "groups": (DescribeGroupsRequest(groups=NAMES), 5),
    "configs": (
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=4, resource_name="1")] * len(NAMES)),
        4,
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_many_questions(question: str) -> None:
    """Requests for thousands of missing things, or thousands of times for one thing, do not delay
    other clients.
    """
    request, version = QUESTIONS[question]
    async with ruling() as cluster:
        assert await turns_of_others(cluster, request, version) >= len(NAMES) - 200


async def test_many_resources_that_are_refused() -> None:
    """A long request that the receiving node refuses without a controller does not delay other
    clients.
    """
    others = [
        IncrementalAlterConfigsResource(resource_type=BROKER, resource_name=str(number), configs=[])
        for number in range(1000, 1000 + MANY)
    ]
    async with ruling() as cluster:
        assert await turns_of_others(cluster, IncrementalAlterConfigsRequest(resources=others), 1) >= MANY
