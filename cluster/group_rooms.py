"""The room that the groups of the cluster may take in the store. Every node knows all of them.

Rule: a user may take no more than what is still free for users, so that whoever comes later finds
room however much others took. What is set aside for operators, no user can take.
"""

from collections.abc import Mapping

import msgspec

from ..protocol.error_codes import ErrorCode
from .errors import Refusal
from .groups import Group

MAX_GROUP_BYTES = 2 << 20
MAX_BYTES = 32 << 20
"""The most room of all groups."""
MAX_GROUPS = 10_000
OPERATORS_SHARE = 4
"""One part in so many of the room, and of the number of groups, is for operators alone."""


class GroupRoom(msgspec.Struct, frozen=True):
    """The room that the groups of one owner, or all groups, take in the store."""

    size: int = 0
    groups: int = 0

    def plus(self, group: Group, sign: int) -> "GroupRoom":
        return GroupRoom(self.size + sign * group.size, self.groups + sign)


NO_ROOM = GroupRoom()


def check_room(rooms: Mapping[str, GroupRoom], before: Group | None, after: Group, *, is_operator: bool) -> None:
    """Check that there is room for a group as it is to be, given the rooms of all owners as they
    are. Operators may take all there is. Raises INVALID_COMMIT_OFFSET_SIZE.
    """
    grown = GroupRoom(after.size - (0 if before is None else before.size), int(before is None))
    if grown.size <= 0:
        return  # as most commits, which set offsets again that are there
    owned, all_rooms = rooms.get(after.header.owner, NO_ROOM), rooms.values()
    bounds = (
        _Bound("bytes", MAX_BYTES, grown.size, owned.size, sum(room.size for room in all_rooms)),
        _Bound("groups", MAX_GROUPS, grown.groups, owned.groups, sum(room.groups for room in all_rooms)),
    )
    problems = (each.problem(after.header.owner, is_operator=is_operator) for each in bounds)
    problem = next((each for each in problems if each is not None), None)
    if after.size > MAX_GROUP_BYTES:
        problem = f"the offsets of a group may take {MAX_GROUP_BYTES} bytes; these take {after.size}"
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, f"The offsets are not kept: {problem}.")


class _Bound(msgspec.Struct, frozen=True):
    """A bound, what a change adds, and what the owner and all owners have before it."""

    what: str
    most: int
    grown: int
    owned: int
    total: int

    def problem(self, owner: str, *, is_operator: bool) -> str | None:
        """Return why an owner may not take so much more; None if it may."""
        total, for_users = self.total + self.grown, self.most - self.most // OPERATORS_SHARE
        if not self.grown:
            return None
        if total > self.most:
            return f"all groups together may take {self.most} {self.what}"
        if is_operator:
            return None
        if total > for_users:
            return f"the groups of users together may take {for_users} {self.what}"
        if owner and self.owned + self.grown > for_users - total:
            return f"the groups of {owner} take {self.owned} {self.what}, and a user may take no more than are free"
        return None
