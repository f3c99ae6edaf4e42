"""Replaying the log gives the state of the store, on a small cluster with random changes and
faults.
"""

from pathlib import Path
from random import Random

import pytest
import trio

from minicontroller.audit.event import Decision, Effect, Observed, Removal, SnapshotBegin
from minicontroller.audit.replay import Replay
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from tests.audit.logs import decisions_in, events_in, found, replayed, shown, told
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster, answer_of, context_for

NAMES = [f"topic-{number}" for number in range(6)]
STEPS = 120


async def a_cluster(folder: Path, nursery: trio.Nursery, *broker_ids: int) -> SmallCluster:
    cluster = SmallCluster(nursery, MemoryWorld(), settings={"audit.dir": str(folder)})
    await cluster.start_in_turn(*broker_ids)
    return cluster


async def alter(cluster: SmallCluster, name: str, configs: dict[str, str]) -> int:
    node = cluster.controller_node
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=2,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
        ]
    )
    answer = await answer_of(node, context_for(node, ApiKey.ALTER_CONFIGS, 2), request)
    code: int = answer.responses[0].error_code
    return code


async def a_random_life(cluster: SmallCluster, random: Random, steps: int = STEPS) -> None:
    """Some of it at once, some of it refused."""

    async def one() -> None:
        name, count = random.choice(NAMES), random.randint(1, 4)
        match random.choice(["create", "create", "batch", "delete", "grow", "alter", "nonsense"]):
            case "create":
                await cluster.create(name, partitions=count)
            case "batch":
                await cluster.create(
                    *random.sample(NAMES, 3), "a/b", partitions=count, replication_factor=random.randint(1, 3)
                )
            case "delete":
                await cluster.delete(name, random.choice(NAMES))
            case "grow":
                await cluster.grow(name, count)
            case "alter":
                await alter(cluster, name, {"retention.ms": str(random.randint(1, 3))})
            case _:
                await alter(cluster, name, {"no.such.key": "x"})

    for _ in range(steps // 4):
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(one)


async def until_settled(cluster: SmallCluster) -> None:
    """Wait until every deletion is complete that does not wait for the replicas of a dead node."""
    await cluster.until_quiet()
    await trio.sleep(5)  # of the mock clock


async def end(cluster: SmallCluster) -> None:
    """All that was decided is in the files."""
    for member in list(cluster.members.values()):
        assert member.node.audit is not None
        await member.node.audit.close()


@pytest.mark.parametrize("seed", range(6))
async def test_the_replay_of_a_life_is_the_tree(
    seed: int, tmp_path: Path, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """P-1a: creations, deletions, new topics of old names, growth and configs: replayed, they are
    the controller's image.
    """
    cluster = await a_cluster(tmp_path, nursery, 1, 2, 3)
    await a_random_life(cluster, Random(seed))
    await until_settled(cluster)
    image = cluster.controller.image
    await end(cluster)
    events = events_in(tmp_path)
    assert told(replayed(events).topics) == shown(image)
    assert found(tmp_path) == []
    kinds = {type(event) for event in events}
    assert {Decision, Removal} <= kinds
    applied = [event for event in events if isinstance(event, Decision) and event.effect is Effect.APPLIED]
    refused = [event for event in events if isinstance(event, Decision) and event.error_code]
    assert applied and refused


async def test_each_state_before_is_the_state_after(
    tmp_path: Path, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Every event's `before` is what the events before it give: at every point, not at the end
    alone.
    """
    cluster = await a_cluster(tmp_path, nursery, 1, 2, 3)
    await a_random_life(cluster, Random(99))
    await end(cluster)
    replay = Replay()
    for event in events_in(tmp_path):
        if isinstance(event, (Decision, Observed)) and replay.is_known:
            name = event.name if isinstance(event, Decision) else event.topic
            assert replay.topics.get(name) == event.before
        list(replay.apply(event))


async def test_controllers_in_a_row(tmp_path: Path, nursery: trio.Nursery, autojump_clock: object) -> None:
    """Each controller's events begin with sequence 1 and a snapshot of what the
    previous one left.
    """
    cluster = await a_cluster(tmp_path, nursery, 1, 2, 3)
    for seed in range(3):
        controller = cluster.controller
        await a_random_life(cluster, Random(seed), 24)
        await until_settled(cluster)
        if len(cluster.members) == 1:
            break
        await cluster.kill(controller.broker_id)
        await cluster.until_succeeded(controller.epoch)
    image = cluster.controller.image
    await end(cluster)
    events = events_in(tmp_path)
    snapshots = [event for event in events if isinstance(event, SnapshotBegin)]
    assert [event.sequence for event in snapshots] == [1] * len(snapshots)
    assert len({event.decided_node for event in snapshots}) == len(snapshots) >= 2
    assert found(tmp_path) == []
    assert told(replayed(events).topics) == shown(image)


async def test_the_elements_of_a_request(tmp_path: Path, nursery: trio.Nursery, autojump_clock: object) -> None:
    """The elements of one request share its number, keep its order, and have the reasons of
    refusals (P-1a).
    """
    cluster = await a_cluster(tmp_path, nursery, 1)
    await cluster.create("first", "a/b", "second")
    await cluster.create("first")
    await end(cluster)
    rows = [(each.request, each.element, each.elements, each.name, each.error) for each in decisions_in(tmp_path)]
    assert rows == [
        (1, 0, 3, "first", "NONE"),
        (1, 1, 3, "a/b", "INVALID_TOPIC_EXCEPTION"),
        (1, 2, 3, "second", "NONE"),
        (2, 0, 1, "first", "TOPIC_ALREADY_EXISTS"),
    ]
