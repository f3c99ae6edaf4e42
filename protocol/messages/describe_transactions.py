"""DescribeTransactions (65) returns the state of transactions."""

from ..schema import Int16, Int32, Int64, WireStruct, message


@message(65, "request", versions=(0, 0), flexible=0)
class DescribeTransactionsRequest(WireStruct):
    transactional_ids: list[str] = []


class TopicOfTransaction(WireStruct):
    topic: str = ""
    partitions: list[Int32] = []


class DescribedTransaction(WireStruct):
    error_code: Int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicOfTransaction] = []


@message(65, "response", versions=(0, 0), flexible=0)
class DescribeTransactionsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    transaction_states: list[DescribedTransaction] = []
