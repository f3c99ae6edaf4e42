"""Kept rows: of one state only, within a bound, and joined as an encoder would write them."""

from minicontroller.controller.metadata.kept_rows import MAX_KEPT_BYTES, Joined, KeptRows


def test_another_state_finds_nothing() -> None:
    """What was made of one state is no answer about another, although both are equal."""
    kept, first, second = KeptRows[str](), [1], [1]
    kept.keep(first, "a", "of the first", 1)
    assert kept.get(first, "a") == "of the first"
    assert kept.get(second, "a") is None
    kept.keep(second, "b", "of the second", 1)
    assert (kept.get(first, "a"), kept.get(second, "a")) == (None, None)


def test_no_more_is_kept_than_there_is_room_for() -> None:
    """Many questions, or one large answer, do not fill the memory."""
    kept, state = KeptRows[int](), object()
    for number in range(100):
        kept.keep(state, number, number, MAX_KEPT_BYTES // 10)
    assert 0 < sum(kept.get(state, number) is not None for number in range(100)) < 10
    kept.keep(state, "large", 1, MAX_KEPT_BYTES)
    assert kept.get(state, "large") is None


def test_joined_rows() -> None:
    """They count as many as they were, and are written as one."""
    joined = Joined([b"one", b"two"])
    assert (len(joined), b"".join(joined), joined.size) == (2, b"onetwo", 6)
