"""The context of the policy questions about one request: its description, the cluster's defaults,
and the replicas that a policy sees of new partitions.

Rule: what a cluster may carry out is judged, also where a node of this program would refuse it or
the cluster will. What every Kafka refuses goes there without a question, because its own answer
depends on its version and on who asks (`Form.is_impossible`). What the gateway alone cannot
understand is a Refusal, and goes no further where a policy has to allow it. So is what the state
that was read leaves no room for (`NotSeen`), because that state may be old.
"""

from collections.abc import Callable, Sequence
from random import randrange

import msgspec

from ...admin import questions
from ...admin.description import RequestDescription
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.placement import PlacedBroker, assign_replicas, check_counts, placed_brokers
from ...policies.requests import RequestBuilder
from ...protocol.error_codes import ErrorCode
from .reading import ClusterDefaults

MOST_REPLICAS = 500_000
"""How many replicas one request may create: they are all placed before it is judged."""


class Placed(msgspec.Struct, frozen=True):
    """The replicas of new partitions."""

    rows: Sequence[tuple[int, ...]]
    refusal: Refusal | None = None
    """Why a node of this program would not place them so, if it would not."""

    @property
    def count(self) -> int:
        return sum(map(len, self.rows))


class QuestionContext:
    """The description of a request, the cluster's defaults, and the replicas that the request may
    still create.
    """

    def __init__(
        self,
        description: RequestDescription,
        defaults: ClusterDefaults,
        *,
        created_ms: Callable[[str], int | None],
        validate_only: bool,
        is_automatic: bool,
    ) -> None:
        """`created_ms` returns the time of a topic's creation, if it is known."""
        self.defaults = defaults
        self.created_ms = created_ms
        self.is_automatic = is_automatic
        """Whether the request only has topics created."""
        self._description = description
        self._validate_only = validate_only
        self._replicas_left = MOST_REPLICAS

    @property
    def asked(self) -> RequestBuilder:
        """A builder of policy requests that are asked now."""
        return questions.asked_by(self._description, validate_only=self._validate_only, state_may_be_old=True)

    def placed(
        self, image: Image, partitions: int, factor: int, *, start: int = -1, first_partition: int = 0
    ) -> Placed:
        """Place replicas as the cluster might. Raises Refusal for too many."""
        brokers = placed_brokers(image)
        if partitions * max(1, factor) > self._replicas_left:
            raise unplaceable(brokers, partitions, factor) or _too_many()
        return by_counts(brokers, partitions, factor, random=randrange, start=start, first_partition=first_partition)

    def count(self, replicas: int) -> None:
        """Count new replicas. Raises Refusal for too many."""
        if replicas > self._replicas_left:
            raise _too_many()
        self._replicas_left -= replicas


def _too_many() -> Refusal:
    text = f"The request asks for too many replicas: one request may create {MOST_REPLICAS}."
    return Refusal(ErrorCode.INVALID_PARTITIONS, text)


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
