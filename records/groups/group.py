"""One group of the classic protocol: its states and its timers (Kafka: GroupCoordinator).

    Empty --join--> PreparingRebalance --all joined--> CompletingRebalance --leader's sync--> Stable
                            ^                                  |                                |
                            +------- a member comes, goes, or says something else --------------+

Rule: a request that waits is answered once, by the function that came with it. That function keeps
the response and does not call the group.
"""

from enum import Enum

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_groups import DescribedGroup
from ...protocol.messages.heartbeat import HeartbeatRequest
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .limits import GroupLimits
from .member import NO_MEMBER_ID, Joining, JoinReply, Member, SyncReply, refused_join
from .offsets import Committer, OffsetsOfGroup
from .roster import CONSUMER, Roster

GROUP_BYTES = 2048
"""About how many bytes a group takes in memory besides its members and offsets."""


SHORTEST_WAIT_MS = 1000
"""How long static members are awaited again, at least."""


class GroupState(Enum):
    """The states of a group, by the names that clients see. One that does not exist is Dead."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup:
    def __init__(self, group_id: str, limits: GroupLimits, now: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.subscribed: frozenset[str] | None = None
        """The topics to which the consumers of this generation are subscribed, if that is known."""
        self.members = Roster()
        self.offsets = OffsetsOfGroup()
        self._limits = limits
        self._since = now
        """When the group came into its state."""
        self._unsynced: set[str] = set()
        """The members of this generation that have not asked for their assignment."""
        self._join_deadline: int | None = None
        self._sync_deadline: int | None = None
        self._initial_left: int | None = None
        """While the first members of an empty group are awaited: how long that can be extended."""
        self._has_new_member = False
        """Whether a member came since the initial delay began or was extended."""

    @property
    def size(self) -> int:
        """The group's memory in bytes, about."""
        return GROUP_BYTES + len(self.group_id) + self.members.size + self.offsets.size

    def described(self) -> DescribedGroup:
        is_stable = self.state is GroupState.STABLE
        protocol = self.protocol if is_stable else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_data=protocol or "",
            members=[each.described(protocol) for each in self.members],
        )

    # ------------------------------------------------------------------ joining

    def join(self, joining: Joining, unique: str, reply: JoinReply, now: int) -> None:
        """Make a client a member, or let one join again. `unique` is what the id of a new member
        has that no other has. `reply` is called now or when the other members have joined.
        """
        request = joining.request
        member_id = request.member_id
        if not self._has_room(member_id):
            self._remove(member_id)
            reply(refused_join(NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not self._supports(joining):
            reply(refused_join(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif member_id == NO_MEMBER_ID:
            name = joining.client_id if request.group_instance_id is None else request.group_instance_id
            self._join_new(joining, f"{name}-{unique}", reply, now)
        elif member_id in self.members.pending:
            self._add(joining, member_id, reply, now)
        elif (code := self.members.check(member_id, request.group_instance_id)) != ErrorCode.NONE:
            reply(refused_join(member_id, code))
        else:
            self._join_again(joining, self.members[member_id], reply, now)
        self._end_rebalance_if_complete(now)

    def _has_room(self, member_id: str) -> bool:
        if self.state is GroupState.EMPTY:
            return True
        if self.state is not GroupState.PREPARING:
            return member_id in self.members or len(self.members) < self._limits.max_size
        if member_id in self.members and self.members[member_id].has_joined:
            return True
        return sum(each.has_joined for each in self.members) < self._limits.max_size

    def _supports(self, joining: Joining) -> bool:
        """Return whether a member with these protocols can be in the group with the others."""
        request = joining.request
        if self.state is GroupState.EMPTY:
            return bool(request.protocol_type and request.protocols)
        return request.protocol_type == self.protocol_type and self.members.supports(
            each.name for each in request.protocols
        )

    def _join_new(self, joining: Joining, member_id: str, reply: JoinReply, now: int) -> None:
        instance_id = joining.request.group_instance_id
        predecessor = self.members.static(instance_id)
        if predecessor is not None:
            self._replace(predecessor, joining, member_id, reply, now)
        elif instance_id is None and joining.needs_known_id:
            self.members.pending[member_id] = now + joining.request.session_timeout_ms
            reply(refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(joining, member_id, reply, now)

    def _add(self, joining: Joining, member_id: str, reply: JoinReply, now: int) -> None:
        if not self.members:
            self.protocol_type = joining.request.protocol_type
        self.members.add(Member.of(joining, member_id, reply, now))
        self._has_new_member |= self.state is GroupState.PREPARING and self.generation == 0
        self._rebalance(now)

    def _join_again(self, joining: Joining, member: Member, reply: JoinReply, now: int) -> None:
        says_same = member.protocols == joining.request.protocols
        lost_response = self.state is GroupState.COMPLETING
        follows = self.state is GroupState.STABLE and member.member_id != self.members.leader
        if says_same and (lost_response or follows):
            reply(self._joined(member))
        else:
            member.rejoin(joining, reply)
            self._rebalance(now)

    def _replace(self, member: Member, joining: Joining, member_id: str, reply: JoinReply, now: int) -> None:
        """Give a static member that returns without its id a new one, in a stable group without a
        rebalance, unless that would change the protocol (KIP-345). Whether it may skip the
        assignment or not, a leader must not assign now, so older clients are given the former id as
        the leader's.
        """
        leader, former_id = self.members.leader, member.member_id
        member.refuse(ErrorCode.FENCED_INSTANCE_ID)
        self.members.rename(member, member_id)
        if former_id in self._unsynced:
            self._unsynced.remove(former_id)
            self._unsynced.add(member_id)
        member.rejoin(joining, reply)
        member.is_heard(now)
        if self.state is not GroupState.STABLE or self.members.selected_protocol() != self.protocol:
            self._rebalance(now)
            return
        answer = self._joined(member)
        if joining.can_skip_assignment:
            answer.skip_assignment = member.member_id == self.members.leader
        else:
            answer.leader, answer.members = leader or NO_MEMBER_ID, []
        member.answer_join(answer)

    # ------------------------------------------------------------------ rebalances

    def _enter(self, state: GroupState, now: int) -> None:
        self.state, self._since = state, now

    def _rebalance(self, now: int) -> None:
        """Begin a rebalance, unless one has begun."""
        if self.state is GroupState.PREPARING:
            return
        self._fail_syncs(ErrorCode.REBALANCE_IN_PROGRESS, now)
        self._unsynced.clear()
        self._sync_deadline = None
        longest = self.members.rebalance_timeout_ms
        self._initial_left, self._has_new_member = None, False
        self._join_deadline = now + longest
        if self.state is GroupState.EMPTY:
            delay = self._limits.initial_rebalance_delay_ms
            self._initial_left = max(longest - delay, 0)
            self._join_deadline = now + delay
        self._enter(GroupState.PREPARING, now)

    def _fail_syncs(self, code: ErrorCode, now: int) -> None:
        """Take back the assignments that are awaited."""
        if self.state is not GroupState.COMPLETING:
            return
        for member in self.members:
            member.assignment = b""
            if member.answer_sync(SyncGroupResponse(error_code=code)):
                member.is_heard(now)

    def _end_rebalance_if_complete(self, now: int) -> None:
        if self.state is GroupState.PREPARING and self._initial_left is None and self.members.all_joined:
            self._end_rebalance(now)

    def _end_rebalance(self, now: int) -> None:
        """Begin a generation of the members that have joined, and of static ones, which stay."""
        for member in self.members:
            if not member.has_joined and not member.is_static:
                self._remove(member.member_id)
        if self.members and not self.members.elect_joined_leader():
            self._join_deadline = now + max(self.members.rebalance_timeout_ms, SHORTEST_WAIT_MS)
            return  # static members are left, until their sessions are over
        self._initial_left = self._join_deadline = None
        self.generation += 1
        self.protocol = self.members.selected_protocol()
        self.subscribed = self.members.subscribed_topics(self.protocol_type, self.protocol)
        self._enter(GroupState.COMPLETING if self.members else GroupState.EMPTY, now)
        for member in self.members:
            member.answer_join(self._joined(member))
            member.is_heard(now)
            member.is_new = False
            self._unsynced.add(member.member_id)
        if self.members:
            self._sync_deadline = now + self.members.rebalance_timeout_ms

    def _joined(self, member: Member) -> JoinGroupResponse:
        """Return the response that makes a client a member of this generation. The leader gets the
        members with their metadata.
        """
        leads = member.member_id == self.members.leader
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.members.leader or NO_MEMBER_ID,
            member_id=member.member_id,
            members=self.members.rows(self.protocol) if leads and self.protocol is not None else [],
        )

    # ------------------------------------------------------------------ syncing and heartbeats

    def sync(self, request: SyncGroupRequest, reply: SyncReply, now: int) -> None:
        """Bring a member its assignment. `reply` is called now or when the leader has sent the
        assignments.
        """
        code = self._check_sync(request)
        if code != ErrorCode.NONE:
            reply(SyncGroupResponse(error_code=code))
            return
        member = self.members[request.member_id]
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = reply
        self._unsynced.discard(member.member_id)
        if not self._unsynced:
            self._sync_deadline = None
        if self.state is GroupState.STABLE:
            self._bring_assignment(member, now)
        elif member.member_id == self.members.leader:
            given = {each.member_id: each.assignment for each in request.assignments}
            self._enter(GroupState.STABLE, now)
            for each in self.members:
                each.assignment = given.get(each.member_id, b"")
                self._bring_assignment(each, now)

    def _check_sync(self, request: SyncGroupRequest) -> ErrorCode:
        code = self.check(Committer(request.member_id, request.group_instance_id, request.generation_id))
        if code != ErrorCode.NONE:
            return code
        if request.protocol_type not in {None, self.protocol_type} or request.protocol_name not in {
            None,
            self.protocol,
        }:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is GroupState.PREPARING else ErrorCode.NONE

    def _bring_assignment(self, member: Member, now: int) -> None:
        answer = SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )
        if member.answer_sync(answer):
            member.is_heard(now)

    def heartbeat(self, request: HeartbeatRequest, now: int) -> ErrorCode:
        code = self.check(Committer(request.member_id, request.group_instance_id, request.generation_id))
        if code != ErrorCode.NONE:
            return code
        self.members[request.member_id].is_heard(now)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is GroupState.PREPARING else ErrorCode.NONE

    def check(self, committer: Committer) -> ErrorCode:
        """Check that a request is that of a member, in this generation."""
        code = self.members.check(committer.member_id, committer.instance_id)
        if code == ErrorCode.NONE and committer.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    # ------------------------------------------------------------------ leaving

    def leave(self, member_id: str, instance_id: str | None, now: int) -> ErrorCode:
        """Remove a member. A static one may be named by its instance id alone."""
        if member_id == NO_MEMBER_ID:
            static = self.members.static(instance_id)
            code = ErrorCode.UNKNOWN_MEMBER_ID if static is None else ErrorCode.NONE
            member_id = NO_MEMBER_ID if static is None else static.member_id
        elif member_id in self.members.pending:
            code = ErrorCode.NONE
        else:
            code = self.members.check(member_id, instance_id)
        if code == ErrorCode.NONE:
            self._go_on_without([member_id], now)
        return code

    def _remove(self, member_id: str) -> bool:
        member = self.members.remove(member_id)
        self._unsynced.discard(member_id)
        if member is not None:
            member.member_id = NO_MEMBER_ID
            member.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        return member is not None

    def _go_on_without(self, gone: list[str], now: int) -> None:
        """Remove members and pending ids, and begin a rebalance or end the one that waits."""
        had_members = [self._remove(member_id) for member_id in gone]
        if any(had_members):
            self._rebalance(now)
        self._end_rebalance_if_complete(now)

    # ------------------------------------------------------------------ timers

    def next_deadline(self) -> int | None:
        """Return when `tick` is due if nothing happens before."""
        times = [member.expires for member in self.members if member.may_expire]
        times += self.members.pending.values()
        times += [time for time in (self._join_deadline, self._sync_deadline) if time is not None]
        return min(times, default=None)

    def tick(self, now: int) -> None:
        """Do what is due: remove members whose sessions are over, and end rebalances."""
        gone = [each.member_id for each in self.members if each.may_expire and each.expires <= now]
        gone += [member_id for member_id, expires in self.members.pending.items() if expires <= now]
        if self._sync_deadline is not None and self._sync_deadline <= now:
            gone += self._unsynced
        if gone:
            self._go_on_without(gone, now)
        if self._join_deadline is not None and self._join_deadline <= now:
            self._join_is_due(now)

    def _join_is_due(self, now: int) -> None:
        left = self._initial_left
        if not left or not self._has_new_member:
            self._end_rebalance(now)
            return
        delay = min(self._limits.initial_rebalance_delay_ms, left)  # more members may come
        self._initial_left, self._has_new_member = left - delay, False
        self._join_deadline = now + delay

    def move(self, now: int) -> None:
        """Go on at another coordinator: clients find it and ask again, so their requests are
        answered and their sessions begin anew.
        """
        for member in self.members:
            member.refuse(ErrorCode.NOT_COORDINATOR)
            member.is_heard(now)

    # ------------------------------------------------------------------ offsets

    def check_commit(self, committer: Committer, *, is_transactional: bool, now: int) -> ErrorCode:
        """Check that offsets may be committed, by a member or, to an empty group, by anybody. In a
        transaction the producer may be one that does not name a member.
        """
        if committer.generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if not committer.names_member:
            return ErrorCode.NONE if is_transactional else ErrorCode.UNKNOWN_MEMBER_ID
        code = self.check(committer)
        if code != ErrorCode.NONE or is_transactional:
            return code
        self.members[committer.member_id].is_heard(now)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is GroupState.COMPLETING else ErrorCode.NONE

    def is_in_use(self, topic: str) -> bool:
        """Return whether members may read a topic, so that its offsets must stay."""
        return bool(self.members) and (self.subscribed is None or topic in self.subscribed)

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER

    def expire_offsets(self, now: int) -> None:
        """Remove the offsets that were kept for `offsets.retention.minutes`. Those of a group that
        had members are kept so long after the last one, those of others after their commits.
        """
        if self.protocol_type is not None and self.state is GroupState.EMPTY:
            self.offsets.expire(now, self._limits.offsets_retention_ms, since=self._since)
        elif self.protocol_type is None:
            self.offsets.expire(now, self._limits.offsets_retention_ms)
        elif self.is_of_consumers and self.state is GroupState.STABLE and self.subscribed is not None:
            self.offsets.expire(now, self._limits.offsets_retention_ms, keeping=self.subscribed)
