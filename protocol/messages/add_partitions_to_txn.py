"""AddPartitionsToTxn (24) adds partitions to a producer's transaction. From version 4 on, brokers
ask about several transactions at once, to verify them (KIP-890).
"""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since, until


class AddPartitionsToTxnTopic(WireStruct):
    name: str = ""
    partitions: list[Int32] = []


class AddPartitionsToTxnTransaction(WireStruct):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []


@message(24, "request", versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest(WireStruct):
    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = []
    v3_and_below_transactional_id: Annotated[str, until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, until(3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3)] = []


class AddPartitionsToTxnPartitionResult(WireStruct):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0

    @property
    def error_code(self) -> int:
        """The code, by the name that it has in every other row."""
        return self.partition_error_code


class AddPartitionsToTxnTopicResult(WireStruct):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(WireStruct):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []


@message(24, "response", versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(4), ignorable] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = []
