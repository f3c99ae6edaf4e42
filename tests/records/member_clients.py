"""A coordinator of groups with a clock of its own, and the requests that clients put to it."""

from collections.abc import Mapping, Sequence
from itertools import count

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.heartbeat import HeartbeatRequest
from minicontroller.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from minicontroller.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from minicontroller.records.groups.coordinator import GroupCoordinator
from minicontroller.records.groups.group import ClassicGroup
from minicontroller.records.groups.limits import GroupLimits
from minicontroller.records.groups.member import Joining
from minicontroller.records.groups.offsets import Committer, GroupOffset, TopicPartition

GROUP = "g"
SESSION_MS, REBALANCE_MS = 10_000, 30_000
START_MS = 1_700_000_000_000
AT_ONCE = GroupLimits(initial_rebalance_delay_ms=0)

Answer = JoinGroupResponse | SyncGroupResponse


class Slot:
    """Where the answer to a request that may wait comes, once."""

    def __init__(self) -> None:
        self.answer: Answer | None = None

    def put(self, answer: Answer) -> None:
        assert self.answer is None, "a request is answered once"
        self.answer = answer

    @property
    def joined(self) -> JoinGroupResponse:
        assert isinstance(self.answer, JoinGroupResponse)
        return self.answer

    @property
    def synced(self) -> SyncGroupResponse:
        assert isinstance(self.answer, SyncGroupResponse)
        return self.answer


def subscription(*topics: str) -> bytes:
    """What a consumer says when it joins, in the oldest version of that."""
    names = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    return bytes(2) + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


class Clients:
    """The clients of one coordinator."""

    def __init__(self, limits: GroupLimits = AT_ONCE) -> None:
        numbers = count(1)
        self.coordinator = GroupCoordinator(limits, lambda: str(next(numbers)))
        self.now = START_MS

    @property
    def group(self) -> ClassicGroup:
        group = self.coordinator.get(GROUP)
        assert group is not None
        return group

    def wait(self, milliseconds: int) -> None:
        """Let time pass; what is due meanwhile is done when it is due."""
        end = self.now + milliseconds
        while (due := self.coordinator.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.coordinator.tick(self.now)
        self.now = end

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        version: int = 9,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Slot:
        offered = {"range": subscription("t")} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offered.items()],
        )
        slot = Slot()
        joining = Joining(
            request, "client", "/127.0.0.1", needs_known_id=version >= 4, can_skip_assignment=version >= 9
        )
        self.coordinator.join(joining, slot.put, self.now)
        return slot

    def sync(
        self,
        generation: int,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol: str | None = "range",
    ) -> Slot:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
        )
        slot = Slot()
        self.coordinator.sync(request, slot.put, self.now)
        return slot

    def heartbeat(self, generation: int, member_id: str, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.coordinator.heartbeat(request, self.now)

    def leave(self, member_id: str = "", instance: str | None = None) -> ErrorCode:
        return self.coordinator.leave(GROUP, member_id, instance, self.now)

    def commit(
        self,
        offset: int,
        generation: int = -1,
        member_id: str = "",
        *,
        instance: str | None = None,
        topic: str = "t",
        producer_id: int | None = None,
        expires_ms: int | None = None,
    ) -> ErrorCode:
        committer = Committer(member_id, instance, generation)
        offsets: dict[TopicPartition, GroupOffset] = {
            (topic, 0): GroupOffset(offset, committed_ms=self.now, expires_ms=expires_ms)
        }
        if producer_id is None:
            return self.coordinator.commit(GROUP, committer, offsets, self.now)
        return self.coordinator.commit_in_transaction(GROUP, committer, producer_id, offsets, self.now)

    def offset(self, topic: str = "t") -> int | None:
        group = self.coordinator.get(GROUP)
        kept = None if group is None else group.offsets.committed.get(topic, {}).get(0)
        return None if kept is None else kept.offset

    def end(self, producer_id: int, *, commits: bool) -> None:
        self.coordinator.end_transaction(producer_id, commits=commits, group_ids=lambda _group: True)

    def expire(self) -> None:
        for _ in self.coordinator.expire_offsets(self.now):
            pass

    # ------------------------------------------------------------------ whole groups

    def members(self, number: int = 1, *, instances: Sequence[str | None] = ()) -> list[str]:
        """Bring a new group with so many members to its first generation, and return their ids, the
        leader's first. Each is assigned its own id.
        """
        wanted = [*instances, *[None] * (number - len(instances))]
        first = self.join(instance=wanted[0], version=3)
        self.wait(0)
        rest = [self.join(instance=each, version=3) for each in wanted[1:]]
        slots = [first, *rest]
        if rest:
            slots[0] = self.join(first.joined.member_id, instance=wanted[0])
        ids = [slot.joined.member_id for slot in slots]
        self.assign(ids, wanted)
        return ids

    def assign(self, ids: Sequence[str], instances: Sequence[str | None]) -> None:
        generation = self.group.generation
        for member_id, instance in zip(ids, instances, strict=True):
            self.sync(generation, member_id, {each: each.encode() for each in ids}, instance=instance)
