"""The placement of a new partition's replicas on brokers.

Rule: pure functions of the brokers, the counts and two random numbers. The algorithm is Kafka's
(AdminUtils in ZooKeeper mode): leaders go round the brokers, the distance of the followers grows by
one in each round, and if every broker has a rack, racks take turns.
"""

from collections.abc import Callable, Sequence

from ..protocol.error_codes import ErrorCode
from .errors import Refusal
from .image import Image

UNSET = -1

PlacedBroker = tuple[int, str | None]
"""Broker id and rack."""
Assignment = Sequence[tuple[int, ...]]
"""The broker ids of partitions, one after the other, the preferred leader first."""


def placed_brokers(image: Image) -> list[PlacedBroker]:
    return [(broker_id, image.brokers[broker_id].rack) for broker_id in image.replica_brokers()]


def assign_replicas(
    brokers: Sequence[PlacedBroker],
    partitions: int,
    replication_factor: int,
    *,
    random: Callable[[int], int],
    start: int = UNSET,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Return the replicas of `partitions` partitions from `first_partition` on, each with its
    preferred leader first.

    `random(n)` returns a number from 0 to n - 1, as `secrets.randbelow` does; it is called only
    without `start`. `start` (CreatePartitions) is the index of the first leader, and also sets the
    distance of the followers. Raises Refusal, as `check_counts` does.
    """
    check_counts(brokers, partitions, replication_factor)
    count = len(brokers)
    leader = start if start >= 0 else random(count)
    shift = start if start >= 0 else random(count)
    numbers = range(max(0, first_partition), max(0, first_partition) + partitions)
    if brokers[0][1] is not None:
        return _rack_aware(alternate_racks(brokers), numbers, replication_factor, leader, shift)
    return _rack_unaware([broker for broker, _ in brokers], numbers, replication_factor, leader, shift)


def check_counts(brokers: Sequence[PlacedBroker], partitions: int, replication_factor: int) -> None:
    """Raise Refusal if the brokers cannot hold this many replicas. The cost does not grow with the
    number of partitions.
    """
    if partitions <= 0:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}.",
        )
    with_rack = sum(rack is not None for _, rack in brokers)
    if with_rack not in {0, len(brokers)}:
        # Kafka gives no message with this code; a human needs one.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, _mixed_racks(brokers))


def start_for_new_partitions(brokers: Sequence[PlacedBroker], first_replica: int) -> int:
    """Return CreatePartitions' `start`: the first of `brokers` (sorted by id) that is not before
    partition 0's preferred leader.
    """
    return next((index for index, (broker, _) in enumerate(brokers) if broker >= first_replica), 0)


def alternate_racks(brokers: Sequence[PlacedBroker]) -> list[PlacedBroker]:
    """Order brokers so that racks take turns: racks by name, and brokers of a rack by id."""
    racks: dict[str, list[int]] = {}
    for broker, rack in sorted(brokers, key=lambda placed: placed[0]):
        racks.setdefault(rack or "", []).append(broker)
    names = sorted(racks)
    longest = max(map(len, racks.values()), default=0)
    return [(racks[name][turn], name) for turn in range(longest) for name in names if turn < len(racks[name])]


def _rack_unaware(
    brokers: Sequence[int], numbers: range, replication_factor: int, start: int, shift: int
) -> list[tuple[int, ...]]:
    count, placed = len(brokers), []
    for number in numbers:
        if number > 0 and number % count == 0:
            shift += 1
        leader = (number + start) % count
        followers = (brokers[_follower(leader, shift, turn, count)] for turn in range(replication_factor - 1))
        placed.append((brokers[leader], *followers))
    return placed


def _rack_aware(
    brokers: Sequence[PlacedBroker], numbers: range, replication_factor: int, start: int, shift: int
) -> list[tuple[int, ...]]:
    count, placed = len(brokers), []
    rack_count = len({rack for _, rack in brokers})
    for number in numbers:
        if number > 0 and number % count == 0:
            shift += 1
        leader = (number + start) % count
        replicas, racks, turn = [brokers[leader][0]], {brokers[leader][1]}, 0
        while len(replicas) < replication_factor:
            broker, rack = brokers[_follower(leader, shift * rack_count, turn, count)]
            turn += 1
            if broker not in replicas and (rack not in racks or len(racks) == rack_count):
                replicas.append(broker)
                racks.add(rack)
        placed.append(tuple(replicas))
    return placed


def _follower(leader: int, shift: int, turn: int, count: int) -> int:
    """Return the index of a follower: never the leader's own."""
    return (leader + 1 + (shift + turn) % (count - 1)) % count


def _mixed_racks(brokers: Sequence[PlacedBroker]) -> str:
    without = ", ".join(str(broker) for broker, rack in sorted(brokers) if rack is None)
    return f"Not all brokers have rack information: set broker.rack on brokers {without}, or on none."
