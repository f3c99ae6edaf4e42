"""DescribeProducers (61) returns the producers of partitions that have a replica here."""

from collections.abc import Collection, Iterator

from ...admin.bounds import RowCount
from ...admin.permissions import Permission
from ...admin.spec import InnerRows, Rows, copied
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.topic_names import validate_topic_name
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    ProducersOfPartition,
    ProducersOfTopic,
)
from ..broker.logs import Logs
from ..broker.view import BrokerView

READ_TOPIC = Permission(AclOperation.READ, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for its partitions")
NOT_HERE = "This server does not host this topic-partition."
"""The text of Kafka for a partition of a topic that does not exist."""


def handle(
    view: BrokerView, logs: Logs, context: RequestContext, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    RowCount().add(sum(len(topic.partition_indexes) for topic in request.topics))
    denied = yield from context.denied(READ_TOPIC, [topic.name for topic in request.topics])
    return DescribeProducersResponse(topics=(yield from one_by_one(_topics(view, logs, request, denied))))


def _topics(
    view: BrokerView, logs: Logs, request: DescribeProducersRequest, denied: Collection[str]
) -> Iterator[ProducersOfTopic]:
    for wanted in request.topics:
        topic, refusal = view.cache.image.topics.get(wanted.name), None
        if wanted.name in denied:
            refusal = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
        elif topic is None:
            refusal = _reason(wanted.name)
        rows = [_partition(view, logs, topic, index, refusal) for index in wanted.partition_indexes]
        yield ProducersOfTopic(name=wanted.name, partitions=rows)


def _reason(name: str) -> Refusal:
    try:
        validate_topic_name(name)
    except Refusal as refusal:
        return refusal
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HERE)


def _partition(
    view: BrokerView, logs: Logs, topic: Topic | None, index: int, refusal: Refusal | None
) -> ProducersOfPartition:
    if refusal is not None:
        return ProducersOfPartition(partition_index=index, error_code=refusal.code, error_message=refusal.message)
    partition = None if topic is None else topic.partition(index)
    if topic is None or partition is None:
        return ProducersOfPartition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if view.broker_id not in partition.replicas:
        return ProducersOfPartition(partition_index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return ProducersOfPartition(partition_index=index, active_producers=list(logs.producers(topic, index)))


def _indexes(topic: DescribeProducersTopic) -> Iterator[dict[str, int]]:
    return ({"partition_index": index} for index in topic.partition_indexes)


API = ServedApi(
    key=ApiKey.DESCRIBE_PRODUCERS,
    handler=handle,
    waits_for_update=True,
    permissions=(READ_TOPIC,),
    rows=Rows(
        "topics",
        ProducersOfTopic,
        {"topics": copied("name")},
        inner=InnerRows("partitions", ProducersOfPartition, _indexes),
    ),
)
