"""Types and limits of values. Parsing and rendering were compared once with Kafka's ConfigDef over
210,000 random texts.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.policies.configs.validators import release_of, validator_of
from minicontroller.policies.configs.values import (
    InvalidValueError,
    KeyType,
    Value,
    host_and_port,
    java_double,
    parse_value,
    render_value,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (KeyType.BOOLEAN, " TRUE ", True),
        (KeyType.BOOLEAN, "false", False),
        (KeyType.INT, " +5\t", 5),
        (KeyType.INT, "-2147483648", -(2**31)),
        (KeyType.INT, "٣", 3),
        (KeyType.SHORT, "32767", 32767),
        (KeyType.LONG, "9223372036854775807", 2**63 - 1),
        (KeyType.DOUBLE, ".5", 0.5),
        (KeyType.DOUBLE, "5.", 5.0),
        (KeyType.DOUBLE, "1e-1f", 0.1),
        (KeyType.DOUBLE, "0x1p-1", 0.5),
        (KeyType.DOUBLE, "-Infinity", -math.inf),
        (KeyType.DOUBLE, "1e999", math.inf),
        (KeyType.LIST, " a ,b,\tc ", ("a", "b", "c")),
        (KeyType.LIST, "a,", ("a", "")),
        (KeyType.LIST, " ", ()),
        (KeyType.STRING, " a b ", "a b"),
        (KeyType.PASSWORD, " secret ", "secret"),
        (KeyType.CLASS, "a.B", "a.B"),
    ],
)
def test_what_kafka_takes_is_taken(kind: KeyType, text: str, value: Value) -> None:
    """Spaces round a value, signs, foreign digits and Java's ways to write a double are fine."""
    assert parse_value("k", kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (KeyType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (KeyType.BOOLEAN, "", "Expected value to be either true or false"),
        (KeyType.INT, "2147483648", "Not a number of type INT"),
        (KeyType.INT, "1_000", "Not a number of type INT"),
        (KeyType.INT, "1.0", "Not a number of type INT"),
        (KeyType.INT, "", "Not a number of type INT"),
        (KeyType.INT, "9" * 5000, "Not a number of type INT"),
        (KeyType.SHORT, "-32769", "Not a number of type SHORT"),
        (KeyType.LONG, "0x10", "Not a number of type LONG"),
        (KeyType.DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (KeyType.DOUBLE, "0x1", "Not a number of type DOUBLE"),
        (KeyType.DOUBLE, "NaN", "Not a number of type DOUBLE"),
        (KeyType.DOUBLE, "infinity", "Not a number of type DOUBLE"),
    ],
)
def test_what_is_no_value_is_refused_in_kafkas_words(kind: KeyType, text: str, reason: str) -> None:
    """The text names the value, the key and the type; NaN, which Kafka takes, is no number."""
    with pytest.raises(InvalidValueError) as caught:
        parse_value("the.key", kind, text)
    assert str(caught.value) == f"Invalid value {text} for configuration the.key: {reason}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (9999999.0, "9999999.0"),
        (1e21, "1.0E21"),
        (-2.5e-10, "-2.5E-10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    """DescribeConfigs shows 1.0E-4 where Python would show 0.0001."""
    assert java_double(value) == text


@given(st.floats(allow_nan=False))
def test_a_written_double_reads_back(value: float) -> None:
    """No digit is lost."""
    assert parse_value("k", KeyType.DOUBLE, java_double(value)) == value


@given(st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.lists(st.from_regex(r"\A[a-z]+\Z")).map(tuple))
def test_a_rendered_value_reads_back(value: Value) -> None:
    """What is shown can be set again."""
    kind = {bool: KeyType.BOOLEAN, int: KeyType.LONG, tuple: KeyType.LIST}[type(value)]
    assert parse_value("k", kind, render_value(value) or "") == value


@given(st.sampled_from(KeyType), st.text())
def test_any_text_is_a_value_or_invalid(kind: KeyType, text: str) -> None:
    """Nothing else is raised."""
    try:
        parse_value("k", kind, text)
    except InvalidValueError:
        return


@pytest.mark.parametrize(
    ("notation", "value", "fault"),
    [
        (">=1", 0, "Invalid value 0 for configuration k: Value must be at least 1"),
        (">=-1", -1, None),
        ("1..17", 18, "Invalid value 18 for configuration k: Value must be no more than 17"),
        ("1..17", 0, "Invalid value 0 for configuration k: Value must be at least 1"),
        ("1..9,-1", -1, None),
        ("1..9,-1", 0, "Invalid value 0 for configuration k: Value must be between 1 and 9 or equal to -1"),
        ("0..1", 1.1, "Invalid value 1.1 for configuration k: Value must be no more than 1"),
        ("0..0.5", 0.6, "Invalid value 0.6 for configuration k: Value must be no more than 0.5"),
        ("a|b", "b", None),
        ("a|b", "B", "Invalid value B for configuration k: String must be one of: a, b"),
        ("a|b", ("a", "c"), "Invalid value c for configuration k: String must be one of: a, b"),
        ("a|b", (), None),
        ("nocase:A|B", "b", None),
        ("nocase:A|B", "c", "Invalid value c for configuration k: String must be one of (case insensitive): A, B"),
        ("non-empty", "", "Invalid value  for configuration k: String must be non-empty"),
        ("replicas", ("*",), None),
        ("replicas", (), None),
        ("replicas", ("0:1", "12:34", ""), None),
        ("version", "3.9.1-anything", None),
        ("version", "3", "Invalid value 3 for configuration k: Version 3 is not a valid version"),
    ],
)
def test_limits_are_told_in_kafkas_words(notation: str, value: Value, fault: str | None) -> None:
    """Each notation of the tables refuses and lets pass what Kafka's validator does."""
    validator = validator_of(notation)
    assert validator is not None
    if fault is None:
        validator("k", value)
        return
    with pytest.raises(InvalidValueError) as caught:
        validator("k", value)
    assert str(caught.value) == fault


@pytest.mark.parametrize("value", [("0:1", "*"), ("*", "*"), ("0 : 1",), ("-1:1",), ("foo",), ("٣:1",)])
def test_throttled_replicas_are_pairs_or_one_star(value: tuple[str, ...]) -> None:
    """Anything but digits:digits, or the star alone, is refused with the list in brackets."""
    validator = validator_of("replicas")
    assert validator is not None
    with pytest.raises(InvalidValueError) as caught:
        validator("k", value)
    assert str(caught.value).startswith(
        f"Invalid value [{', '.join(value)}] for configuration k: k must be the literal '*'"
    )


def test_a_notation_that_means_nothing_is_our_own_fault() -> None:
    """A table with a slip fails at import, not when somebody meets the key."""
    with pytest.raises(ValueError, match="no such notation"):
        validator_of("at least 1")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.8.2.1", (0, 8, 2)),
        ("0.10.2.x", (0, 10, 2)),
        ("2.8.1-IV3", (2, 8)),
        ("3.9", (3, 9)),
        ("3.9-IV0", (3, 9)),
        ("4.0-IV1", (4, 0)),
        ("0.8", None),
        ("1", None),
        ("2.8-IV7", None),
        ("3.9.", None),
        ("4.0", None),
        ("4.0.1", None),
        ("", None),
    ],
)
def test_versions_are_those_that_kafka_39_knows(text: str, release: tuple[int, ...] | None) -> None:
    """Releases are known by two numbers (three before 1.0), protocol versions by
    their whole name.
    """
    assert release_of(text) == release


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker:9092", ("broker", 9092)),
        ("[::1]:0", ("::1", 0)),
        ("[broker]:1", ("broker", 1)),
        ("[::1:0", None),
        ("::1]:0", None),
        ("::1:0", None),
        ("[[::1]]:0", None),
        ("[]:0", None),
        (":0", None),
        ("broker", None),
        ("broker:", None),
        ("broker:65536", None),
        ("broker:+1", None),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int] | None) -> None:
    """An IPv6 address stands in brackets, and every bracket has its other half."""
    assert host_and_port(text) == address


@given(st.text("ab:[].1", max_size=12))
def test_an_address_that_is_read_can_be_written(text: str) -> None:
    """The host of whatever is read stands in brackets, or could, before the same port."""
    address = host_and_port(text)
    if address is not None:
        host, port = address
        assert text in (f"{host}:{text.rpartition(':')[2]}", f"[{host}]:{text.rpartition(':')[2]}")
        assert host_and_port(f"[{host}]:{port}") == address
