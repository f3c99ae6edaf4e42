"""How a client at a listener sees partitions: with the leaders and replicas that it can reach
there.

Rule: a broker is alive for a client if it is registered and listens under the client's listener
name. A dead leader is an error of the partition, a dead replica is one in Metadata v0 alone
(K4-M3): later versions keep the id, and the broker's absence from the list of brokers says the
rest.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...protocol.error_codes import ErrorCode
from .entities import NO_LEADER, Broker, Endpoint, Partition, Topic


class PartitionView(NamedTuple):
    """What a client is told of one partition."""

    error_code: int
    leader: int
    replicas: list[int]
    isr: list[int]


def endpoints_at(brokers: Mapping[int, Broker], listener: str) -> dict[int, Endpoint]:
    """Return the brokers that a client at this listener can reach, in the order of their ids."""
    reachable = ((broker_id, brokers[broker_id].endpoint(listener)) for broker_id in sorted(brokers))
    return {broker_id: endpoint for broker_id, endpoint in reachable if endpoint is not None}


def known_partitions(topic: Topic, start: int = 0) -> Iterator[tuple[int, Partition]]:
    """Yield the partitions that the controller has told of, from `start` on; one that never had a
    leader is not among them.
    """
    for index in range(start, len(topic.partitions)):
        partition = topic.partitions[index]
        if partition.replicas:
            yield index, partition


def view(partition: Partition, reachable: Mapping[int, object], brokers: Mapping[int, object]) -> PartitionView:
    """Show a partition as Metadata v6 and later, and DescribeTopicPartitions, do."""
    if partition.leader in reachable:
        return PartitionView(0, partition.leader, list(partition.replicas), list(partition.isr))
    code = ErrorCode.LISTENER_NOT_FOUND if partition.leader in brokers else ErrorCode.LEADER_NOT_AVAILABLE
    return PartitionView(code, NO_LEADER, list(partition.replicas), list(partition.isr))


def view_before_v6(
    partition: Partition, reachable: Mapping[int, object], brokers: Mapping[int, object]
) -> PartitionView:
    """Show a partition as Metadata v1 to v5 do: there is no word yet for a leader at another
    listener.
    """
    seen = view(partition, reachable, brokers)
    return seen._replace(error_code=ErrorCode.LEADER_NOT_AVAILABLE) if seen.error_code else seen


def view_in_v0(partition: Partition, reachable: Mapping[int, object], brokers: Mapping[int, object]) -> PartitionView:
    """Show a partition as Metadata v0 does: who is dead is left out of the replicas, and
    REPLICA_NOT_AVAILABLE says so.
    """
    seen = view_before_v6(partition, reachable, brokers)
    replicas = [replica for replica in seen.replicas if replica in reachable]
    isr = [replica for replica in seen.isr if replica in reachable]
    missing = len(replicas) < len(seen.replicas) or len(isr) < len(seen.isr)
    code = ErrorCode.REPLICA_NOT_AVAILABLE if missing and not seen.error_code else seen.error_code
    return PartitionView(code, seen.leader, replicas, isr)
