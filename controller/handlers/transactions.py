"""The parts that the APIs of transactions share: which node answers for a transactional id, and
which permissions clients need.

Rule: there are no transactions, since there are no records to write.
"""

from ...admin.permissions import Permission
from ...cluster.coordinators import COORDINATED_BY, CoordinatorType, coordinator_of
from ...protocol.acls import AclOperation, AclResourceType
from ..broker.view import BrokerView

DENIED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the id"
WRITE_TRANSACTIONAL_ID = Permission(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, DENIED)
DESCRIBE_TRANSACTIONAL_ID = Permission(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, DENIED)


def is_coordinated_here(view: BrokerView, transactional_id: str) -> bool:
    """Whether this node leads the id's partition of the transactions' topic."""
    topic = view.cache.image.topics.get(COORDINATED_BY[CoordinatorType.TRANSACTION])
    return coordinator_of(transactional_id, topic) == view.broker_id
