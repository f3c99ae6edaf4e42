"""DescribeProducers (61) returns the producers that write to partitions."""

from ..schema import Int16, Int32, Int64, WireStruct, message


class DescribeProducersTopic(WireStruct):
    name: str = ""
    partition_indexes: list[Int32] = []


@message(61, "request", versions=(0, 0), flexible=0)
class DescribeProducersRequest(WireStruct):
    topics: list[DescribeProducersTopic] = []


class ActiveProducer(WireStruct):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class ProducersOfPartition(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    active_producers: list[ActiveProducer] = []


class ProducersOfTopic(WireStruct):
    name: str = ""
    partitions: list[ProducersOfPartition] = []


@message(61, "response", versions=(0, 0), flexible=0)
class DescribeProducersResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    topics: list[ProducersOfTopic] = []
