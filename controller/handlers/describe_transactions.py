"""DescribeTransactions (65): there are no transactions, so the coordinator of an id answers
TRANSACTIONAL_ID_NOT_FOUND.
"""

from collections.abc import Iterator

from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ..broker.view import BrokerView
from .transactions import DESCRIBE_TRANSACTIONAL_ID, is_coordinated_here


def handle(
    view: BrokerView, context: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    rows = yield from one_by_one(_rows(view, context, request))
    return DescribeTransactionsResponse(transaction_states=rows)


def _rows(
    view: BrokerView, context: RequestContext, request: DescribeTransactionsRequest
) -> Iterator[DescribedTransaction]:
    for name in request.transactional_ids:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        if not context.may(DESCRIBE_TRANSACTIONAL_ID, name):
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif not name:
            code = ErrorCode.INVALID_REQUEST
        elif not is_coordinated_here(view, name):
            code = ErrorCode.NOT_COORDINATOR
        yield DescribedTransaction(transactional_id=name, error_code=code)


API = ServedApi(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TRANSACTIONAL_ID,),
    rows=Rows("transaction_states", DescribedTransaction, {"transactional_ids": called("transactional_id")}),
)
