"""DescribeGroups: groups that do not exist, where they would be coordinated and elsewhere."""

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.handlers.asking import Client, broker, image, led, node_with, topic

CLUSTER = image([broker(1), broker(2)], [topic("__consumer_offsets", led(1), led(2))])


@pytest.mark.parametrize("version", range(6))
async def test_a_missing_group_is_dead(version: int) -> None:
    """A missing group's coordinator calls it Dead, which is no error; rows stand in the order of
    the request, doubles too.
    """
    request = DescribeGroupsRequest(groups=["b", "", "b"])  # 98 and 0 are even: partition 0
    answer = Client(node_with(CLUSTER)).ask_at_once(request, version)
    assert [(each.group_id, each.error_code, each.group_state) for each in answer.groups] == [
        ("b", 0, "Dead"),
        ("", 0, "Dead"),
        ("b", 0, "Dead"),
    ]
    assert all((each.protocol_type, each.protocol_data, each.members) == ("", "", []) for each in answer.groups)
    assert all(each.authorized_operations == -(2**31) for each in answer.groups)


@pytest.mark.parametrize("version", range(6))
async def test_another_node_s_group(version: int) -> None:
    """A node that is not the group's coordinator, or without coordinators, answers
    NOT_COORDINATOR.
    """
    elsewhere = Client(node_with(CLUSTER)).ask_at_once(DescribeGroupsRequest(groups=["a"]), version)
    nowhere = Client(node_with(image([broker(1)]))).ask_at_once(DescribeGroupsRequest(groups=["b"]), version)
    for answer in (elsewhere, nowhere):
        assert [(each.error_code, each.group_state) for each in answer.groups] == [(ErrorCode.NOT_COORDINATOR, "")]


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_operations(version: int) -> None:
    """If asked for, the answer has all three operations on a group."""
    request = DescribeGroupsRequest(groups=["b"], include_authorized_operations=True)
    (row,) = Client(node_with(CLUSTER)).ask_at_once(request, version).groups
    assert [bit for bit in range(31) if row.authorized_operations >> bit & 1] == [3, 6, 8]
