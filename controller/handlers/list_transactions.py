"""ListTransactions (66) lists the transactions that this node coordinates, and names the states
asked for that do not exist, as Kafka does.
"""

from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ..broker.coordinator import Coordinator

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


def handle(
    coordinator: Coordinator, _context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        unknown_state_filters=sorted({*request.state_filters} - STATES),
        transaction_states=list(coordinator.transactions(request)),
    )


API = ServedApi(
    key=ApiKey.LIST_TRANSACTIONS,
    handler=handle,
)
