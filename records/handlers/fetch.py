"""Fetch (1) reads batches of partitions.

A request that finds too few bytes waits until more come, until a leader changes, or until its time
is over (Kafka: DelayedFetch). It may belong to a fetch session, in which a consumer names only what
has changed (KIP-227).
"""

from collections.abc import Awaitable, Sequence
from itertools import groupby

import msgspec
import trio

from ...admin.permissions import CLUSTER_ACTION, Permission
from ...admin.spec import InnerRows, Rows
from ...clock import now_ms
from ...cluster.entities import Partition, Topic
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...process.time_slices import carried_out
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.fetch import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    AbortedTransactionRow,
    CurrentLeader,
    DivergingEpoch,
    FetchableTopicResponse,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderEndpoint,
)
from ...protocol.schema import ZERO_UUID
from ..batches import Compression
from ..conversion import down_converted
from ..errors import LogError
from ..fetch_sessions import FetchContext, Wanted
from ..log import PartitionLog
from ..log_values import AbortedTransaction, Isolation
from ..serving.partitions import NO_EPOCH, code_of, found
from ..serving.plane import DataPlane
from .leaders import endpoints_of
from .permissions import READ_TOPIC

NODE = Permission(
    CLUSTER_ACTION.operation, CLUSTER_ACTION.resource_type, "TOPIC_AUTHORIZATION_FAILED for all, if a follower asks"
)
IDS_SINCE = 13
"""The first version that names topics by their ids."""
FOLLOWERS_SINCE = 11
"""The first version in which consumers read from followers (KIP-392)."""
LEADERS_SINCE = 16
"""The first version that says where a partition's leader is, to who asked another node."""
AT_LEAST_ONE_SINCE, MAGIC_1_SINCE, MAGIC_2_SINCE = 3, 2, 4
"""The first versions that give the first batch whole, however large it is, and that have batches of
these formats.
"""
ZSTD_SINCE = 10
"""The first version whose clients know the codec."""
UNKNOWN_OR_DENIED = frozenset(
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
)
ISOLATION_LEVELS = READ_UNCOMMITTED, READ_COMMITTED
NO_OFFSET = -1


def handle(
    plane: DataPlane, context: RequestContext, request: FetchRequest
) -> Steps[FetchResponse | Awaitable[FetchResponse]]:
    version = context.header.api_version
    if request.isolation_level not in ISOLATION_LEVELS:
        return _refused_as_whole(request, version)
    session = plane.sessions.open(request, version, now_ms())
    if session.error:
        return FetchResponse(error_code=session.error)
    fetching = Fetching(plane, context, request, session)
    yield from fetching.read()
    return fetching.response() if fetching.is_complete or request.max_wait_ms <= 0 else fetching.wait()


class FetchedPlace(msgspec.Struct, frozen=True):
    """The topic that a request means, as this node knows it, and why it is not read."""

    name: str = ""
    topic_id: bytes = ZERO_UUID
    code: ErrorCode = ErrorCode.NONE


class ReadRows(msgspec.Struct, frozen=True):
    """What a request found at one time."""

    rows: Sequence[FetchedPartition] = ()
    size: int = 0
    """The bytes of all batches."""
    has_error: bool = False
    revision: int = -1
    """The revision of the logs when the reading began."""


class Fetching:
    """Answers one request; what it reads is replaced when it reads again."""

    def __init__(self, plane: DataPlane, context: RequestContext, request: FetchRequest, session: FetchContext) -> None:
        self._plane = plane
        self._context = context
        self._request = request
        self._session = session
        self._version = context.header.api_version
        self._isolation = (
            Isolation.READ_COMMITTED if request.isolation_level == READ_COMMITTED else Isolation.READ_UNCOMMITTED
        )
        self._places = self._all_places()
        self._read = ReadRows()
        self._leaders: set[int] = set()

    @property
    def is_complete(self) -> bool:
        """Whether there is no reason to wait: enough bytes, nothing to wait for, or an error."""
        return self._read.has_error or self._read.size >= self._request.min_bytes or not self._session.wanted

    async def wait(self) -> FetchResponse:
        watched = {
            (place.topic_id, wanted.partition.partition)
            for place, wanted in zip(self._places, self._session.wanted, strict=True)
        }
        with (
            trio.move_on_at(self._context.arrived + self._request.max_wait_ms / 1000),
            self._plane.logs.watchers.watching(watched) as signal,
        ):
            if self._read.revision != self._plane.logs.revision:  # before the signal was there
                await carried_out(self.read())
            while not self.is_complete:
                await signal.wait()
                await carried_out(self.read())
        return self.response()

    # ------------------------------------------------------------------ reading

    def read(self) -> Steps[None]:
        rows, size, has_error, revision = [], 0, False, self._plane.logs.revision
        room = min(self._request.max_bytes, self._plane.view.configs.current.integer("fetch.max.bytes"))
        for place, wanted in zip(self._places, self._session.wanted, strict=True):
            row = self._partition(place, wanted.partition, room - size, at_least_one=size == 0)
            size += len(row.records or b"")
            has_error = has_error or row.error_code != 0 or row.diverging_epoch.epoch != NO_EPOCH
            rows.append(row)
            yield
        self._read = ReadRows(rows, size, has_error, revision)

    def _partition(
        self, place: FetchedPlace, asked: FetchPartition, room: int, *, at_least_one: bool
    ) -> FetchedPartition:
        known = found(self._plane.view.cache.image.topics.get(place.name), asked.partition)
        code = place.code or self._refusal_of(place, asked, known)
        if code:
            return self._refused(asked.partition, code, known)
        assert known is not None
        if self._version < ZSTD_SINCE and self._plane.topics.settings_of(known[0]).compression is Compression.ZSTD:
            return _failed(asked.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        log = self._plane.logs.seen(known[0], asked.partition)
        try:
            diverging = _diverging(log, asked)
            if diverging is not None:
                return self._row(log, asked, b"", (), diverging)
            self._check_size(log, asked)
            read = log.read(
                asked.fetch_offset,
                min(asked.partition_max_bytes, max(room, 0)),
                isolation=self._isolation,
                at_least_one=at_least_one and self._version >= AT_LEAST_ONE_SINCE,
                cut=self._version < AT_LEAST_ONE_SINCE,
            )
            data = read.data
            if self._version < MAGIC_2_SINCE:
                data = down_converted(data, int(self._version >= MAGIC_1_SINCE), asked.fetch_offset)
        except LogError as error:
            return _failed(asked.partition, error.code)
        return self._row(log, asked, data, read.aborted)

    def _check_size(self, log: PartitionLog, asked: FetchPartition) -> None:
        """Refuse a negative size as Kafka does, once there is something to read."""
        is_negative = min(self._request.max_bytes, asked.partition_max_bytes) < 0
        if is_negative and log.readable(asked.fetch_offset, self._isolation, 1):
            raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, "A fetch asks for a negative number of bytes.")

    def _row(
        self,
        log: PartitionLog,
        asked: FetchPartition,
        data: bytes,
        aborted: Sequence[AbortedTransaction],
        diverging: DivergingEpoch | None = None,
    ) -> FetchedPartition:
        rows = [AbortedTransactionRow(producer_id=each.producer_id, first_offset=each.first_offset) for each in aborted]
        row = FetchedPartition(
            partition_index=asked.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start,
            aborted_transactions=rows if self._isolation is Isolation.READ_COMMITTED else None,
            records=data,
        )
        if diverging is not None:
            row.diverging_epoch = diverging
        return row

    def _refusal_of(
        self, place: FetchedPlace, asked: FetchPartition, known: tuple[Topic, Partition] | None
    ) -> ErrorCode:
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic, partition = known
        if self._version >= IDS_SINCE and topic.topic_id != place.topic_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        from_follower = self._version >= FOLLOWERS_SINCE
        epoch = max(asked.current_leader_epoch, NO_EPOCH)
        return code_of(partition, self._plane.view, epoch, from_follower=from_follower)

    def _refused(self, index: int, code: ErrorCode, place: tuple[Topic, Partition] | None) -> FetchedPartition:
        row = _failed(index, code)
        moved = code in {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}
        if moved and place is not None and self._version >= LEADERS_SINCE:
            partition = place[1]
            row.current_leader = CurrentLeader(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
            self._leaders.add(partition.leader)
        return row

    # ------------------------------------------------------------------ the request

    def _all_places(self) -> list[FetchedPlace]:
        places = [self._named(wanted) for wanted in self._session.wanted]
        denied = self._denied(list(dict.fromkeys(place.name for place in places if place.name)))
        if not denied:
            return places
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return [FetchedPlace(each.name, each.topic_id, refused) if each.name in denied else each for each in places]

    def _named(self, wanted: Wanted) -> FetchedPlace:
        image = self._plane.view.cache.image
        if self._version < IDS_SINCE:
            topic = image.topics.get(wanted.topic)
            return FetchedPlace(wanted.topic, ZERO_UUID if topic is None else topic.topic_id)
        topic = image.topic_by_id(wanted.topic_id)
        if topic is None:
            return FetchedPlace(topic_id=wanted.topic_id, code=ErrorCode.UNKNOWN_TOPIC_ID)
        return FetchedPlace(topic.name, topic.topic_id)

    def _denied(self, names: Sequence[str]) -> frozenset[str]:
        if self._request.replica_id >= 0 or self._request.replica_state.replica_id >= 0:
            return frozenset() if self._context.may(NODE) else frozenset(names)
        return self._context.without(READ_TOPIC, names)

    # ------------------------------------------------------------------ the response

    def response(self) -> FetchResponse:
        answer = self._session.answer(list(zip(self._session.wanted, self._read.rows, strict=True)))
        topics = groupby(sorted(answer.rows, key=_is_unknown), key=lambda each: (each[0].topic, each[0].topic_id))
        leaders = endpoints_of(self._plane.view.cache.image, self._context.listener, self._leaders)
        return FetchResponse(
            error_code=answer.error,
            session_id=answer.session_id,
            responses=[
                FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[row for _, row in rows])
                for (name, topic_id), rows in topics
            ],
            node_endpoints=[
                LeaderEndpoint(node_id=node_id, host=endpoint.host, port=endpoint.port, rack=rack)
                for node_id, endpoint, rack in leaders
            ],
        )


def _is_unknown(row: tuple[Wanted, FetchedPartition]) -> bool:
    """Return whether a partition was refused before any log was asked: Kafka answers these last."""
    return row[1].error_code in UNKNOWN_OR_DENIED


def _diverging(log: PartitionLog, asked: FetchPartition) -> DivergingEpoch | None:
    """Return where the log of a reader parts from this one (KIP-595)."""
    if asked.last_fetched_epoch < 0:
        return None
    end = log.epoch_end(asked.last_fetched_epoch)
    if end.epoch == NO_EPOCH:
        raise LogError(ErrorCode.OFFSET_OUT_OF_RANGE, f"The log has no epoch {asked.last_fetched_epoch}.")
    if end.epoch < asked.last_fetched_epoch or end.offset < asked.fetch_offset:
        return DivergingEpoch(epoch=end.epoch, end_offset=end.offset)
    return None


def _refused_as_whole(request: FetchRequest, version: int) -> FetchResponse:
    """Answer what Kafka cannot read."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [] if version >= IDS_SINCE else request.topics
    return FetchResponse(
        error_code=code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic, partitions=[_failed(each.partition, code) for each in topic.partitions]
            )
            for topic in topics
        ],
    )


def _failed(index: int, code: ErrorCode) -> FetchedPartition:
    return FetchedPartition(
        partition_index=index,
        error_code=code,
        high_watermark=NO_OFFSET,
        last_stable_offset=NO_OFFSET,
        log_start_offset=NO_OFFSET,
        records=b"",
    )


def _topic(topic: FetchTopic) -> dict[str, str | bytes]:
    return {"topic": topic.topic, "topic_id": topic.topic_id}


def _indexes(topic: FetchTopic) -> list[dict[str, int]]:
    return [{"partition_index": each.partition} for each in topic.partitions]


API = ServedApi(
    key=ApiKey.FETCH,
    handler=handle,
    waits_for_update=True,
    permissions=(READ_TOPIC, NODE),
    rows=Rows(
        "responses",
        FetchableTopicResponse,
        {"topics": _topic},
        inner=InnerRows("partitions", FetchedPartition, _indexes),
    ),
)
