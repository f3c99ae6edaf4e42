"""Fetch sessions: what is read, and what is answered."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from minicontroller.records.fetch_sessions import FetchContext, FetchSessions

BY_NAME, BY_ID = 12, 13
MINUTES_2 = 120_000
ID = bytes(range(16))


def request(session: int = 0, epoch: int = 0, topic: str = "t", **partitions: int) -> FetchRequest:
    """Partitions are given as `p0=5`, with the offset to read from."""
    wanted = [FetchPartition(partition=int(name[1:]), fetch_offset=offset) for name, offset in partitions.items()]
    topics = [FetchTopic(topic=topic, topic_id=ID, partitions=wanted)] if wanted else []
    return FetchRequest(session_id=session, session_epoch=epoch, topics=topics)


def sessions(slots: int = 10) -> FetchSessions:
    numbers = count(1)
    return FetchSessions(lambda: next(numbers), slots, MINUTES_2)


def answered(context: FetchContext, **rows: FetchedPartition) -> tuple[int, list[int]]:
    """The session's id, and the partitions in the answer; what is not given is empty and at 0."""
    found = [(each, rows.get(f"p{each.partition.partition}", FetchedPartition())) for each in context.wanted]
    answer = context.answer(found)
    assert answer.error is ErrorCode.NONE
    return answer.session_id, [wanted.partition.partition for wanted, _ in answer.rows]


def read_offsets(context: FetchContext) -> dict[int, int]:
    return {each.partition.partition: each.partition.fetch_offset for each in context.wanted}


def test_a_session_answers_what_changed_only() -> None:
    cache = sessions()
    assert answered(cache.open(request(p0=0, p1=0), BY_NAME, 0)) == (1, [0, 1])
    assert answered(cache.open(request(1, 1), BY_NAME, 0)) == (1, [])
    new = FetchedPartition(high_watermark=3, records=b"x")
    assert answered(cache.open(request(1, 2), BY_NAME, 0), p1=new) == (1, [1])
    again = cache.open(request(1, 3, p1=3), BY_NAME, 0)
    assert read_offsets(again) == {0: 0, 1: 3}
    assert answered(again, p1=FetchedPartition(high_watermark=3)) == (1, [])
    later = cache.open(request(1, 4), BY_NAME, 0)
    assert answered(later, p1=FetchedPartition(high_watermark=3, log_start_offset=2)) == (1, [1])


def test_an_error_is_answered_each_time_and_its_end_too() -> None:
    cache = sessions()
    answered(cache.open(request(p0=0), BY_NAME, 0))
    failed = FetchedPartition(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [answered(cache.open(request(1, epoch), BY_NAME, 0), p0=failed)[1] for epoch in (1, 2)] == [[0], [0]]
    assert answered(cache.open(request(1, 3), BY_NAME, 0))[1] == [0]
    assert answered(cache.open(request(1, 4), BY_NAME, 0))[1] == []


def test_partitions_are_added_and_forgotten() -> None:
    cache = sessions()
    answered(cache.open(request(p0=0, p1=0), BY_NAME, 0))
    change = request(1, 1, p2=7)
    change.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0])]
    assert read_offsets(cache.open(change, BY_NAME, 0)) == {1: 0, 2: 7}
    nothing_left = request(1, 2)
    nothing_left.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[1, 2])]
    context = cache.open(nothing_left, BY_NAME, 0)
    assert (context.wanted, answered(context), len(cache)) == ([], (0, []), 0)


def test_a_partition_with_records_goes_behind_the_others() -> None:
    cache = sessions()
    answered(cache.open(request(p0=0, p1=0, p2=0), BY_NAME, 0))
    answered(cache.open(request(1, 1), BY_NAME, 0), p0=FetchedPartition(high_watermark=1, records=b"x"))
    assert list(read_offsets(cache.open(request(1, 2), BY_NAME, 0))) == [1, 2, 0]


def test_wrong_ids_and_epochs_are_refused() -> None:
    cache = sessions()
    answered(cache.open(request(p0=0), BY_NAME, 0))
    assert cache.open(request(9, 1), BY_NAME, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.open(request(1, 2), BY_NAME, 0).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.open(request(1, 1), BY_ID, 0).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert cache.open(request(1, 1), BY_NAME, 0).error is ErrorCode.NONE
    overtaken = cache.open(request(1, 2), BY_NAME, 0)
    cache.open(request(1, 3), BY_NAME, 0)
    assert overtaken.answer([]).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_full_request_ends_the_session_that_it_names() -> None:
    cache = sessions()
    answered(cache.open(request(p0=0), BY_NAME, 0))
    assert answered(cache.open(request(1, 0, p0=0), BY_NAME, 0)) == (2, [0])
    assert answered(cache.open(request(2, -1, p0=0), BY_NAME, 0)) == (0, [0])
    assert len(cache) == 0


def test_ids_and_names_are_kept_apart() -> None:
    cache = sessions()
    context = cache.open(request(p0=0), BY_ID, 0)
    assert [(each.topic, each.topic_id) for each in context.wanted] == [("", ID)]
    answered(context)
    change = request(1, 1)
    change.forgotten_topics_data = [ForgottenTopic(topic_id=ID, partitions=[0])]
    assert read_offsets(cache.open(change, BY_ID, 0)) == {}


def test_a_throttled_client_keeps_its_session() -> None:
    cache = sessions()
    answered(cache.open(request(p0=0), BY_NAME, 0))
    assert cache.open(request(1, 1), BY_NAME, 0).throttled().session_id == 1
    assert cache.open(request(1, 2), BY_NAME, 0).error is ErrorCode.NONE


def test_there_is_no_room_for_a_session_that_is_worth_less() -> None:
    cache = sessions(2)
    answered(cache.open(request(p0=0, p1=0), BY_NAME, 0))
    answered(cache.open(request(p0=0, p1=0, p2=0), BY_NAME, 0))
    assert answered(cache.open(request(p0=0, p1=0, p2=0), BY_NAME, MINUTES_2))[0] == 0  # they are young
    cache.open(request(1, 1), BY_NAME, MINUTES_2)
    cache.open(request(2, 1), BY_NAME, MINUTES_2)
    assert answered(cache.open(request(p0=0), BY_NAME, MINUTES_2 + 1))[0] == 0  # it has fewer partitions
    assert answered(cache.open(request(p0=0, p1=0, p2=0), BY_NAME, MINUTES_2 + 1))[0] == 3
    assert cache.open(request(1, 2), BY_NAME, MINUTES_2 + 1).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_stale_session_gives_way() -> None:
    cache = sessions(1)
    answered(cache.open(request(p0=0, p1=0), BY_NAME, 0))
    assert answered(cache.open(request(p0=0), BY_NAME, MINUTES_2 + 1))[0] == 2


def test_a_followers_session_takes_the_place_of_a_consumers() -> None:
    cache = sessions(1)
    answered(cache.open(request(p0=0, p1=0), BY_NAME, 0))
    assert answered(cache.open(request(p0=0), BY_NAME, 0, privileged=True))[0] == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4), st.booleans(), st.integers(0, 3)), max_size=30))
def test_sessions_stay_within_their_slots(requests: list[tuple[int, int, bool, int]]) -> None:
    cache = sessions(2)
    for session, epoch, by_id, partition in requests:
        context = cache.open(request(session, epoch, "t", **{f"p{partition}": 0}), BY_ID if by_id else BY_NAME, 0)
        context.answer([(each, FetchedPartition()) for each in context.wanted])
        assert len(cache) <= 2
