"""The reassignment of a partition, step by step (KIP-455): pure functions of the partition and the
live brokers.

Rule: while a partition moves, its replicas are those that it is to have, then those that it had
before. The ones that it did not have are its adding replicas, and the ones that it is not to keep
its removing replicas. It has arrived once all wanted replicas are in sync; then both lists are
empty. The leader epoch grows as often as Kafka's controller writes the state in these steps, so
that it is the same number; here the state is written once, and the partition epoch grows by one.
"""

from collections.abc import Collection, Container

from msgspec.structs import replace

from .entities import NO_LEADER, Partition, Topic


def moving_partitions(topic: Topic) -> list[int]:
    return [index for index, partition in enumerate(topic.partitions) if partition.is_moving]


def origin(partition: Partition) -> tuple[int, ...]:
    """Return the replicas of before the reassignment, to which cancelling it leads back."""
    return _without(partition.replicas, partition.adding_replicas)


def target(partition: Partition) -> tuple[int, ...]:
    """Return the replicas that the partition has once its reassignment is complete."""
    return _without(partition.replicas, partition.removing_replicas)


def added(partition: Partition, wanted: Collection[int]) -> tuple[int, ...]:
    return _without(tuple(dict.fromkeys(wanted)), origin(partition))


def reassign(partition: Partition, wanted: tuple[int, ...], live: Container[int]) -> Partition:
    """Return the partition as it moves to these replicas, or as it has arrived there if all of them
    are in sync (Kafka: KafkaController.onPartitionReassignment).

    A reassignment that is under way is replaced. If it has these wanted replicas already, it begins
    a new leader epoch, and so LeaderAndIsr goes to all its replicas again.
    """
    before = origin(partition)
    replicas = tuple(dict.fromkeys((*wanted, *before)))
    moved = replace(
        partition,
        replicas=replicas,
        adding_replicas=_without(replicas, before),
        removing_replicas=_without(replicas, wanted),
        lost_replicas=tuple(each for each in partition.lost_replicas if each in replicas),
    )
    if not partition.has_state:
        return moved
    moved = _out_of_sync(moved, _without(partition.replicas, replicas), live)
    arrived = _arrived(moved, live)
    return _written(partition, _renewed(moved) if arrived is None else arrived)


def complete(partition: Partition, live: Container[int]) -> Partition | None:
    """Return the partition as it is when it has arrived. None if it does not move, or if not all
    wanted replicas are in sync.
    """
    if not (partition.is_moving and partition.has_state):
        return None
    arrived = _arrived(partition, live)
    return None if arrived is None else _written(partition, arrived)


def keeps_records(partition: Partition, wanted: Collection[int]) -> bool:
    """Return whether a replica in sync remains if the partition moves to these replicas from now
    on. It does not if a reassignment is replaced whose adding replicas are the only ones in sync.
    """
    return not partition.has_state or bool({*wanted, *origin(partition)}.intersection(partition.isr))


def _arrived(partition: Partition, live: Container[int]) -> Partition | None:
    """Have a wanted replica lead, and leave the others out; or return None if not all wanted
    replicas are in sync, or none of them can lead. A partition that gains and loses no replica is
    there in any case.
    """
    wanted = target(partition)
    if partition.is_moving and not set(wanted).issubset(partition.isr):
        return None
    led = partition
    if partition.leader in wanted and partition.is_online(partition.leader, live):
        led = _renewed(partition)
    elif electable := _electable(partition, wanted, live):
        led = replace(_renewed(partition), leader=electable[0])
    elif partition.is_moving:
        return None
    return replace(
        _out_of_sync(led, partition.removing_replicas, live),
        replicas=wanted,
        adding_replicas=(),
        removing_replicas=(),
        lost_replicas=tuple(each for each in partition.lost_replicas if each in wanted),
    )


def _out_of_sync(partition: Partition, leaving: Collection[int], live: Container[int]) -> Partition:
    """Take replicas out of the ISR, each in a leader epoch of its own. If the leader is among them,
    another replica leads, or none.
    """
    gone = [each for each in leaving if each in partition.isr]
    isr = _without(partition.isr, gone)
    now = replace(partition, isr=isr, leader_epoch=partition.leader_epoch + len(gone))
    if partition.leader not in leaving:
        return now
    electable = _electable(now, now.replicas, live)
    return replace(now, leader=electable[0] if electable else NO_LEADER)


def _electable(partition: Partition, replicas: tuple[int, ...], live: Container[int]) -> list[int]:
    return [each for each in replicas if each in partition.isr and partition.is_online(each, live)]


def _renewed(partition: Partition) -> Partition:
    return replace(partition, leader_epoch=partition.leader_epoch + 1)


def _written(before: Partition, after: Partition) -> Partition:
    """Return the partition with the epoch of its written state. A state that is the same is not
    written.
    """
    if (before.leader, before.leader_epoch, before.isr) == (after.leader, after.leader_epoch, after.isr):
        return after
    return replace(after, partition_epoch=before.partition_epoch + 1)


def _without(replicas: tuple[int, ...], others: Collection[int]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others)
