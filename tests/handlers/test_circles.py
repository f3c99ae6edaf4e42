"""Answered requests leave no reference cycles. A cycle is freed by the garbage collector alone and
keeps all that it refers to alive, such as images of the cluster. Before cycles were removed, the
collector took an eighth of the processor time of a bulk creation.
"""

import gc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.handlers.altering import TOPIC
from tests.handlers.ruling import PATIENT_MS, Ruling, creating, ruling, wanted

pytestmark = pytest.mark.slow

REQUESTS = 50

ROUNDS = 4
"""What is made once, or by an earlier test's threads, may refer to itself: what every request
leaves is found in every round.
"""


async def create(cluster: Ruling, number: int) -> None:
    answer = await cluster.ask(creating(wanted(f"t-{number}", 1, 1)), 7)
    assert not answer.topics[0].error_code


async def create_in_vain(cluster: Ruling, number: int) -> None:
    answer = await cluster.ask(creating(wanted(f"a/{number}", 1, 1)), 7)
    assert answer.topics[0].error_code


async def grow(cluster: Ruling, number: int) -> None:
    topic = CreatePartitionsTopic(name=f"t-{number}", count=2, assignments=None)
    answer = await cluster.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=PATIENT_MS), 3)
    assert not answer.results[0].error_code


async def alter(cluster: Ruling, number: int) -> None:
    configs = [IncrementalAlterableConfig(name="retention.ms", value=str(number))]
    topic = IncrementalAlterConfigsResource(resource_type=TOPIC, resource_name=f"t-{number}", configs=configs)
    answer = await cluster.ask(IncrementalAlterConfigsRequest(resources=[topic]), 1)
    assert not answer.responses[0].error_code


async def delete(cluster: Ruling, number: int) -> None:
    answer = await cluster.ask(DeleteTopicsRequest(topic_names=[f"t-{number}"], timeout_ms=PATIENT_MS), 5)
    assert not answer.responses[0].error_code


async def circles(cluster: Ruling, one: Callable[[Ruling, int], Awaitable[None]], numbers: range) -> int:
    """How many objects only the garbage collector frees after these requests. It looks only at what
    they made: in a process that has run thousands of tests, a look at everything takes a second.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for number in numbers:
            await one(cluster, number)
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("flush", ["", "interval", "always"])
async def test_nothing_refers_to_itself(flush: str, tmp_path: Path) -> None:
    """Changes of all kinds, and refused ones, leave nothing to the garbage collector, whether or
    not they are in an audit log.
    """
    rounds = [range(first, first + REQUESTS) for first in range(0, ROUNDS * REQUESTS, REQUESTS)]
    async with ruling({"audit.dir": str(tmp_path), "audit.flush": flush} if flush else {}) as cluster:
        for one in (create, create_in_vain, grow, alter, delete):
            found = [await circles(cluster, one, numbers) for numbers in rounds]
            assert min(found) == 0, (one, found)
