"""The offsets of groups: who may commit, what transactions may still change, what expires. The
codes are those that Kafka 3.9.2 gives to the same requests.
"""

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.groups.group import GroupState
from tests.records.member_clients import GROUP, SESSION_MS, Clients

RETENTION_MS = 7 * 24 * 60 * 60 * 1000
USED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_who_may_commit() -> None:
    """Members of this generation commit; others only while the group is empty."""
    clients = Clients()
    assert clients.commit(1, 0) == ErrorCode.ILLEGAL_GENERATION
    assert clients.commit(1) == ErrorCode.NONE
    assert clients.commit(2, -1, "anybody") == ErrorCode.NONE
    assert clients.commit(3, 0, "anybody") == ErrorCode.UNKNOWN_MEMBER_ID
    (member,) = clients.members()
    assert clients.commit(4, 1, member) == ErrorCode.NONE
    assert clients.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        assert clients.commit(5, generation, member) == ErrorCode.ILLEGAL_GENERATION
    assert clients.commit(5, 1, "x") == clients.commit(5, 1, member, instance="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.offset() == 4


def test_commits_in_a_rebalance() -> None:
    """Until the next generation begins its predecessor commits; then nobody does before the leader
    has assigned.
    """
    clients = Clients()
    leader, member = clients.members(2)
    clients.join(leader)
    assert clients.commit(1, 2, member) == ErrorCode.NONE
    clients.join(member)
    assert clients.commit(2, 2, member) == ErrorCode.ILLEGAL_GENERATION
    assert clients.commit(2, 3, member) == ErrorCode.REBALANCE_IN_PROGRESS
    assert clients.offset() == 1


def test_a_transaction_commits_offsets_with_its_marker() -> None:
    """The offsets of a transaction are unstable until it ends, and count only if it commits."""
    clients = Clients()
    for commits, expected in ((False, None), (True, 5)):
        assert clients.commit(5, producer_id=7) == ErrorCode.NONE
        assert (clients.offset(), clients.group.offsets.is_unstable("t", 0)) == (None, True)
        clients.end(8, commits=True)
        clients.end(7, commits=commits)
        assert (clients.offset(), clients.group.offsets.is_unstable("t", 0)) == (expected, False)
    clients.end(7, commits=True)
    assert clients.offset() == 5


def test_the_last_commit_counts() -> None:
    """A transaction that ends later does not undo what was committed after its own commit."""
    clients = Clients()
    clients.commit(1, producer_id=1)
    clients.commit(2, producer_id=2)
    clients.end(2, commits=True)
    clients.end(1, commits=True)
    assert clients.offset() == 2
    clients.commit(3, producer_id=1)
    clients.commit(4)
    clients.end(1, commits=True)
    assert clients.offset() == 4


def test_members_of_a_transaction_are_checked() -> None:
    """A producer that names a member is fenced with it; one that names none may commit."""
    clients = Clients()
    (member,) = clients.members()
    assert clients.commit(1, 0, member, producer_id=1) == ErrorCode.ILLEGAL_GENERATION
    assert clients.commit(1, 1, "x", producer_id=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert clients.commit(1, 1, member, producer_id=1) == ErrorCode.NONE
    assert clients.commit(2, producer_id=1) == ErrorCode.NONE


def test_a_marker_ends_only_the_groups_of_its_partition() -> None:
    """What another partition of the offsets holds stays unstable."""
    clients = Clients()
    clients.commit(1, producer_id=1)
    clients.coordinator.end_transaction(1, commits=True, group_ids=lambda group_id: group_id != GROUP)
    assert clients.group.offsets.is_unstable("t", 0)


def test_offsets_in_use_are_not_deleted() -> None:
    """Offsets in topics that consumers are subscribed to stay; a group of others keeps all."""
    clients = Clients()
    assert clients.coordinator.delete_offsets(GROUP, [("t", 0)]) == ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = clients.members()
    for topic in ("t", "u"):
        clients.commit(1, 1, member, topic=topic)
    places = [("t", 0), ("u", 0)]
    assert clients.coordinator.delete_offsets(GROUP, places) == {("t", 0): USED, ("u", 0): ErrorCode.NONE}
    assert (clients.offset("t"), clients.offset("u")) == (1, None)
    clients.leave(member)
    assert clients.coordinator.delete_offsets(GROUP, places) == dict.fromkeys(places, ErrorCode.NONE)
    assert clients.coordinator.get(GROUP) is None
    clients.join(version=3, protocol_type="connect")
    assert clients.coordinator.delete_offsets(GROUP, places) == ErrorCode.NON_EMPTY_GROUP


def test_deleted_groups() -> None:
    """A group without members is deleted with its offsets, also those of open transactions."""
    clients = Clients()
    assert clients.coordinator.delete(GROUP) == ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = clients.members()
    assert clients.coordinator.delete(GROUP) == ErrorCode.NON_EMPTY_GROUP
    clients.leave(member)
    clients.commit(1, producer_id=1)
    assert clients.coordinator.delete(GROUP) == ErrorCode.NONE
    assert (list(clients.coordinator), clients.coordinator.size) == ([], 0)
    clients.end(1, commits=True)
    assert clients.coordinator.get(GROUP) is None


def test_offsets_of_deleted_topics_are_forgotten() -> None:
    """A topic takes its offsets with it, and groups that had no others."""
    clients = Clients()
    clients.commit(1)
    clients.commit(1, topic="u")
    clients.commit(2, producer_id=1)
    clients.coordinator.forget_topics({"t"})
    assert (clients.offset("t"), clients.offset("u")) == (None, 1)
    clients.end(1, commits=True)
    assert clients.offset("t") is None
    clients.coordinator.forget_topics({"u"})
    assert (list(clients.coordinator), clients.coordinator.size) == ([], 0)


def test_offsets_of_nobody_expire_after_their_commits() -> None:
    """A group that never had members keeps each offset for the retention."""
    clients = Clients()
    clients.commit(1)
    clients.wait(1000)
    clients.commit(1, topic="u")
    clients.commit(1, topic="own", expires_ms=clients.now + 5000)
    clients.wait(5000)
    clients.expire()
    assert clients.offset("own") is None
    clients.wait(RETENTION_MS - 6000)
    clients.expire()
    assert (clients.offset("t"), clients.offset("u")) == (None, 1)
    clients.wait(1000)
    clients.expire()
    assert list(clients.coordinator) == []


def test_offsets_of_members_expire_after_the_last_one() -> None:
    """A group that had members keeps its offsets for the retention after the last one has left."""
    clients = Clients()
    (member,) = clients.members()
    clients.commit(1, 1, member)
    clients.wait(SESSION_MS)
    clients.wait(RETENTION_MS - 1)
    clients.expire()
    assert (clients.offset(), clients.group.state) == (1, GroupState.EMPTY)
    clients.wait(1)
    clients.expire()
    assert clients.coordinator.get(GROUP) is None


def test_offsets_that_consumers_left_behind_expire() -> None:
    """Consumers that live keep the offsets of the topics to which they are subscribed only."""
    clients = Clients()
    (member,) = clients.members()
    clients.commit(1, 1, member)
    clients.commit(1, 1, member, topic="former")
    for _ in range(RETENTION_MS // 1_800_000):
        clients.now += 1_800_000
        clients.heartbeat(1, member)
    clients.expire()
    assert (clients.offset("t"), clients.offset("former")) == (1, None)


def test_a_group_of_nothing_is_forgotten() -> None:
    """A group that a refused join has left is forgotten when offsets expire."""
    clients = Clients()
    clients.join(protocols={})
    assert clients.group.state is GroupState.EMPTY
    clients.expire()
    assert (list(clients.coordinator), clients.coordinator.size) == ([], 0)
