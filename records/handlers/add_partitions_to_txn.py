"""AddPartitionsToTxn (24) makes partitions part of a producer's transaction. From version 4 on
brokers ask about several transactions, also to verify them (KIP-890).
"""

from collections.abc import Mapping, Sequence

from ...admin.permissions import CLUSTER_ACTION, Permission
from ...admin.spec import InnerRows, Rows, copied
from ...clock import now_ms
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ..serving.node_coordinator import RecordCoordinator
from ..serving.partitions import found
from ..serving.plane import DataPlane
from ..transactions import ProducerIdentity, TransactionError
from .permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from .reaching import refusal_of_producer
from .transactions import code_for

NODE = Permission(
    CLUSTER_ACTION.operation, CLUSTER_ACTION.resource_type, "from version 4 on; else CLUSTER_AUTHORIZATION_FAILED"
)
OF_BROKERS_SINCE = 4
Place = tuple[str, int]


def handle(
    plane: DataPlane, coordinator: RecordCoordinator, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if context.header.api_version < OF_BROKERS_SINCE:
        asked = AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        rows = _transaction(plane, coordinator, context, asked)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)
    if not context.may(NODE):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=_transaction(plane, coordinator, context, each),
            )
            for each in request.transactions
        ]
    )


def _transaction(
    plane: DataPlane,
    coordinator: RecordCoordinator,
    context: RequestContext,
    asked: AddPartitionsToTxnTransaction,
) -> list[AddPartitionsToTxnTopicResult]:
    places = [(topic.name, index) for topic in asked.topics for index in topic.partitions]
    if not context.may(WRITE_TRANSACTIONAL_ID, asked.transactional_id):
        return _rows(asked.topics, dict.fromkeys(places, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    codes = _codes_of_topics(plane, context, asked.topics)
    if codes:  # then none of the others is added, either
        return _rows(asked.topics, dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED) | codes)
    code = refusal_of_producer(coordinator, context, asked.transactional_id)
    if code:
        return _rows(asked.topics, dict.fromkeys(places, code))
    return _rows(asked.topics, _added(plane, context, asked, places))


def _codes_of_topics(
    plane: DataPlane, context: RequestContext, topics: Sequence[AddPartitionsToTxnTopic]
) -> dict[Place, ErrorCode]:
    names = [topic.name for topic in topics if topic.name]
    denied = context.without(WRITE_TOPIC, names)
    image = plane.view.cache.image
    codes: dict[Place, ErrorCode] = {}
    for topic in topics:
        for index in topic.partitions:
            if topic.name in denied:
                codes[topic.name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif found(image.topics.get(topic.name), index) is None:
                codes[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return codes


def _added(
    plane: DataPlane, context: RequestContext, asked: AddPartitionsToTxnTransaction, places: Sequence[Place]
) -> Mapping[Place, ErrorCode]:
    producer = ProducerIdentity(asked.producer_id, asked.producer_epoch)
    try:
        if asked.verify_only:
            return plane.transactions.verify(asked.transactional_id, producer, places)
        plane.transactions.add_partitions(asked.transactional_id, producer, set(places), now_ms())
    except TransactionError as error:
        return dict.fromkeys(places, code_for(context.header.api_version, error.code))
    return {}


def _rows(
    topics: Sequence[AddPartitionsToTxnTopic], codes: Mapping[Place, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes.get((topic.name, index), ErrorCode.NONE)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _topics(asked: AddPartitionsToTxnTransaction) -> list[AddPartitionsToTxnTopic]:
    return asked.topics


def _names(asked: AddPartitionsToTxnTransaction) -> list[dict[str, str]]:
    return [{"name": topic.name} for topic in asked.topics]


def _indexes(topic: AddPartitionsToTxnTopic) -> list[dict[str, int]]:
    return [{"partition_index": index} for index in topic.partitions]


OF_PARTITIONS = InnerRows("results_by_partition", AddPartitionsToTxnPartitionResult, _indexes)
API = ServedApi(
    key=ApiKey.ADD_PARTITIONS_TO_TXN,
    handler=handle,
    waits_for_update=True,
    permissions=(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC, NODE),
    rows=Rows(
        "results_by_transaction",
        AddPartitionsToTxnResult,
        {"transactions": copied("transactional_id")},
        since=OF_BROKERS_SINCE,
        inner=InnerRows("topic_results", AddPartitionsToTxnTopicResult, _names, inner=OF_PARTITIONS, parts=_topics),
        before=Rows(
            "results_by_topic_v3_and_below",
            AddPartitionsToTxnTopicResult,
            {"v3_and_below_topics": copied("name")},
            inner=OF_PARTITIONS,
        ),
    ),
)
