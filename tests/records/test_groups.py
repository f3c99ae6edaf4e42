"""Members of groups: the classic protocol as clients meet it. The codes are those that Kafka 3.9.2
gives to the same requests.
"""

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.groups.group import GroupState
from minicontroller.records.groups.limits import GroupLimits
from minicontroller.records.groups.member import NEW_MEMBER_TIMEOUT_MS
from minicontroller.records.groups.roster import topics_of
from tests.records.member_clients import AT_ONCE, GROUP, REBALANCE_MS, SESSION_MS, Clients, subscription


def test_a_new_member_joins_again_with_the_id_that_it_gets() -> None:
    """From version 4 on a new member gets an id first, which keeps no place in the generation."""
    clients = Clients()
    first = clients.join().joined
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert clients.group.state is GroupState.EMPTY
    slot = clients.join(first.member_id)
    clients.wait(0)
    joined = slot.joined
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, first.member_id)
    assert [each.member_id for each in joined.members] == [first.member_id]


def test_a_pending_id_lives_for_one_session() -> None:
    """Whoever does not come back with its id in time is unknown, and nobody waits for it longer."""
    clients = Clients()
    (leader,) = clients.members()
    pending = clients.join(session_ms=6000).joined.member_id
    slot = clients.join(leader, protocols={"range": b"else"})
    assert slot.answer is None
    clients.wait(6000)
    assert slot.joined.error_code == ErrorCode.NONE
    assert clients.join(pending).joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_waits_for_a_pending_id_that_leaves() -> None:
    """A rebalance ends when the last pending member has left."""
    clients = Clients()
    (leader,) = clients.members()
    pending = clients.join().joined.member_id
    slot = clients.join(leader, protocols={"range": b"else"})
    assert clients.leave(pending) == ErrorCode.NONE
    assert slot.joined.error_code == ErrorCode.NONE


def test_the_first_members_are_awaited() -> None:
    """`group.initial.rebalance.delay.ms` begins again with each member that comes, until the
    rebalance timeout is over.
    """
    clients = Clients(GroupLimits(initial_rebalance_delay_ms=3000))
    slots = [clients.join(version=3, rebalance_ms=7000)]
    for _ in range(2):
        clients.wait(2000)
        slots.append(clients.join(version=3, rebalance_ms=7000))
    clients.wait(2999)
    assert [slot.answer for slot in slots] == [None] * 3
    clients.wait(1)
    assert {slot.joined.generation_id for slot in slots} == {1}


def test_limits_of_sessions() -> None:
    """Sessions outside of the coordinator's limits are refused."""
    clients = Clients()
    for session_ms in (5999, 1_800_001):
        assert clients.join(session_ms=session_ms).joined.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert clients.coordinator.get(GROUP) is None


def test_a_group_that_is_full() -> None:
    """`group.max.size` refuses the members beyond it, also those that join together."""
    clients = Clients(GroupLimits(initial_rebalance_delay_ms=3000, max_size=2))
    slots = [clients.join(version=3) for _ in range(3)]
    assert slots[2].joined.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    clients.wait(10_000)
    assert [slot.joined.error_code for slot in slots[:2]] == [0, 0]
    assert clients.join().joined.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_share_a_protocol() -> None:
    """A group takes the protocol with the most votes that all members support, and refuses a member
    that shares none.
    """
    clients = Clients(GroupLimits(initial_rebalance_delay_ms=3000))
    offers = [["a", "b", "c"], ["b", "c"], ["c", "b"]]
    slots = [clients.join(version=3, protocols=dict.fromkeys(offer, b"")) for offer in offers]
    for refused in ({"a": b""}, {}):
        assert clients.join(protocols=refused).joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = clients.join(protocol_type="connect", protocols={"b": b""})
    assert other.joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    clients.wait(10_000)
    assert {slot.joined.protocol_name for slot in slots} == {"b"}


def test_the_leader_assigns() -> None:
    """Members get what the leader gives them when it comes, and later again; those that it forgot
    get nothing.
    """
    clients = Clients()
    (leader,) = clients.members()
    second = clients.join(version=3)
    first = clients.join(leader)
    member, generation = second.joined.member_id, first.joined.generation_id
    assert second.joined.members == []
    slot = clients.sync(generation, member)
    assert slot.answer is None
    clients.sync(generation, leader, {leader: b"all"})
    assert (slot.synced.error_code, slot.synced.assignment) == (ErrorCode.NONE, b"")
    assert clients.sync(generation, leader).synced.assignment == b"all"
    assert clients.group.state is GroupState.STABLE


def test_a_member_that_lost_its_response_asks_again() -> None:
    """A member that says the same as before gets its generation again, but a leader of a stable
    group begins a rebalance.
    """
    clients = Clients()
    leader, member = clients.members(2)
    generation = clients.group.generation
    assert clients.join(member).joined.generation_id == generation
    assert clients.join(leader).answer is None
    assert clients.heartbeat(generation, member) == ErrorCode.REBALANCE_IN_PROGRESS
    assert clients.sync(generation, member).synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert clients.join(member).joined.generation_id == generation + 1
    assert clients.join(member).joined.generation_id == generation + 1


def test_a_rebalance_takes_back_the_assignments() -> None:
    """Members that wait for an assignment learn that they must join again."""
    clients = Clients()
    leader, member = clients.members(2)
    slots = [clients.join(leader), clients.join(member, protocols={"range": b"else"})]
    waiting = clients.sync(slots[0].joined.generation_id, member)
    clients.wait(SESSION_MS - 1)
    clients.join(version=3)
    assert waiting.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    clients.wait(SESSION_MS - 1)
    assert member in clients.group.members


def test_requests_of_strangers() -> None:
    """Requests of unknown members and of other generations are refused."""
    clients = Clients()
    assert clients.heartbeat(1, "x") == clients.leave("x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.sync(1, "x").synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.join("x").joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (member,) = clients.members()
    assert clients.heartbeat(1, "x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.heartbeat(2, member) == clients.heartbeat(0, member) == ErrorCode.ILLEGAL_GENERATION
    assert clients.sync(2, member).synced.error_code == ErrorCode.ILLEGAL_GENERATION
    assert clients.sync(1, member, protocol="x").synced.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert clients.heartbeat(1, member) == ErrorCode.NONE


def test_sessions_end() -> None:
    """A member that is silent for a session is removed; heartbeats and commits keep it."""
    clients = Clients()
    (member,) = clients.members()
    clients.wait(SESSION_MS - 1)
    assert clients.heartbeat(1, member) == ErrorCode.NONE
    clients.wait(SESSION_MS - 1)
    assert clients.commit(1, 1, member) == ErrorCode.NONE
    clients.wait(SESSION_MS - 1)
    assert clients.group.state is GroupState.STABLE
    clients.wait(1)
    assert (clients.group.state, clients.group.generation) == (GroupState.EMPTY, 2)
    assert clients.heartbeat(2, member) == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.coordinator.next_deadline() is None


def test_a_rebalance_ends_without_those_who_do_not_come() -> None:
    """Members that do not join again within the rebalance timeout are removed, however often they
    send heartbeats.
    """
    clients = Clients()
    leader, member = clients.members(2)
    slot = clients.join(leader)
    for _ in range(4):
        clients.wait(REBALANCE_MS // 4)
        clients.heartbeat(2, member)
    assert [each.member_id for each in slot.joined.members] == [leader]


def test_members_that_do_not_sync_are_removed() -> None:
    """Members of a generation that never ask for their assignment are removed after the rebalance
    timeout, and the others rebalance.
    """
    clients = Clients()
    leader, member = clients.members(2)
    clients.join(leader)
    generation = clients.join(member, protocols={"range": b"else"}).joined.generation_id
    waiting = clients.sync(generation, member)
    for _ in range(4):
        clients.wait(REBALANCE_MS // 4)
        clients.heartbeat(generation, leader)
    assert waiting.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert [each.member_id for each in clients.group.members] == [member]


def test_a_new_member_may_wait_longer_than_its_session() -> None:
    """While the join of a new member waits, it cannot send heartbeats; it is forgotten only after
    five minutes.
    """
    clients = Clients()
    (leader,) = clients.members()
    clients.join(leader, rebalance_ms=2 * NEW_MEMBER_TIMEOUT_MS)
    clients.assign([leader], [None])
    clients.wait(0)
    slot = clients.join(version=3)
    for _ in range(NEW_MEMBER_TIMEOUT_MS // 5000):
        assert slot.answer is None
        clients.wait(5000)
        clients.heartbeat(clients.group.generation, leader)
    assert slot.joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving() -> None:
    """A member leaves at once, and the others rebalance without it."""
    clients = Clients()
    leader, member = clients.members(2)
    assert clients.leave(leader) == ErrorCode.NONE
    assert clients.leave(leader) == ErrorCode.UNKNOWN_MEMBER_ID
    joined = clients.join(member).joined
    assert (joined.leader, joined.generation_id) == (member, 3)
    assert clients.leave(member) == ErrorCode.NONE
    assert clients.group.state is GroupState.EMPTY


# ---------------------------------------------------------------------- static members


def test_a_static_member_is_replaced_without_a_rebalance() -> None:
    """A static member that returns without its id gets a new one, and its assignment; the id that
    it had is fenced.
    """
    clients = Clients()
    leader, member = clients.members(2, instances=["one", "two"])
    generation = clients.group.generation
    joined = clients.join(instance="two").joined
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, generation, leader)
    assert clients.sync(generation, joined.member_id, instance="two").synced.assignment == member.encode()
    for code in (
        clients.heartbeat(generation, member, "two"),
        clients.sync(generation, member, instance="two").synced.error_code,
        clients.commit(1, generation, member, instance="two"),
        clients.leave(member, "two"),
        clients.join(member, instance="two").joined.error_code,
    ):
        assert code == ErrorCode.FENCED_INSTANCE_ID
    assert clients.heartbeat(generation, member) == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.heartbeat(generation, leader, "else") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_returns_does_not_assign() -> None:
    """From version 9 on it learns that it leads and that the assignment stays; before, another id
    leads.
    """
    clients = Clients()
    (leader,) = clients.members(1, instances=["one"])
    joined = clients.join(instance="one", protocols={"range": b"else"}).joined
    assert (joined.skip_assignment, joined.leader, len(joined.members)) == (True, joined.member_id, 1)
    older = clients.join(instance="one", version=8).joined
    assert (older.skip_assignment, older.leader, older.members) == (False, joined.member_id, [])
    assert clients.sync(1, older.member_id, instance="one").synced.assignment == leader.encode()


def test_a_static_member_that_changes_the_protocol_begins_a_rebalance() -> None:
    """A static member that returns with another protocol begins a generation with that."""
    clients = Clients()
    first = clients.join(instance="one", protocols={"range": b"", "else": b""})
    clients.wait(0)
    clients.assign([first.joined.member_id], ["one"])
    joined = clients.join(instance="one", protocols={"else": b""}).joined
    assert (joined.generation_id, joined.protocol_name) == (2, "else")


def test_requests_of_the_predecessor_that_wait_are_fenced() -> None:
    """Two clients with one instance id: the one that came first learns it at once."""
    clients = Clients()
    leader, member = clients.members(2, instances=["one", "two"])
    waiting = clients.join(leader, instance="one")
    replaced = clients.join(instance="one")
    assert waiting.joined.error_code == ErrorCode.FENCED_INSTANCE_ID
    generation = clients.join(member, instance="two").joined.generation_id
    waiting = clients.sync(generation, member, instance="two")
    clients.join(instance="two")
    assert waiting.synced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert replaced.joined.error_code == ErrorCode.NONE


def test_static_members_keep_their_places_in_a_rebalance() -> None:
    """A static member that does not join again stays until its session is over; if none joins, the
    rebalance waits for that.
    """
    clients = Clients()
    one, _two = clients.members(2, instances=["one", "two"])
    slot = clients.join(one, instance="one", rebalance_ms=4000)
    clients.wait(SESSION_MS - 1)
    assert slot.answer is None
    clients.wait(1)
    assert [each.member_id for each in slot.joined.members] == [one]
    assert clients.leave(instance="one") == ErrorCode.NONE
    assert clients.leave(instance="one") == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_that_never_come_cost_little() -> None:
    """A rebalance timeout of 0 does not make the timer run without end."""
    clients = Clients()
    member = clients.join(instance="one", rebalance_ms=0)
    clients.wait(0)
    clients.sync(1, member.joined.member_id, {}, instance="one")
    slot = clients.join(version=3, rebalance_ms=0)
    clients.leave(slot.joined.member_id if slot.answer else "x")
    clients.wait(10 * SESSION_MS)
    assert clients.group.state is GroupState.EMPTY


# ---------------------------------------------------------------------- coordinators


def test_members_stay_when_their_coordinator_moves() -> None:
    """Requests that wait learn that the coordinator has moved, and the members go on at the next
    one.
    """
    clients = Clients()
    leader, member = clients.members(2)
    slot = clients.join(leader)
    clients.coordinator.move(lambda group_id: group_id == GROUP, clients.now)
    assert slot.joined.error_code == ErrorCode.NOT_COORDINATOR
    slots = [clients.join(leader), clients.join(member)]
    assert [slot.joined.error_code for slot in slots] == [0, 0]


def test_the_memory_of_all_groups_is_bounded() -> None:
    """Members and assignments that would take too much are refused, and what is there stays."""
    clients = Clients(GroupLimits(initial_rebalance_delay_ms=0, max_bytes=10_000))
    (member,) = clients.members()
    assert clients.join(protocols={"range": bytes(8000)}).joined.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert clients.sync(1, member, {member: bytes(8000)}).synced.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    for _ in range(20):
        clients.join()
    assert clients.coordinator.size <= 10_000
    slot = clients.join(member, protocols={"range": b""})
    clients.wait(SESSION_MS)
    assert slot.joined.error_code == ErrorCode.NONE
    clients.assign([member], [None])
    assert clients.heartbeat(clients.group.generation, member) == ErrorCode.NONE
    clients.wait(10 * SESSION_MS)
    clients.expire()
    assert clients.coordinator.size == 0


def test_described_groups() -> None:
    """DescribeGroups shows what members say and are assigned while the group is stable."""
    clients = Clients()
    (member,) = clients.members()
    row = clients.group.described()
    assert (row.group_state, row.protocol_type, row.protocol_data) == ("Stable", "consumer", "range")
    assert [
        (each.member_id, each.member_metadata, each.member_assignment, each.client_host) for each in row.members
    ] == [(member, subscription("t"), member.encode(), "/127.0.0.1")]
    clients.join(version=3)
    row = clients.group.described()
    assert (row.group_state, row.protocol_data) == ("PreparingRebalance", "")
    assert {(each.member_metadata, each.member_assignment) for each in row.members} == {(b"", b"")}


def test_subscriptions() -> None:
    """The topics of a subscription are read in any version, and none from what is damaged."""
    assert topics_of(subscription("a", "bc")) == {"a", "bc"}
    whole = subscription("a", "bc")
    assert all(topics_of(whole[:end]) is None for end in range(len(whole) - 4))
    assert topics_of(bytes(2) + b"\xff\xff\xff\xff") is None
    assert topics_of(bytes(2) + b"\x7f\xff\xff\xff") is None


def test_limits_are_kafkas() -> None:
    """The defaults are those of Kafka."""
    assert (AT_ONCE.min_session_timeout_ms, AT_ONCE.max_session_timeout_ms) == (6000, 1_800_000)
