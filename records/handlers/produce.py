"""Produce (0) appends record batches to partitions that this node leads.

The order of the checks is Kafka's (KafkaApis.handleProduceRequest, ReplicaManager.appendRecords).
All replicas share a log, so that a batch is with all of them once it is there, and nothing waits
for followers.
"""

from collections.abc import Mapping

from ...admin.spec import InnerRows, Rows, copied
from ...cluster.entities import Partition, Topic
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.produce import (
    ALL_ACKS,
    LEADER_ACKS,
    NO_ACKS,
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ..errors import LogError
from ..serving.partitions import NO_EPOCH, code_of, found
from ..serving.plane import DataPlane
from ..validation import begins_transactional, check_request
from .leaders import endpoints_of
from .permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID

LEADERS_SINCE = 10
"""The first version that says where a partition's leader is, to who asked another node."""
ADMIN_CLIENT = "__admin_client"
"""The client id with which Kafka lets a client write to internal topics."""
NO_OFFSET = -1


def handle(plane: DataPlane, context: RequestContext, request: ProduceRequest) -> Steps[ProduceResponse]:
    context.notes.is_silent = request.acks == NO_ACKS
    producing = Producing(plane, context, request)
    rows = []
    for name, asked in _by_topic(request).items():
        row = yield from producing.topic(name, asked)
        rows.append(row)
    leaders = endpoints_of(plane.view.cache.image, context.listener, producing.leaders)
    return ProduceResponse(
        responses=rows,
        node_endpoints=[
            ProduceLeaderEndpoint(node_id=node_id, host=endpoint.host, port=endpoint.port, rack=rack)
            for node_id, endpoint, rack in leaders
        ],
    )


class Producing:
    """Carries out one request."""

    def __init__(self, plane: DataPlane, context: RequestContext, request: ProduceRequest) -> None:
        self._plane = plane
        self._context = context
        self._request = request
        self._denied = context.without(WRITE_TOPIC, [topic.name for topic in request.topic_data])
        self._broken: LogError | None = None
        """Why all partitions are refused, if the records of one are not even framed."""
        self._refusal = self._refusal_of_all()
        self.leaders: set[int] = set()
        """The leaders of partitions that this node does not lead."""

    def _refusal_of_all(self) -> ErrorCode:
        name, topics = self._request.transactional_id, self._request.topic_data
        try:
            is_transactional = any(
                begins_transactional(each.records) for topic in topics for each in topic.partition_data
            )
        except LogError as error:
            self._broken = error
            return error.code
        if is_transactional and (name is None or not self._context.may(WRITE_TRANSACTIONAL_ID, name)):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        known = (NO_ACKS, LEADER_ACKS, ALL_ACKS)
        return ErrorCode.NONE if self._request.acks in known else ErrorCode.INVALID_REQUIRED_ACKS

    def topic(self, name: str, asked: Mapping[int, PartitionProduceData]) -> Steps[TopicProduceResponse]:
        rows = []
        for each in asked.values():
            rows.append((yield from self._partition(name, each)))
            yield
        return TopicProduceResponse(name=name, partition_responses=rows)

    def _partition(self, name: str, asked: PartitionProduceData) -> Steps[PartitionProduceResponse]:
        """Check the records in steps, and append them in one. What the cluster and transactions say
        is asked before both, because it may change in between.
        """
        if self._broken is not None:
            return _not_appended(asked.index, self._broken, NO_OFFSET)
        code, place = self._asked_for(name, asked.index)
        if code:
            return self._refused(asked.index, code, place)
        assert place is not None
        start = NO_OFFSET
        try:
            check_request(self._context.header.api_version, asked.records)
            self._check_transaction(place[0], asked)
            start = self._plane.logs.seen(place[0], asked.index).start
            checked = yield from self._plane.check(place[0], asked.index, asked.records or b"")
            code, place = self._asked_for(name, asked.index)
            if code:
                return self._refused(asked.index, code, place)
            assert place is not None
            self._check_transaction(place[0], asked)
            appended = self._plane.append(place[0], asked.index, checked, place[1].leader_epoch)
        except LogError as error:
            return _not_appended(asked.index, error, NO_OFFSET if error.hides_start else start)
        return PartitionProduceResponse(
            index=asked.index,
            base_offset=appended.first_offset,
            log_append_time_ms=appended.append_time,
            log_start_offset=start,
        )

    def _asked_for(self, name: str, index: int) -> tuple[ErrorCode, tuple[Topic, Partition] | None]:
        place = found(self._plane.view.cache.image.topics.get(name), index)
        return self._refusal_of(name, place), place

    def _check_transaction(self, topic: Topic, asked: PartitionProduceData) -> None:
        version, name = self._context.header.api_version, self._request.transactional_id
        self._plane.check_transaction(topic, asked.index, asked.records or b"", name, version)

    def _refusal_of(self, name: str, place: tuple[Topic, Partition] | None) -> ErrorCode:
        if self._refusal == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return self._refusal
        if name in self._denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if place is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._refusal:
            return self._refusal
        topic, partition = place
        if topic.is_internal and self._context.client_id != ADMIN_CLIENT:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        code = code_of(partition, self._plane.view, NO_EPOCH)
        if code or self._request.acks != ALL_ACKS:
            return code
        needed = self._plane.topics.min_insync_replicas(topic)
        return ErrorCode.NOT_ENOUGH_REPLICAS if len(partition.isr) < needed else ErrorCode.NONE

    def _refused(self, index: int, code: ErrorCode, place: tuple[Topic, Partition] | None) -> PartitionProduceResponse:
        row = PartitionProduceResponse(index=index, error_code=code, base_offset=NO_OFFSET)
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._context.header.api_version >= LEADERS_SINCE:
            assert place is not None
            row.current_leader = LeaderIdAndEpoch(leader_id=place[1].leader, leader_epoch=place[1].leader_epoch)
            self.leaders.add(place[1].leader)
        return row


def _by_topic(request: ProduceRequest) -> Mapping[str, Mapping[int, PartitionProduceData]]:
    """Return what is asked of each partition. Kafka takes the last of what names one twice."""
    asked: dict[str, dict[int, PartitionProduceData]] = {}
    for topic in request.topic_data:
        for each in topic.partition_data:
            asked.setdefault(topic.name, {})[each.index] = each
    return asked


def _not_appended(index: int, error: LogError, start: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=NO_OFFSET,
        log_start_offset=start,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=each.index, batch_index_error_message=each.message)
            for each in error.record_errors
        ],
        error_message=error.shown,
    )


def _indexes(topic: TopicProduceData) -> list[dict[str, int]]:
    return [{"index": each.index} for each in topic.partition_data]


API = ServedApi(
    key=ApiKey.PRODUCE,
    handler=handle,
    waits_for_update=True,
    permissions=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID),
    rows=Rows(
        "responses",
        TopicProduceResponse,
        {"topic_data": copied("name")},
        inner=InnerRows("partition_responses", PartitionProduceResponse, _indexes),
    ),
)
