"""LeaveGroup: groups have no members, so whoever is named is unknown."""

import pytest

from minicontroller.protocol.acls import AclOperation, AclResourceType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.leave_group import LeaveGroupRequest, LeavingMember
from tests.handlers.asking import Client, broker, image, led, node_with, topic
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

CLUSTER = image([broker(1), broker(2)], [topic("__consumer_offsets", led(1), led(2))])
HANDLERS = {ApiKey.LEAVE_GROUP: APIS[ApiKey.LEAVE_GROUP]}
MEMBERS = [LeavingMember(member_id="m"), LeavingMember(member_id="", group_instance_id="i")]


def client() -> Client:
    return Client(node_with(CLUSTER), handlers=HANDLERS)


@pytest.mark.parametrize("version", range(3))
async def test_one_member(version: int) -> None:
    """The response to one member has the error itself."""
    request = LeaveGroupRequest(group_id="b", member_id="m")
    assert client().ask_at_once(request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
@pytest.mark.parametrize("times", [1, 500])
async def test_several_members(version: int, times: int) -> None:
    """From version 3 on the response has a row for each member, in the order of the request."""
    answer = await client().ask(LeaveGroupRequest(group_id="b", members=MEMBERS * times), version)
    assert answer.error_code == 0
    rows = [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members]
    assert rows == [("m", None, ErrorCode.UNKNOWN_MEMBER_ID), ("", "i", ErrorCode.UNKNOWN_MEMBER_ID)] * times


@pytest.mark.parametrize("version", range(3, 6))
async def test_nobody(version: int) -> None:
    """Whoever names no member removes none."""
    answer = client().ask_at_once(LeaveGroupRequest(group_id="b"), version)
    assert (answer.error_code, answer.members) == (0, [])


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(
    ("group", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("a", ErrorCode.NOT_COORDINATOR)], ids=["nameless", "other"]
)
async def test_refused_as_a_whole(version: int, group: str, code: ErrorCode) -> None:
    """A group without a name, and one of another node, are refused without any row."""
    answer = client().ask_at_once(LeaveGroupRequest(group_id=group), version)
    assert (answer.error_code, answer.members) == (code, [])


@pytest.mark.parametrize(
    ("operation", "code"), [(AclOperation.READ, 0), (AclOperation.DESCRIBE, ErrorCode.GROUP_AUTHORIZATION_FAILED)]
)
async def test_who_may_remove_members(operation: AclOperation, code: int) -> None:
    """Read on the group is needed."""
    authorization = allowing((AclResourceType.GROUP, "b", operation))
    asking = Client(node_with(CLUSTER), handlers=HANDLERS, principal=ALICE, authorization=authorization)
    answer = asking.ask_at_once(LeaveGroupRequest(group_id="b", members=MEMBERS), 5)
    assert (answer.error_code, len(answer.members)) == (code, 0 if code else 2)
