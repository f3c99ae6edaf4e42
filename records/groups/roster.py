"""Who is in a group, and what the members agree on (Kafka: GroupMetadata).

Rule: a member is in one place only. An id that was given to a client which has not joined with it
yet is pending; all others are members, and the static ones are found by their instance ids, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.join_group import JoinGroupResponseMember
from .member import MEMBER_BYTES, Member

CONSUMER = "consumer"
"""The protocol type of consumers, who say to which topics they are subscribed."""


class Roster:
    def __init__(self) -> None:
        self.leader: str | None = None
        self.pending: dict[str, int] = {}
        """Pending ids, with the times in milliseconds when they expire."""
        self._members: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        """The ids of static members, by their instance ids."""

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    @property
    def size(self) -> int:
        """The members' memory in bytes, about."""
        pending = sum(MEMBER_BYTES + len(member_id) for member_id in self.pending)
        return sum(member.size for member in self._members.values()) + pending

    def check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check that a request is a member's, and not that of a static member's predecessor."""
        if instance_id is not None:
            current = self._static.get(instance_id, member_id)
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if instance_id not in self._static:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self._members else ErrorCode.UNKNOWN_MEMBER_ID

    def static(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self._static.get(instance_id)
        return None if member_id is None else self._members[member_id]

    # ------------------------------------------------------------------ changes

    def add(self, member: Member) -> None:
        self.pending.pop(member.member_id, None)
        self._members[member.member_id] = member
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        self.leader = self.leader or member.member_id

    def remove(self, member_id: str) -> Member | None:
        self.pending.pop(member_id, None)
        member = self._members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self._static[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member another id, in the same role."""
        was_leader = self.leader == member.member_id
        self.remove(member.member_id)
        member.member_id = member_id
        self.add(member)
        if was_leader:
            self.leader = member_id

    def elect_joined_leader(self) -> bool:
        """Let a member lead that has joined, and return whether there is one."""
        leader = self._members.get(self.leader or "")
        if leader is None or not leader.has_joined:
            leader = next((each for each in self._members.values() if each.has_joined), None)
        if leader is not None:
            self.leader = leader.member_id
        return leader is not None

    # ------------------------------------------------------------------ what they agree on

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.has_joined for member in self._members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def shared_protocols(self) -> set[str]:
        """Return the protocols that every member supports."""
        return set.intersection(*(each.protocol_names for each in self._members.values())) if self else set()

    def supports(self, protocols: Iterable[str]) -> bool:
        return not self.shared_protocols().isdisjoint(protocols) if self else any(True for _ in protocols)

    def selected_protocol(self) -> str | None:
        """Return the protocol with the most votes, of those that all members support."""
        shared = self.shared_protocols()
        votes = Counter(member.vote(shared) for member in self._members.values() if shared)
        return votes.most_common(1)[0][0] if votes else None

    def subscribed_topics(self, protocol_type: str | None, protocol: str | None) -> frozenset[str] | None:
        """Return the topics of a group of consumers, or None if nobody can tell them."""
        if protocol_type != CONSUMER:
            return None
        found: set[str] = set()
        for member in self._members.values():
            topics = None if protocol is None else topics_of(member.metadata(protocol))
            if topics is None:
                return None
            found |= topics
        return frozenset(found)

    def rows(self, protocol: str) -> list[JoinGroupResponseMember]:
        """Return what the leader needs to assign."""
        return [
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                metadata=each.metadata(protocol),
            )
            for each in self._members.values()
        ]


def topics_of(subscription: bytes) -> set[str] | None:
    """Return the topics of a consumer's subscription, with which its metadata begins in all
    versions, or None if it cannot be read.
    """
    count, at = int.from_bytes(subscription[2:6], signed=True), 6
    if len(subscription) < at or count < 0:
        return None
    topics = set()
    for _ in range(count):
        length = int.from_bytes(subscription[at : at + 2], signed=True)
        name = subscription[at + 2 : at + 2 + length]
        if length < 0 or at + 2 + length > len(subscription):
            return None
        topics.add(name.decode("utf-8", "replace"))
        at += 2 + length
    return topics
