"""The coordinator of groups: which groups there are, and what is due when.

It is a machine without input, output, clock or randomness. Its callers bring times in milliseconds
since 1970, and functions that answer the requests that wait, and call `tick` when `next_deadline`
is over. What depends on the cluster (permissions, who coordinates a group, which topics exist) they
have checked before.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.heartbeat import HeartbeatRequest
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .group import GROUP_BYTES, ClassicGroup, GroupState
from .limits import GroupLimits
from .member import NO_MEMBER_ID, Joining, JoinReply, SyncReply, refused_join
from .offsets import Committer, GroupOffset, TopicPartition


class GroupCoordinator:
    def __init__(self, limits: GroupLimits, new_id: Callable[[], str]) -> None:
        """`new_id` makes the part of a member's id that no other member has."""
        self.size = 0
        """The memory of all groups in bytes, about."""
        self._limits = limits
        self._new_id = new_id
        self._groups: dict[str, ClassicGroup] = {}
        self._sizes: dict[str, int] = {}
        """The bytes of each group, which `size` adds up."""
        self._due: list[tuple[int, str]] = []
        """A heap of the times at which groups are looked at. Only the earliest one of a group
        counts, which is in `_due_at`.
        """
        self._due_at: dict[str, int] = {}
        self._open: dict[int, set[str]] = {}
        """The groups with offsets of open transactions, by the ids of their producers."""

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    # ------------------------------------------------------------------ members

    def join(self, joining: Joining, reply: JoinReply, now: int) -> None:
        """Answer JoinGroup, now or when the other members have joined."""
        request = joining.request
        group = self._groups.get(request.group_id)
        limits = self._limits
        if not limits.min_session_timeout_ms <= request.session_timeout_ms <= limits.max_session_timeout_ms:
            reply(refused_join(request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT))
        elif group is None and request.member_id != NO_MEMBER_ID:
            reply(refused_join(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        elif self._is_full(_growth(joining, group)):
            reply(refused_join(NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
        else:
            group = group or self._added(request.group_id, now)
            group.join(joining, self._new_id(), reply, now)
            self._changed(group)

    def sync(self, request: SyncGroupRequest, reply: SyncReply, now: int) -> None:
        """Answer SyncGroup, now or when the leader has sent the assignments."""
        group = self._groups.get(request.group_id)
        if group is None:
            reply(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        elif self._is_full(sum(len(each.assignment) for each in request.assignments)):
            reply(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            group.sync(request, reply, now)
            self._changed(group)

    def heartbeat(self, request: HeartbeatRequest, now: int) -> ErrorCode:
        group = self._groups.get(request.group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else group.heartbeat(request, now)

    def leave(self, group_id: str, member_id: str, instance_id: str | None, now: int) -> ErrorCode:
        """Remove a member of a group. A static one may be named by its instance id alone."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        code = group.leave(member_id, instance_id, now)
        self._changed(group)
        return code

    # ------------------------------------------------------------------ offsets

    def commit(
        self, group_id: str, committer: Committer, offsets: Mapping[TopicPartition, GroupOffset], now: int
    ) -> ErrorCode:
        """Commit offsets of a group, all or none of them: one code answers for each partition."""
        group = self._groups.get(group_id)
        if group is None and committer.generation >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        return self._commit(group_id, committer, offsets, None, now)

    def commit_in_transaction(
        self,
        group_id: str,
        committer: Committer,
        producer_id: int,
        offsets: Mapping[TopicPartition, GroupOffset],
        now: int,
    ) -> ErrorCode:
        """Keep offsets until the transaction of a producer ends. The caller has asked the
        coordinator of transactions whether the group's offsets are part of it.
        """
        return self._commit(group_id, committer, offsets, producer_id, now)

    def _commit(
        self,
        group_id: str,
        committer: Committer,
        offsets: Mapping[TopicPartition, GroupOffset],
        producer_id: int | None,
        now: int,
    ) -> ErrorCode:
        if self._is_full(sum(len(each.metadata) for each in offsets.values())):
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        group = self._groups.get(group_id) or self._added(group_id, now)
        code = group.check_commit(committer, is_transactional=producer_id is not None, now=now)
        before = group.offsets.size
        if code == ErrorCode.NONE and producer_id is None:
            group.offsets.commit(offsets)
        elif code == ErrorCode.NONE and producer_id is not None and offsets:
            group.offsets.commit_in_transaction(producer_id, offsets)
            self._open.setdefault(producer_id, set()).add(group_id)
        self._resized(group, group.offsets.size - before)
        return code

    def end_transaction(self, producer_id: int, *, commits: bool, group_ids: Callable[[str], bool]) -> None:
        """Commit or drop the offsets of a producer's transaction, in the groups that a partition
        with its marker has.
        """
        ended = {group_id for group_id in self._open.get(producer_id, ()) if group_ids(group_id)}
        for group_id in ended:
            group = self._groups[group_id]
            before = group.offsets.size
            group.offsets.end_transaction(producer_id, commits=commits)
            self._close(group_id, [producer_id])
            self._resized(group, group.offsets.size - before)

    # ------------------------------------------------------------------ administrators

    def delete(self, group_id: str) -> ErrorCode:
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        self._remove(group)
        return ErrorCode.NONE

    def delete_offsets(
        self, group_id: str, places: Iterable[TopicPartition]
    ) -> ErrorCode | dict[TopicPartition, ErrorCode]:
        """Remove offsets that no member uses, and return a code for each, or for the group."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not GroupState.EMPTY and not group.is_of_consumers:
            return ErrorCode.NON_EMPTY_GROUP
        used, unused = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE
        codes = {place: used if group.is_in_use(place[0]) else unused for place in places}
        doomed = [place for place, code in codes.items() if code == unused]
        if doomed:
            self._trim(group, lambda group: group.offsets.delete(doomed))
        return codes

    # ------------------------------------------------------------------ time and the cluster

    def next_deadline(self) -> int | None:
        """Return when `tick` is due. Every other call may change it."""
        while self._due and self._due_at.get(self._due[0][1]) != self._due[0][0]:
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def tick(self, now: int) -> None:
        """Do what is due: sessions that are over, rebalances that end."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, group_id = heappop(self._due)
            del self._due_at[group_id]
            group = self._groups[group_id]
            group.tick(now)
            self._changed(group)

    def expire_offsets(self, now: int) -> Iterator[None]:
        """Forget offsets that were kept for long, and groups of nothing, each
        `offsets.retention.check.interval.ms`. Yields after each group, where other tasks may run.
        """
        for group in self:
            if self._groups.get(group.group_id) is group:
                self._trim(group, lambda group: group.expire_offsets(now))
            yield

    def forget_topics(self, names: Collection[str]) -> None:
        """Forget the offsets in topics that are deleted, and groups of nothing."""
        for group in self:
            self._trim(group, lambda group: group.offsets.delete_topics(names))

    def move(self, group_ids: Callable[[str], bool], now: int) -> None:
        """Answer the requests that wait with NOT_COORDINATOR, since the coordinator of these groups
        moves to another node. Members, offsets and timers stay.
        """
        for group in self:
            if group_ids(group.group_id):
                group.move(now)
                self._changed(group)

    # ------------------------------------------------------------------ groups

    def _added(self, group_id: str, now: int) -> ClassicGroup:
        group = self._groups[group_id] = ClassicGroup(group_id, self._limits, now)
        self._sizes[group_id] = 0
        self._resized(group, group.size)
        return group

    def _is_full(self, more: int) -> bool:
        """Return whether so many bytes more would be too much."""
        return self.size + more > self._limits.max_bytes

    def _changed(self, group: ClassicGroup) -> None:
        """Note what a change of members means for the memory and the deadlines of all groups."""
        group_id = group.group_id
        self._resized(group, group.size - self._sizes.get(group_id, 0))
        deadline, due = group.next_deadline(), self._due_at.get(group_id)
        if deadline is not None and (due is None or deadline < due):
            self._due_at[group_id] = deadline
            heappush(self._due, (deadline, group_id))

    def _resized(self, group: ClassicGroup, more: int) -> None:
        self.size += more
        self._sizes[group.group_id] += more

    def _trim(self, group: ClassicGroup, edit: Callable[[ClassicGroup], None]) -> None:
        """Remove offsets of a group, and the group if nothing is left of it."""
        producers, size = set(group.offsets.producers), group.offsets.size
        edit(group)
        self._close(group.group_id, producers.difference(group.offsets.producers))
        self._resized(group, group.offsets.size - size)
        if group.state is GroupState.EMPTY and group.offsets.is_empty:
            self._remove(group)

    def _close(self, group_id: str, producer_ids: Iterable[int]) -> None:
        """Note that a group has no offsets of these producers' transactions any more."""
        for producer_id in producer_ids:
            group_ids = self._open[producer_id]
            group_ids.remove(group_id)
            if not group_ids:
                del self._open[producer_id]

    def _remove(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        self._close(group_id, group.offsets.producers)
        self.size -= self._sizes.pop(group_id)
        self._due_at.pop(group_id, None)
        del self._groups[group_id]


def _growth(joining: Joining, group: ClassicGroup | None) -> int:
    """Return how many bytes more a group takes when a member joins, maybe again."""
    member_id = joining.request.member_id
    if group is None:
        return GROUP_BYTES + joining.size
    return joining.size - (group.members[member_id].size if member_id in group.members else 0)
