"""The port of logs, as a node answers it that keeps records."""

from collections.abc import Sequence

from ...clock import now_ms
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...controller.broker.logs import FoundOffset, LogBounds, Logs
from ...process.settings.node_config import NodeConfig
from ...process.steps import Steps
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_producers import ActiveProducer
from ...protocol.messages.list_offsets import LATEST_TIMESTAMP
from ...protocol.messages.write_txn_markers import TransactionMarker
from ..control import EndMarker
from ..errors import LogError
from ..log_values import Isolation
from .plane import DataPlane


class RecordLogs(Logs):
    def __init__(self, config: NodeConfig, plane: DataPlane) -> None:
        super().__init__(config)
        self._plane = plane

    @property
    def state(self) -> object:
        return self.revision, self._plane.logs.revision

    def log_of(self, topic: Topic, index: int) -> LogBounds:
        log = self._plane.logs.seen(topic, index)
        return LogBounds(log.start, log.high_watermark, log.end, log.size)

    def find(self, topic: Topic, index: int, timestamp: int, *, committed: bool = False) -> Steps[FoundOffset | None]:
        log = self._plane.logs.seen(topic, index)
        isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
        found = yield from log.offset_for(timestamp, isolation)
        if found is None:
            return None
        epoch = topic.partitions[index].leader_epoch if timestamp == LATEST_TIMESTAMP else found.epoch
        return FoundOffset(found.offset, epoch, found.timestamp)

    def offsets_before(self, topic: Topic, index: int, timestamp: int, count: int) -> Sequence[int]:
        return self._plane.logs.seen(topic, index).offsets_before(timestamp, count, now_ms())

    def delete_records(self, topic: Topic, index: int, offset: int) -> int:
        log = self._plane.logs.written(topic, index, self._plane.topics.settings_of(topic))
        try:
            return log.delete_before(offset)
        except LogError as error:
            raise Refusal(error.code, error.message) from None
        finally:
            self._plane.logs.changed((topic.topic_id, index))

    def producers(self, topic: Topic, index: int) -> Sequence[ActiveProducer]:
        return [
            ActiveProducer(
                producer_id=each.producer_id,
                producer_epoch=each.epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=each.first_open_offset,
            )
            for each in self._plane.logs.seen(topic, index).producers
        ]

    def write_marker(self, topic: Topic, index: int, marker: TransactionMarker) -> ErrorCode:
        log = self._plane.logs.written(topic, index, self._plane.topics.settings_of(topic))
        end = EndMarker(marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result)
        try:
            log.append_marker(end, leader_epoch=topic.partitions[index].leader_epoch, now=now_ms())
        except LogError as error:
            return error.code
        self._plane.logs.changed((topic.topic_id, index))
        return ErrorCode.NONE
