"""A node asks for its followers until it has an answer or another controller is elected."""

import trio

from minicontroller.cluster.entities import Partition, Topic
from minicontroller.controller.broker.followers import Followers
from minicontroller.protocol.messages.alter_partition import AlterPartitionResponse, TopicData
from tests.handlers.asking import broker, image, node_with


def half_in_sync(epoch: int = 0) -> Topic:
    partition = Partition(replicas=(1, 2), leader=1, leader_epoch=epoch, isr=(1,), partition_epoch=epoch)
    return Topic("t", b"t" * 16, (partition,))


async def test_a_controller_that_does_not_answer_is_left(nursery: trio.Nursery, autojump_clock: object) -> None:
    """A silent controller's successor is asked as soon as it is known; without one the same is
    asked again when the time of a request is over.
    """
    brokers = [broker(1), broker(2), broker(3)]
    node = node_with(image(brokers, controller_id=2, controller_epoch=5))
    asked: list[int] = []

    async def ask(_topics: list[TopicData]) -> AlterPartitionResponse | None:
        asked.append(node.cache.image.controller_id)
        if node.cache.image.controller_id == 2:
            await trio.sleep_forever()
        return AlterPartitionResponse()

    timeout = node.port.request_timeout_ms / 1000
    nursery.start_soon(Followers(node.cache, ask, broker_id=1, timeout_seconds=timeout).run)
    node.cache.apply(controller_id=2, controller_epoch=5, brokers=None, changed=[half_in_sync()])
    await trio.sleep(timeout + 1)
    assert asked == [2, 2]
    node.cache.apply(controller_id=3, controller_epoch=6, brokers=None)
    await trio.sleep(1)
    assert asked == [2, 2, 3]
