"""The replicas that new partitions would have, as far as a policy has to know them; pure.

Rule: what a cluster may carry out can be judged, also where a node of this program would refuse it
or the cluster will. The cluster has the last word, in its own words.
"""

from collections.abc import Callable, Sequence

import msgspec

from ...admin.create_partitions import manual_rows
from ...admin.create_topics import manual_assignment
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.placement import PlacedBroker, assign_replicas, check_counts
from ...protocol.messages.create_partitions import CreatePartitionsAssignment
from ...protocol.messages.create_topics import CreatableTopic


class Placed(msgspec.Struct, frozen=True):
    """The replicas of new partitions."""

    rows: Sequence[tuple[int, ...]]
    refusal: Refusal | None = None
    """Why a node of this program would not place them so, if it would not."""

    @property
    def count(self) -> int:
        return sum(map(len, self.rows))


def refusal_of(check: Callable[[], object]) -> Refusal | None:
    try:
        check()
    except Refusal as refusal:
        return refusal
    return None


def unplaceable(brokers: Sequence[PlacedBroker], partitions: int, factor: int) -> Refusal | None:
    """Return why the brokers that are known cannot hold this many replicas."""
    return refusal_of(lambda: check_counts(brokers, partitions, factor))


def by_counts(
    brokers: Sequence[PlacedBroker],
    partitions: int,
    factor: int,
    *,
    random: Callable[[int], int],
    start: int = -1,
    first_partition: int = 0,
) -> Placed:
    """Place replicas as a cluster might. Where there are too few brokers, negative ids stand for
    those that are not known.
    """
    refusal = unplaceable(brokers, partitions, factor)
    if refusal is None:
        rows = assign_replicas(brokers, partitions, factor, random=random, start=start, first_partition=first_partition)
        return Placed(rows)
    known = tuple(broker for broker, _ in brokers)[: max(0, factor)]
    return Placed((known + tuple(range(-1, len(known) - factor - 1, -1)),) * partitions, refusal)


def by_name(image: Image, wanted: CreatableTopic) -> Placed:
    """Return the replicas that CreateTopics names; of a partition that it names twice, the last
    ones. Raises Refusal for a partition below 0, of which it is not known what a cluster makes.
    """
    rows = {assignment.partition_index: tuple(assignment.broker_ids) for assignment in wanted.assignments}
    refusal = refusal_of(lambda: manual_assignment(image, wanted))
    if refusal is not None and min(rows) < 0:
        raise refusal
    return Placed([rows[index] for index in sorted(rows)], refusal)


def added_by_name(image: Image, topic: Topic, rows: Sequence[CreatePartitionsAssignment], increment: int) -> Placed:
    refusal = refusal_of(lambda: manual_rows(image, topic, rows, increment))
    return Placed([tuple(row.broker_ids) for row in rows], refusal)
