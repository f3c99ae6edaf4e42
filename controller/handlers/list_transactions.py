"""ListTransactions (66): there are no transactions, so the list is always empty. States that do not
exist are named, as in Kafka.
"""

from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)
"""The states that a transaction has in Kafka."""


def handle(_context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    unknown = sorted({*request.state_filters} - STATES)
    return ListTransactionsResponse(unknown_state_filters=unknown)


API = ServedApi(
    key=ApiKey.LIST_TRANSACTIONS,
    handler=handle,
)
