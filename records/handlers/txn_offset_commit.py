"""TxnOffsetCommit (28) sets offsets of a group as part of a transaction: they count once it is
committed.
"""

from collections.abc import Iterator

from ...admin.spec import InnerRows, Rows, copied
from ...clock import now_ms
from ...cluster.coordinators import partition_for
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ..groups.offsets import Committer, GroupOffset
from ..serving.node_coordinator import RecordCoordinator
from ..serving.node_topics import OFFSETS_TOPIC
from ..serving.plane import DataPlane
from ..transactions import ProducerIdentity, TransactionError
from .committing import Asked, CheckedOffsets, checked
from .permissions import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from .reaching import refusal_of_group

ABORTABLE_SINCE = 4
"""The first version whose clients know TRANSACTION_ABORTABLE (KIP-890)."""


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    now = now_ms()
    asked = list(_asked(request, now))
    code = _refusal(context, request)
    if code:
        return _response(CheckedOffsets.refused(asked, code))
    found = checked(plane, context, asked)
    if found.offsets:
        code = refusal_of_group(coordinator, request.group_id) or _verified(plane, context, request)
        if not code:
            committer = Committer(request.member_id, request.group_instance_id, request.generation_id)
            code = plane.groups.commit_in_transaction(
                request.group_id, committer, request.producer_id, found.offsets, now
            )
            plane.data.groups_changed()
        if code:
            found.refuse(code)
    return _response(found)


def _refusal(context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    if not context.may(WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not context.may(READ_GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _verified(plane: DataPlane, context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Return why the group's offsets are no part of the producer's transaction, or NONE."""
    topic = plane.view.cache.image.topics[OFFSETS_TOPIC]
    place = OFFSETS_TOPIC, partition_for(request.group_id, len(topic.partitions))
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    try:
        code = plane.transactions.verify(request.transactional_id, producer, [place])[place]
    except TransactionError as error:
        code = error.code
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and context.header.api_version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _asked(request: TxnOffsetCommitRequest, now: int) -> Iterator[Asked]:
    for topic in request.topics:
        for each in topic.partitions:
            offset = GroupOffset(each.committed_offset, each.committed_leader_epoch, each.committed_metadata or "", now)
            yield Asked((topic.name, each.partition_index), offset)


def _response(found: CheckedOffsets) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in rows
                ],
            )
            for name, rows in found.rows()
        ]
    )


def _partitions(topic: TxnOffsetCommitRequestTopic) -> list[dict[str, int]]:
    return [{"partition_index": each.partition_index} for each in topic.partitions]


API = ServedApi(
    key=ApiKey.TXN_OFFSET_COMMIT,
    handler=handle,
    waits_for_update=True,
    permissions=(WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC),
    rows=Rows(
        "topics",
        TxnOffsetCommitResponseTopic,
        {"topics": copied("name")},
        inner=InnerRows("partitions", TxnOffsetCommitResponsePartition, _partitions),
    ),
)
