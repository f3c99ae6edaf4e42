"""Which brokers get which replicas of a new partition.

Rule: pure. Brokers, counts and two random numbers go in, assignments come out; the same input gives
the same output. The algorithm is Kafka's (AdminUtils in ZooKeeper mode), so that clusters look as
their operators expect: leaders walk round the brokers, the followers' distance grows by one every
round, and racks, where every broker has one, are visited in turn.
"""

from collections.abc import Callable, Sequence

from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from .image import Image

UNSET = -1

PlacedBroker = tuple[int, str | None]
"""Broker id and rack."""


def placed_brokers(image: Image) -> list[PlacedBroker]:
    """Return the brokers that replicas can be placed on: all that are registered, by id."""
    return [(broker_id, broker.rack) for broker_id, broker in sorted(image.brokers.items())]


def assign_replicas(
    brokers: Sequence[PlacedBroker],
    partitions: int,
    replication_factor: int,
    *,
    random: Callable[[int], int],
    start: int = UNSET,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of partitions `first_partition`, `first_partition + 1`, ..., the preferred
    leader first.

    `random(n)` draws from 0..n-1 (`secrets.randbelow`, `random.Random(7).randrange`); it is asked
    only where `start` is unset. `start` fixes both where the leaders begin and how far the
    followers are: CreatePartitions gives it. Raises Refusal, as `check_counts`.
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
    """Raise Refusal if so many replicas have no place: cheap, however many there are."""
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
    """Order brokers by one of each rack in turn: racks by name, brokers by id, exhausted racks
    skipped.
    """
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
