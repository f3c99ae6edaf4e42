"""A process that is no broker rules: it is elected, and decides and writes for the brokers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import trio
from immutables import Map

from minicontroller.cluster import leadership
from minicontroller.cluster.cache import MetadataCache
from minicontroller.cluster.delta import TopicBecomes
from minicontroller.cluster.entities import Partition, Topic
from minicontroller.cluster.placement import assign_replicas, placed_brokers
from minicontroller.cluster.random_ids import new_id
from minicontroller.controller.active.active_controller import ActiveController, WonElection
from minicontroller.controller.active.channel import LinkFactory
from minicontroller.controller.active.election import Election
from minicontroller.controller.active.jobs import Draft, StagedElement
from minicontroller.controller.active.local_nodes import LocalNodes
from minicontroller.controller.active.topic_writing import stage_creation
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.store.base import Store
from tests.store.worlds import World, in_both_worlds
from tests.support.small_cluster import SmallCluster, WireLink

RULER = 100


@dataclass
class Follower:
    """What a process that is no broker knows of the cluster."""

    cache: MetadataCache = field(default_factory=MetadataCache)
    broker_epoch: int = -1


def standing(store: Store, link: LinkFactory) -> Election:
    """Return the election of a process that has a store and a way to the brokers, and no node."""
    config = config_from_mapping({"broker.id": str(RULER), "listeners": "PLAINTEXT://127.0.0.1:0"})

    def make(won: WonElection, contradicted: Callable[[], None]) -> ActiveController:
        return ActiveController(
            won, store, lambda: config, LocalNodes(RULER, Follower(), {}), link, contradicted=contradicted
        )

    return Election(store, RULER, make)


async def create(draft: Draft, name: str) -> StagedElement:
    image = draft.image
    live = image.live_ids()
    placed = assign_replicas(placed_brokers(image), 4, 2, random=Random(1).randrange)
    unled = [Partition(replicas=replicas, controller_epoch=image.controller_epoch) for replicas in placed]
    topic = Topic(
        name=name,
        topic_id=new_id(),
        partitions=tuple(leadership.elect_leader(each, live) or each for each in unled),
        configs=Map(),
        version=0,
        config_version=0,
        has_partitions_znode=True,
    )
    return await draft.take(stage_creation(draft, TopicBecomes.of(topic)))


@in_both_worlds
async def test_a_process_that_is_no_broker_rules(world: World, nursery: trio.Nursery) -> None:
    """It creates a topic on the registered brokers, elects leaders when one dies, and leaves its
    place to a broker.
    """
    cluster = SmallCluster(nursery, world)
    election = standing(await world.open(), lambda broker: WireLink(cluster, broker))
    nursery.start_soon(election.run)
    await cluster.until(lambda: election.controller is not None)
    ruler = election.controller
    assert ruler is not None
    await cluster.start(1, 2, 3)
    await cluster.until(lambda: set(ruler.image.brokers) == {1, 2, 3})
    element = await ruler.writer.write(lambda draft: create(draft, "t"))
    assert element.refusal is None
    assert await ruler.propagation.wait_acknowledged()
    for broker_id in (1, 2, 3):
        seen = cluster.seen(broker_id)
        assert (seen.controller_id, set(seen.brokers)) == (RULER, {1, 2, 3})
        assert {replica for each in seen.topics["t"].partitions for replica in each.replicas} == {1, 2, 3}
    assert cluster.rulers() == []

    await cluster.kill(3)
    await cluster.until(lambda: {each.leader for each in cluster.seen(1).topics["t"].partitions} == {1, 2})
    await election.withdraw()
    await cluster.until_quiet()
    assert cluster.controller.epoch == ruler.epoch + 1
    assert cluster.controller.image.topics["t"].topic_id == ruler.image.topics["t"].topic_id
