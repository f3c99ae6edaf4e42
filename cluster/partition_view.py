"""Partitions as a client at a listener sees them.

Rule: a broker is alive for a client if it is registered and has an endpoint with the client's
listener name. A leader that is not alive is an error of the partition. A replica that is not alive
is an error in Metadata v0 only (K4-M3); later versions keep its id, and leave the broker out of the
list of brokers.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..protocol.error_codes import ErrorCode
from .entities import NO_LEADER, Broker, Endpoint, Partition, Topic


class PartitionView(NamedTuple):
    """One partition as a response has it."""

    error_code: int
    leader: int
    replicas: list[int]
    isr: list[int]


def endpoints_at(brokers: Mapping[int, Broker], listener: str) -> dict[int, Endpoint]:
    """Return the brokers that a client at this listener can reach, in the order of their ids."""
    reachable = ((broker_id, brokers[broker_id].endpoint(listener)) for broker_id in sorted(brokers))
    return {broker_id: endpoint for broker_id, endpoint in reachable if endpoint is not None}


def known_partitions(topic: Topic) -> Iterator[tuple[int, Partition]]:
    """Yield the partitions, except those that never had a leader."""
    return ((index, partition) for index, partition in enumerate(topic.partitions) if partition.replicas)


def view(partition: Partition, reachable: Mapping[int, object], brokers: Mapping[int, object]) -> PartitionView:
    """Return a partition as Metadata since v6 shows it."""
    if partition.leader in reachable:
        return PartitionView(0, partition.leader, list(partition.replicas), list(partition.isr))
    code = ErrorCode.LISTENER_NOT_FOUND if partition.leader in brokers else ErrorCode.LEADER_NOT_AVAILABLE
    return PartitionView(code, NO_LEADER, list(partition.replicas), list(partition.isr))


def view_before_v6(
    partition: Partition, reachable: Mapping[int, object], brokers: Mapping[int, object]
) -> PartitionView:
    """Return a partition as Metadata v1 to v5 show it: these have no LISTENER_NOT_FOUND."""
    seen = view(partition, reachable, brokers)
    return seen._replace(error_code=ErrorCode.LEADER_NOT_AVAILABLE) if seen.error_code else seen


def view_in_v0(partition: Partition, reachable: Mapping[int, object], brokers: Mapping[int, object]) -> PartitionView:
    """Return a partition as Metadata v0 shows it: replicas that are not alive are left out, which
    gives REPLICA_NOT_AVAILABLE.
    """
    seen = view_before_v6(partition, reachable, brokers)
    replicas = [replica for replica in seen.replicas if replica in reachable]
    isr = [replica for replica in seen.isr if replica in reachable]
    missing = len(replicas) < len(seen.replicas) or len(isr) < len(seen.isr)
    code = ErrorCode.REPLICA_NOT_AVAILABLE if missing and not seen.error_code else seen.error_code
    return PartitionView(code, seen.leader, replicas, isr)
