"""Who leads a partition, and who is in sync: plain functions of a partition and the set of
electable brokers.

Rule: nothing here waits, reads a clock or draws a lot. Each function returns the partition as it
should be written, or None where nothing is to be written. A written partition has its leader epoch
and its partition epoch one higher (Kafka: every write of the state by the controller raises the
leader epoch; the partition epoch is the znode's version), except that the first state of a
partition has both at 0. `controller_epoch` is filled in by the writer of the state.
"""

from collections.abc import Container

import msgspec

from .entities import NO_LEADER, Partition

RECOVERED, RECOVERING = 0, 1
"""Kafka's leader recovery states: RECOVERING after an unclean election, until the new leader has
cleaned up.
"""


def settle(partition: Partition, live: Container[int], *, unclean: bool = False) -> Partition | None:
    """What a change of the live brokers means for a partition, in whichever state it is
    (PartitionLeaderElectionAlgorithms).

    A replica is live with its broker, unless the broker has lost it. Without a state: the first
    live replica leads and all live ones are in sync; it stays stateless while none is live. Led by
    a live broker: the in-sync replicas that died leave. Led by nobody: the first live in-sync
    replica in the order of the assignment leads; failing that, if `unclean`, the first live
    replica, alone in sync; failing that nobody leads, and the last in-sync replica stays in the
    list, because an empty one would lose who has the data.
    """
    online = tuple(replica for replica in partition.replicas if partition.is_online(replica, live))
    if not partition.has_state:
        if not online:
            return None
        return msgspec.structs.replace(partition, leader=online[0], isr=online, leader_epoch=0, partition_epoch=0)
    in_sync = tuple(replica for replica in partition.isr if partition.is_online(replica, live))
    if partition.leader in in_sync:
        return _written(partition, partition.leader, in_sync)
    electable = [replica for replica in online if replica in in_sync]
    if electable:
        return _written(partition, electable[0], in_sync)
    if unclean and online:
        return _written(partition, online[0], online[:1], RECOVERING)
    return _written(partition, NO_LEADER, in_sync or partition.isr[-1:])


def release(partition: Partition, broker_id: int, electable: Container[int]) -> Partition | None:
    """Take a broker that shuts down out of a partition with more than one replica, or return None
    where it must stay.

    It must stay as the leader while no other in-sync replica can lead
    (ControlledShutdownLeaderElection).
    """
    if len(partition.replicas) < 2 or broker_id not in partition.isr or not partition.has_state:
        return None
    in_sync = tuple(r for r in partition.isr if r != broker_id and partition.is_online(r, electable))
    if partition.leader != broker_id:
        return _written(partition, partition.leader, in_sync) if partition.leader in in_sync else None
    successors = [replica for replica in partition.replicas if replica in in_sync]
    return _written(partition, successors[0], in_sync) if successors else None


def _written(partition: Partition, leader: int, isr: tuple[int, ...], recovery: int | None = None) -> Partition | None:
    recovery = partition.leader_recovery_state if recovery is None else recovery
    if (leader, isr, recovery) == (partition.leader, partition.isr, partition.leader_recovery_state):
        return None
    return msgspec.structs.replace(
        partition,
        leader=leader,
        isr=isr,
        leader_recovery_state=recovery,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )
