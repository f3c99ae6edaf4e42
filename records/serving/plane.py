"""The records, groups and transactions of the cluster as one node serves them."""

from ...clock import now_ms
from ...cluster.entities import Topic
from ...controller.broker.data import DataParts
from ...process.steps import Steps
from ...protocol.error_codes import ErrorCode
from ..batches import Batch
from ..errors import LogError
from ..fetch_sessions import FetchSessions
from ..log_values import Appended
from ..transactions import ProducerIdentity, TransactionError
from .cluster_data import ClusterData
from .node_topics import NodeTopics

TRANSACTIONS_SINCE = 3
"""The first version of Produce with transactions."""
ABORTABLE_SINCE = 11
"""The first version of Produce whose clients know TRANSACTION_ABORTABLE."""
VERIFICATION_CODES = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""What a producer gets for errors of the coordinator: one that it knows, or one on which it sends
the batch again (Kafka: ReplicaManager).
"""


class DataPlane:
    def __init__(self, parts: DataParts, data: ClusterData) -> None:
        self.view = parts.view
        self.data = data
        self.logs = data.logs
        self.groups = data.groups
        self.transactions = data.transactions
        slots = parts.config.integer("max.incremental.fetch.session.cache.slots")
        self.sessions = FetchSessions(data.session_id, slots)
        self.topics = NodeTopics(parts)

    def check(self, topic: Topic, index: int, records: bytes) -> Steps[Batch | None]:
        """Check a producer's batches, and return what `append` takes. Raises LogError."""
        return self.logs.written(topic, index, self.topics.settings_of(topic)).check(records, now_ms())

    def append(self, topic: Topic, index: int, checked: Batch | None, leader_epoch: int) -> Appended:
        """Append what was checked, and wake who waits for it. Raises LogError."""
        kept = self.logs.written(topic, index, self.topics.settings_of(topic))
        appended = kept.append(checked, leader_epoch=leader_epoch, now=now_ms())
        self.logs.changed((topic.topic_id, index))
        return appended

    def check_transaction(
        self, topic: Topic, index: int, records: bytes, transactional_id: str | None, version: int
    ) -> None:
        """Check that the partition is part of the open transaction to which a producer's records
        belong, so that none is left hanging (KIP-890). Raises LogError.
        """
        batch = Batch.read(records) if version >= TRANSACTIONS_SINCE and records else None
        if batch is None or not batch.is_transactional:
            return
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if self.logs.seen(topic, index).producers.has_open_transaction(producer_id, epoch):
            return
        place = topic.name, index
        try:
            verified = self.transactions.verify(transactional_id or "", ProducerIdentity(producer_id, epoch), [place])
            code = verified[place]
        except TransactionError as error:
            code = VERIFICATION_CODES.get(error.code, error.code)
        if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
            code = ErrorCode.INVALID_TXN_STATE
        if code:
            message, is_shown = "Partition was not added to the transaction", code == ErrorCode.INVALID_TXN_STATE
            raise LogError(code, message, shows_message=is_shown)
