"""The port by which handlers ask the coordinator of groups and transactions.

`Coordinator` itself is the answer of a node that has none of either. Nodes have `GroupOffsets`:
groups that consist of the offsets that administrators have set, without members.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from ...cluster.cache import MetadataCache
from ...cluster.coordinators import CoordinatorType, coordinator_of
from ...cluster.znodes.groups import name_of
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroupMember
from ...protocol.messages.describe_transactions import DescribedTransaction
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ...protocol.messages.list_transactions import ListedTransaction, ListTransactionsRequest
from .producer_ids import ProducerIds

EMPTY = "Empty"
"""The state of a group without members."""
NO_ID = -1
"""The id and the epoch of nobody."""


class CoordinatedGroup(msgspec.Struct, frozen=True):
    """A group that exists, with the protocol that its members have agreed on."""

    group_id: str
    state: str = EMPTY
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[DescribedGroupMember] = ()


class ReadOffset(Protocol):
    """An offset as OffsetFetch answers it."""

    @property
    def offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def metadata(self) -> str: ...


class CommittedOffsets(msgspec.Struct, frozen=True):
    """The offsets of a group in topics that exist, by topic and partition, and a bound of their
    bytes.
    """

    by_topic: Mapping[str, Mapping[int, ReadOffset]] = {}
    size: int = 0
    is_unstable: Callable[[str, int], bool] = lambda _topic, _index: False
    """Whether an open transaction may change the offset of a topic and partition."""


class Coordinator:
    def __init__(self, broker_id: int, cache: MetadataCache, producer_ids: ProducerIds) -> None:
        self._broker_id = broker_id
        self._cache = cache
        self._producer_ids = producer_ids

    def coordinates_group(self, group_id: str) -> bool:
        return coordinator_of(CoordinatorType.GROUP, group_id, self._cache.image.topics) == self._broker_id

    def coordinates_transactional_id(self, transactional_id: str) -> bool:
        topics = self._cache.image.topics
        return coordinator_of(CoordinatorType.TRANSACTION, transactional_id, topics) == self._broker_id

    # ------------------------------------------------------------------ groups

    def groups(self) -> Iterator[CoordinatedGroup | None]:
        """Yield the groups that this node coordinates, and None for each other that was looked at,
        so that the caller can let other tasks run.
        """
        return iter(())

    def group(self, _group_id: str) -> CoordinatedGroup | None:
        return None

    def offsets(self, _group_id: str) -> CommittedOffsets:
        return CommittedOffsets()

    def remove_member(self, _group_id: str, _member_id: str, _instance_id: str | None) -> ErrorCode:
        return ErrorCode.UNKNOWN_MEMBER_ID

    # ------------------------------------------------------------------ transactions

    def transactions(self, _request: ListTransactionsRequest) -> Sequence[ListedTransaction]:
        """Return those that the filters of the request let through."""
        return ()

    def transaction(self, _transactional_id: str) -> DescribedTransaction | None:
        return None

    async def init_producer(self, _request: InitProducerIdRequest) -> InitProducerIdResponse:
        """Give a producer an id. Without transactions there is nothing to fence, and each id is one
        that no producer had.
        """
        producer_id = await self._producer_ids.next_id()
        if producer_id is None:
            return without_producer_id(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return InitProducerIdResponse(producer_id=producer_id)


class GroupOffsets(Coordinator):
    """The groups of a node's image. One that has no offset in any topic does not exist."""

    def groups(self) -> Iterator[CoordinatedGroup | None]:
        image = self._cache.image
        for group in image.groups.values():
            is_known = group.group_id or group.header.is_readable  # else nobody knows whose znode it is
            is_here = is_known and self.coordinates_group(group.group_id)
            yield CoordinatedGroup(group.group_id) if is_here and group.exists(image.topics) else None

    def group(self, group_id: str) -> CoordinatedGroup | None:
        image = self._cache.image
        group = image.groups.get(name_of(group_id))
        return CoordinatedGroup(group_id) if group is not None and group.exists(image.topics) else None

    def offsets(self, group_id: str) -> CommittedOffsets:
        image = self._cache.image
        group = image.groups.get(name_of(group_id))
        live = {} if group is None else group.live(image.topics)
        return CommittedOffsets(live, group.size) if group is not None and live else CommittedOffsets()


def without_producer_id(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_ID)
