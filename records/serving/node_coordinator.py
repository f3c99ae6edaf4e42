"""The port of the coordinator, as a node answers it that has members of groups and transactions."""

from collections.abc import Iterator, Sequence

from ...clock import now_ms
from ...controller.broker.coordinator import NO_ID, CommittedOffsets, CoordinatedGroup, Coordinator, without_producer_id
from ...controller.broker.producer_ids import ProducerIds
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_transactions import DescribedTransaction
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ...protocol.messages.list_transactions import ListedTransaction, ListTransactionsRequest
from ..groups.group import ClassicGroup
from ..transactions import ProducerIdentity, TransactionEnding, TransactionError
from .plane import DataPlane


class RecordCoordinator(Coordinator):
    def __init__(self, plane: DataPlane, producer_ids: ProducerIds) -> None:
        super().__init__(plane.view.broker_id, plane.view.cache, producer_ids)
        self.plane = plane
        self._groups = plane.groups
        self._transactions = plane.transactions

    # ------------------------------------------------------------------ groups

    def groups(self) -> Iterator[CoordinatedGroup | None]:
        for group in list(self._groups):
            yield _coordinated(group) if self.coordinates_group(group.group_id) else None

    def group(self, group_id: str) -> CoordinatedGroup | None:
        group = self._groups.get(group_id)
        return None if group is None else _coordinated(group)

    def offsets(self, group_id: str) -> CommittedOffsets:
        group = self._groups.get(group_id)
        if group is None:
            return CommittedOffsets()
        offsets = group.offsets
        return CommittedOffsets(offsets.committed, offsets.size, offsets.is_unstable)

    def remove_member(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        code = self._groups.leave(group_id, member_id, instance_id, now_ms())
        self.plane.data.groups_changed()
        return code

    # ------------------------------------------------------------------ transactions

    def transactions(self, request: ListTransactionsRequest) -> Sequence[ListedTransaction]:
        return [
            each
            for each in self._transactions.listed(request, now_ms())
            if self.coordinates_transactional_id(each.transactional_id)
        ]

    def transaction(self, transactional_id: str) -> DescribedTransaction | None:
        transaction = self._transactions.get(transactional_id)
        return None if transaction is None else transaction.described()

    async def init_producer(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        name = request.transactional_id
        if name is None:
            return await super().init_producer(request)
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
        producer_id: int | None = NO_ID
        if self._transactions.needs_producer_id(name, expected):
            producer_id = await self._producer_ids.next_id()
        if producer_id is None:
            return without_producer_id(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        try:
            made = self._transactions.init_producer(
                name, request.transaction_timeout_ms, now_ms(), expected=expected, new_producer_id=producer_id
            )
        except TransactionError as error:
            return without_producer_id(error.code)
        if isinstance(made, TransactionEnding):
            self.plane.data.finish(made)
            return without_producer_id(ErrorCode.CONCURRENT_TRANSACTIONS)
        return InitProducerIdResponse(producer_id=made.producer_id, producer_epoch=made.epoch)


def _coordinated(group: ClassicGroup) -> CoordinatedGroup:
    row = group.described()
    return CoordinatedGroup(row.group_id, row.group_state, row.protocol_type, row.protocol_data, row.members)
