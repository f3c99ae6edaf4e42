"""Metadata (3) returns the brokers, the controller, and the partitions of topics with their leaders
and replicas.
"""

from typing import Annotated

from ..acls import NO_OPERATIONS
from ..schema import ZERO_UUID, Int16, Int32, Uuid, WireStruct, ignorable, message, nullable_since, since, until


class MetadataRequestTopic(WireStruct):
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    name: Annotated[str | None, nullable_since(10)] = ""


@message(3, "request", versions=(0, 12), flexible=9)
class MetadataRequest(WireStruct):
    topics: Annotated[list[MetadataRequestTopic] | None, nullable_since(1)] = []
    allow_auto_topic_creation: Annotated[bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False


class MetadataResponsePartition(WireStruct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, since(7), ignorable] = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: Annotated[list[Int32], since(5), ignorable] = []


class MetadataResponseTopic(WireStruct):
    error_code: Int16 = 0
    name: Annotated[str | None, nullable_since(12)] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    is_internal: Annotated[bool, since(1), ignorable] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[Int32, since(8)] = NO_OPERATIONS


class MetadataResponseBroker(WireStruct):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: Annotated[str | None, since(1), ignorable] = None


@message(3, "response", versions=(0, 12), flexible=9)
class MetadataResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, since(2), ignorable] = None
    controller_id: Annotated[Int32, since(1), ignorable] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[Int32, since(8), until(10)] = NO_OPERATIONS
