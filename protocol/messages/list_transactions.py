"""ListTransactions (66) returns the transactions that a broker coordinates."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, message, since


@message(66, "request", versions=(0, 1), flexible=0)
class ListTransactionsRequest(WireStruct):
    state_filters: list[str] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Annotated[Int64, since(1)] = -1


class ListedTransaction(WireStruct):
    transactional_id: str = ""
    producer_id: Int64 = 0
    transaction_state: str = ""


@message(66, "response", versions=(0, 1), flexible=0)
class ListTransactionsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[ListedTransaction] = []
