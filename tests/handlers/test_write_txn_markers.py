"""WriteTxnMarkers: there are no transactions, so a marker ends none."""

import pytest

from minicontroller.admin.error_answers import error_answer, error_codes
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.write_txn_markers import (
    MarkerTopic,
    TransactionMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.handlers.asking import Client, broker, image, led, node_with, topic
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

SPEC = APIS[ApiKey.WRITE_TXN_MARKERS]
CLUSTER = image([broker(1), broker(2)], [topic("t", led(1, 2), led(2, 1), led(2))])
NOT_LEADER, UNKNOWN = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def marker(producer_id: int, *indexes: int, name: str = "t") -> TransactionMarker:
    return TransactionMarker(producer_id=producer_id, topics=[MarkerTopic(name=name, partition_indexes=list(indexes))])


def rows_of(answer: WriteTxnMarkersResponse) -> dict[int, dict[tuple[str, int], int]]:
    """Return the codes by producer and partition."""
    return {
        each.producer_id: {
            (topic.name, row.partition_index): row.error_code for topic in each.topics for row in topic.partitions
        }
        for each in answer.markers
    }


@pytest.mark.parametrize("version", range(2))
async def test_a_marker_at_the_leader_succeeds(version: int) -> None:
    """A leader takes each marker, another replica does not, and other partitions are unknown."""
    request = WriteTxnMarkersRequest(markers=[marker(5, 0, 1, 2, 3, -1), marker(6, 0, name="missing")])
    answer = await Client(node_with(CLUSTER), handlers={SPEC.key: SPEC}).ask(request, version)
    codes = {("t", 0): 0, ("t", 1): NOT_LEADER, ("t", 2): UNKNOWN, ("t", 3): UNKNOWN, ("t", -1): UNKNOWN}
    assert rows_of(answer) == {5: codes, 6: {("missing", 0): UNKNOWN}}


async def test_markers_of_one_producer_are_one_row() -> None:
    """A producer that is named several times has one row, and a partition too."""
    request = WriteTxnMarkersRequest(markers=[marker(5, 0, 0), marker(5, 1), marker(5)])
    answer = await Client(node_with(CLUSTER), handlers={SPEC.key: SPEC}).ask(request, 1)
    assert rows_of(answer) == {5: {("t", 0): 0, ("t", 1): NOT_LEADER}}


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (AclOperation.ALTER, ErrorCode.NONE),
        (AclOperation.CLUSTER_ACTION, ErrorCode.NONE),
        (AclOperation.DESCRIBE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
async def test_who_may_write_markers(operation: AclOperation, code: int) -> None:
    """Alter or ClusterAction on the cluster is needed, or each partition is refused."""
    authorization = allowing((AclResourceType.CLUSTER, CLUSTER_NAME, operation))
    client = Client(node_with(CLUSTER), handlers={SPEC.key: SPEC}, principal=ALICE, authorization=authorization)
    answer = await client.ask(WriteTxnMarkersRequest(markers=[marker(5, 0)]), 1)
    assert rows_of(answer) == {5: {("t", 0): code}}


def test_an_error_of_the_whole_request() -> None:
    """A request that is refused as a whole has its error at each partition."""
    request = WriteTxnMarkersRequest(markers=[marker(5, 0, 1), marker(6, 2)])
    answer = error_answer(SPEC, request, 1, code=ErrorCode.INVALID_REQUEST)
    assert rows_of(answer) == {5: {("t", 0): 42, ("t", 1): 42}, 6: {("t", 2): 42}}
    assert list(error_codes(SPEC, answer)) == [42] * 3
