"""WriteTxnMarkers (27), by which administrators abort hanging transactions at the leaders of their
partitions.
"""

from collections.abc import Iterator

from ...admin.permissions import CLUSTER_ACTION, Permission
from ...admin.spec import Fields, InnerRows, Rows
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.write_txn_markers import (
    MarkerPartitionResult,
    MarkerTopic,
    MarkerTopicResult,
    TransactionMarker,
    TransactionMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ..broker.logs import Logs
from ..broker.view import BrokerView

ALTER_CLUSTER = Permission(
    AclOperation.ALTER,
    AclResourceType.CLUSTER,
    "or ClusterAction on Cluster: else CLUSTER_AUTHORIZATION_FAILED for each partition",
)
NODE = Permission(
    CLUSTER_ACTION.operation, CLUSTER_ACTION.resource_type, "asked for where Alter on Cluster is not allowed"
)


def handle(
    view: BrokerView, logs: Logs, context: RequestContext, request: WriteTxnMarkersRequest
) -> Steps[WriteTxnMarkersResponse]:
    may_write = context.may(ALTER_CLUSTER, logs_denial=False) or context.may(NODE)
    found: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if may_write:
                    code = _write(view, logs, topic.name, index, marker)
                found.setdefault(marker.producer_id, {}).setdefault(topic.name, {})[index] = code
                yield
    return WriteTxnMarkersResponse(
        markers=[
            TransactionMarkerResult(producer_id=producer_id, topics=[_topic(*each) for each in topics.items()])
            for producer_id, topics in found.items()
        ]
    )


def _write(view: BrokerView, logs: Logs, name: str, index: int, marker: TransactionMarker) -> ErrorCode:
    """Write a marker into a partition, and return its error. A partition without a replica here is
    unknown to this node, as in Kafka.
    """
    topic = view.cache.image.topics.get(name)
    partition = None if topic is None else topic.partition(index)
    if topic is None or partition is None or view.broker_id not in partition.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != view.broker_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return logs.write_marker(topic, index, marker)


def _topic(name: str, codes: dict[int, ErrorCode]) -> MarkerTopicResult:
    rows = [MarkerPartitionResult(partition_index=index, error_code=code) for index, code in codes.items()]
    return MarkerTopicResult(name=name, partitions=rows)


def _producer(marker: TransactionMarker) -> Fields:
    return {"producer_id": marker.producer_id}


def _names(marker: TransactionMarker) -> Iterator[Fields]:
    return ({"name": topic.name} for topic in marker.topics)


def _topics(marker: TransactionMarker) -> list[MarkerTopic]:
    return marker.topics


def _partitions(topic: MarkerTopic) -> Iterator[Fields]:
    return ({"partition_index": index} for index in topic.partition_indexes)


API = ServedApi(
    key=ApiKey.WRITE_TXN_MARKERS,
    handler=handle,
    waits_for_update=True,
    permissions=(ALTER_CLUSTER, NODE),
    rows=Rows(
        "markers",
        TransactionMarkerResult,
        {"markers": _producer},
        inner=InnerRows(
            "topics",
            MarkerTopicResult,
            _names,
            inner=InnerRows("partitions", MarkerPartitionResult, _partitions),
            parts=_topics,
        ),
    ),
)
