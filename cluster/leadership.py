"""Leader election of a partition: pure functions of the partition and the brokers that can lead.

Rule: each function returns the partition with the state to be written, or None if its state does
not change. A new state has leader epoch and partition epoch one higher than the one before (in
Kafka every write by the controller raises the leader epoch, and the partition epoch is the version
of the znode); the first state has both at 0. `controller_epoch` is filled in by the writer.
"""

from collections.abc import Container

import msgspec

from .entities import NO_LEADER, Partition
from .image import Image
from .placement import Assignment

RECOVERED, RECOVERING = 0, 1
"""Kafka's leader recovery states: RECOVERING after an unclean election, until the new leader has
cleaned up.
"""


def elect_leader(partition: Partition, live: Container[int], *, unclean: bool = False) -> Partition | None:
    """Elect the leader of a partition and shrink its ISR after brokers came or went (Kafka:
    PartitionLeaderElectionAlgorithms).

    A replica is online if its broker is in `live` and has not lost the replica's directory.

    - A partition without a state is led by the first online replica, and all online ones are in
      sync. With none online it stays without a state.
    - A leader that is online and in sync stays; in-sync replicas that are offline leave the ISR.
    - Otherwise the first replica of the assignment that is online and in sync leads.
    - Failing that, with `unclean`, the first online replica leads, alone in the ISR.
    - Failing that nobody leads. The ISR keeps its last replica, since an empty one would not tell
      any more who has the data.

    A state that is lost in the store is written again in any case.
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


def new_partitions(image: Image, assignment: Assignment) -> tuple[Partition, ...]:
    """Return partitions that come to be, each with a leader if one of its replicas is online."""
    live = image.live_ids()
    stateless = [Partition(replicas=replicas, controller_epoch=image.controller_epoch) for replicas in assignment]
    return tuple(elect_leader(partition, live) or partition for partition in stateless)


def elect_preferred(partition: Partition, live: Container[int]) -> Partition | None:
    """Make the preferred leader, the first replica of the assignment, lead (Kafka:
    PreferredReplicaPartitionLeaderElection). Returns None if it is not online and in sync.
    """
    preferred = partition.replicas[0]
    if preferred not in partition.isr or not partition.is_online(preferred, live):
        return None
    return _written(partition, preferred, partition.isr)


def is_unclean(before: Partition, after: Partition) -> bool:
    """Whether a replica that was not in sync has come to lead, so that records may be lost."""
    return (
        after.leader_recovery_state == RECOVERING
        and after.leader_epoch > before.leader_epoch
        and after.leader not in before.isr
    )


def controlled_shutdown(partition: Partition, broker_id: int, electable: Container[int]) -> Partition | None:
    """Take a broker that shuts down out of the ISR, and elect another leader if it leads (Kafka:
    ControlledShutdownLeaderElection).

    Returns None if the broker is not in the ISR, if it has the only replica, or if it leads and no
    other in-sync replica can.
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
    is_same = (leader, isr, recovery) == (partition.leader, partition.isr, partition.leader_recovery_state)
    if is_same and not partition.is_state_lost:
        return None
    return msgspec.structs.replace(
        partition,
        leader=leader,
        isr=isr,
        leader_recovery_state=recovery,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )
