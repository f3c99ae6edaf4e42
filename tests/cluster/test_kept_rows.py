"""Kept rows: of one state only, within a bound, and joined as an encoder would write them."""

from minicontroller.network.serving.kept_rows import MAX_KEPT_BYTES, SLACK, Fragments, Joined, KeptRows


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


def made_of(source: list[int]) -> tuple[bytes, int]:
    return bytes(source), len(source)


def test_a_fragment_is_of_its_source() -> None:
    """It is made once for each source, and anew for another one, though equal, or another state."""
    fragments, source, states = Fragments(), [1, 2], ({"a": 1}, {"a": 2})
    fragments.follow(states[0], 1)
    fragment = fragments.of(states[0], "t", source, made_of)
    assert fragment == (b"\1\2", 2)
    assert fragments.of(states[0], "t", source, made_of)[0] is fragment[0]
    assert fragments.of(states[0], "t", [3], made_of) == (b"\3", 1)
    source.append(3)
    assert fragments.of(states[0], "t", source, made_of) == (b"\1\2\3", 3)
    source.append(4)
    assert fragments.of(states[0], "t", source, made_of) == (b"\1\2\3", 3)
    fragments.follow(states[1], 1)
    assert fragments.of(states[1], "t", source, made_of)[1] == 4


def test_a_slow_reader_leaves_nothing_behind() -> None:
    """Whoever reads an earlier state, while others follow the next one, makes fragments that nobody
    else gets.
    """
    fragments, source = Fragments(), [1]
    earlier, later = {"a": 1}, {"a": 2}
    fragments.follow(earlier, 1)
    fragments.follow(later, 1)
    assert fragments.of(earlier, "t", source, made_of) == (b"\1", 1)
    source.append(2)
    assert fragments.of(later, "t", source, made_of) == (b"\1\2", 2)


def test_fragments_of_what_is_gone_are_dropped() -> None:
    """However many sources come and go, the fragments stay few: those from before are made anew."""
    fragments, state, first = Fragments(), object(), [1]
    fragments.follow(state, 1)
    fragments.of(state, "first", first, made_of)
    first.append(2)
    for number in range(2 * SLACK):
        fragments.follow(state, 1)
        fragments.of(state, number, [number % 256], made_of)
    assert fragments.of(state, "first", first, made_of) == (b"\1\2", 2)
