"""Topic names, with the words in which a real Kafka 3.9.1 refused them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.topic_names import NameIndex, is_valid_topic_name, validate_topic_name
from minicontroller.protocol.error_codes import ErrorCode

LEGAL = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "...", "-", "_", "a" * 249, "__consumer_offsets", "0"])
def test_legal_names(name: str) -> None:
    """A name of letters, digits, dot, underscore and dash of ASCII, up to 249 of them, is legal."""
    validate_topic_name(name)
    assert is_valid_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a b", f"'a b' {LEGAL}"),
        ("a\n", f"'a\n' {LEGAL}"),
        ("é", f"'é' {LEGAL}"),
        ("٣", f"'٣' {LEGAL}"),
        ("a/b", f"'a/b' {LEGAL}"),
        ("\ufffd", f"'\ufffd' {LEGAL}"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        ("é" * 250, f"the length of '{'é' * 250}' is longer than the max allowed length 249"),
    ],
)
def test_illegal_names_are_refused_with_the_reason(name: str, reason: str) -> None:
    """K4-C8b: the refusal is INVALID_TOPIC_EXCEPTION, and looks for emptiness before dots before
    length before characters.
    """
    with pytest.raises(Refusal) as caught:
        validate_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message == f"Topic name is invalid: {reason}"
    assert not is_valid_topic_name(name)


def test_names_collide_when_dots_and_underscores_are_the_same() -> None:
    """a.b and a_b exclude each other, a-b does not mind."""
    known = NameIndex().changed(added=["a.b", "a._"])
    assert known.colliding("a_b") == ("a.b",)
    assert known.colliding("a_.") == ("a._",)
    assert known.colliding("a-b") == ()


def test_a_collision_names_all_that_are_in_the_way() -> None:
    """The text of a collision lists all colliding topics in order, and not the name itself."""
    index = NameIndex().changed(added=["a_b.c", "a.b_c", "ab", "a.b"])
    with pytest.raises(Refusal) as caught:
        index.refuse_collision("a.b.c")
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message == "Topic 'a.b.c' collides with existing topics: a.b_c, a_b.c"
    index.refuse_collision("a.b")
    index.refuse_collision("ab")


def test_what_was_removed_collides_no_more() -> None:
    """A removed name collides no more, and the index of before still knows it."""
    index = NameIndex().changed(added=["a.b"])
    assert index.changed(removed=["a.b", "x.y", "plain"]).colliding("a_b") == ()
    assert index.colliding("a_b") == ("a.b",)
    assert index.changed(added=["a.b"], removed=["a.b"]).colliding("a_b") == ("a.b",)


def test_names_that_cannot_collide_are_not_kept() -> None:
    """Thousands of plain names cost the index nothing."""
    assert len(NameIndex().changed(added=[f"topic-{number}" for number in range(1000)]).names) == 0


NAMES = st.text("ab._", min_size=1, max_size=4)


@given(st.lists(st.tuples(st.booleans(), NAMES)), NAMES)
def test_the_index_knows_what_a_look_at_every_name_would_find(steps: list[tuple[bool, str]], name: str) -> None:
    """After any additions and removals it lists exactly the other names that collide."""
    known: set[str] = set()
    index = NameIndex()
    for added, changed in steps:
        index = index.changed(added=[changed]) if added else index.changed(removed=[changed])
        known = known | {changed} if added else known - {changed}
    expected = sorted(other for other in known if other != name and other.replace(".", "_") == name.replace(".", "_"))
    assert list(index.colliding(name)) == expected
