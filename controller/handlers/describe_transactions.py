"""DescribeTransactions (65) returns the state of transactions that this node coordinates."""

from ...admin.permissions import Permission
from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ..broker.coordinator import Coordinator

DESCRIBE_TRANSACTIONAL_ID = Permission(
    AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the id"
)


def handle(
    coordinator: Coordinator, context: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    rows = (_row(coordinator, context, name) for name in request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=(yield from one_by_one(rows)))


def _row(coordinator: Coordinator, context: RequestContext, name: str) -> DescribedTransaction:
    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if not context.may(DESCRIBE_TRANSACTIONAL_ID, name):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not name:
        code = ErrorCode.INVALID_REQUEST
    elif not coordinator.coordinates_transactional_id(name):
        code = ErrorCode.NOT_COORDINATOR
    elif (transaction := coordinator.transaction(name)) is not None:
        return transaction
    return DescribedTransaction(transactional_id=name, error_code=code)


API = ServedApi(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TRANSACTIONAL_ID,),
    rows=Rows("transaction_states", DescribedTransaction, {"transactional_ids": called("transactional_id")}),
)
