"""A member of a group (Kafka: MemberMetadata)."""

from collections.abc import Callable, Container, Sequence

import msgspec

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroupMember
from ...protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse

NO_MEMBER_ID = ""
NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""A new member whose join waits longer is forgotten, since its client is probably gone: it may have
no id yet with which it could come back.
"""
MEMBER_BYTES = 1024
"""What a member takes in memory besides its texts and bytes, about."""
PROTOCOL_BYTES = 128
"""What a protocol of a member takes besides its name and metadata, about."""

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]


class Joining(msgspec.Struct, frozen=True):
    """A request to join, with what its connection and its version add."""

    request: JoinGroupRequest
    client_id: str
    client_host: str
    needs_known_id: bool
    """Whether a new member gets an id and joins again with it (version 4 and later, KIP-394)."""
    can_skip_assignment: bool
    """Whether a static leader that returns learns that the assignment stays (version 9, KIP-814).
    """

    @property
    def rebalance_timeout_ms(self) -> int:
        timeout = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if timeout < 0 else timeout

    @property
    def size(self) -> int:
        """What the member takes in memory in bytes, about."""
        texts = 2 * len(self.client_id) + len(self.request.group_instance_id or "")
        return MEMBER_BYTES + self.protocol_bytes + texts

    @property
    def protocol_bytes(self) -> int:
        return sum(PROTOCOL_BYTES + len(each.name) + len(each.metadata) for each in self.request.protocols)


class Member(msgspec.Struct):
    """Times are in milliseconds, on the clock of the group's callers."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Sequence[JoinGroupRequestProtocol]
    protocol_bytes: int
    assignment: bytes = b""
    is_new: bool = True
    """Whether no generation has had the member."""
    joining: JoinReply | None = None
    """Answers the member's JoinGroup, which waits for the other members."""
    syncing: SyncReply | None = None
    """Answers the member's SyncGroup, which waits for the leader's assignment."""
    expires: int = 0
    """When the member is removed, unless it is heard of before."""

    @classmethod
    def of(cls, joining: Joining, member_id: str, reply: JoinReply, now: int) -> "Member":
        member = cls(
            member_id,
            joining.request.group_instance_id,
            joining.client_id,
            joining.client_host,
            joining.request.session_timeout_ms,
            joining.rebalance_timeout_ms,
            joining.request.protocols,
            joining.protocol_bytes,
            joining=reply,
        )
        member.expires = now + NEW_MEMBER_TIMEOUT_MS
        return member

    def rejoin(self, joining: Joining, reply: JoinReply) -> None:
        self.answer_join(refused_join(self.member_id, ErrorCode.REBALANCE_IN_PROGRESS))
        self.protocols, self.protocol_bytes = joining.request.protocols, joining.protocol_bytes
        self.session_timeout_ms = joining.request.session_timeout_ms
        self.rebalance_timeout_ms = joining.rebalance_timeout_ms
        self.joining = reply

    @property
    def size(self) -> int:
        """The member's memory in bytes, about."""
        texts = len(self.member_id) + len(self.client_id) + len(self.group_instance_id or "")
        return MEMBER_BYTES + self.protocol_bytes + texts + len(self.assignment)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def has_joined(self) -> bool:
        return self.joining is not None

    @property
    def protocol_names(self) -> set[str]:
        return {each.name for each in self.protocols}

    def metadata(self, protocol: str) -> bytes:
        return next(each.metadata for each in self.protocols if each.name == protocol)

    def vote(self, candidates: Container[str]) -> str:
        """Return the first of its protocols that every member supports."""
        return next(each.name for each in self.protocols if each.name in candidates)

    # ------------------------------------------------------------------ sessions

    @property
    def may_expire(self) -> bool:
        """Whether heartbeats are awaited. While a request of the member waits they are not, but for
        that of a new member.
        """
        return self.is_new or (self.joining is None and self.syncing is None)

    def is_heard(self, now: int) -> None:
        """Let the member live for another session."""
        self.expires = now + self.session_timeout_ms

    # ------------------------------------------------------------------ answers

    def answer_join(self, response: JoinGroupResponse) -> None:
        reply, self.joining = self.joining, None
        if reply is not None:
            reply(response)

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Answer the SyncGroup that waits, and return whether one did."""
        reply, self.syncing = self.syncing, None
        if reply is not None:
            reply(response)
        return reply is not None

    def refuse(self, code: ErrorCode) -> None:
        """Answer the requests that wait with an error."""
        self.answer_join(refused_join(self.member_id, code))
        self.answer_sync(SyncGroupResponse(error_code=code))

    def described(self, protocol: str | None) -> DescribedGroupMember:
        """Return the row of DescribeGroups, with an assignment where the protocol is agreed on."""
        row = DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
        )
        if protocol is None:
            return row
        return msgspec.structs.replace(row, member_metadata=self.metadata(protocol), member_assignment=self.assignment)


def refused_join(member_id: str, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=member_id, protocol_name=None, error_code=code)
