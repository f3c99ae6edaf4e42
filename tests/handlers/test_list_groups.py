"""ListGroups: there are none, and every way to ask for them is understood."""

import pytest

from minicontroller.cluster.image import Image
from minicontroller.protocol.messages.list_groups import ListGroupsRequest
from tests.handlers.asking import Client, node_with


@pytest.mark.parametrize("version", range(6))
async def test_no_groups(version: int) -> None:
    """Nodes without logs coordinate no groups: an empty list without an error, also with filters in
    any case.
    """
    request = ListGroupsRequest()
    if version >= 4:
        request.states_filter = ["Stable", "EMPTY", "nonsense"]
    if version >= 5:
        request.types_filter = ["Classic", "consumer", ""]
    answer = Client(node_with(Image())).ask_at_once(request, version)
    assert (answer.error_code, answer.groups, answer.throttle_time_ms) == (0, [], 0)
