r"""Kafka's properties format. That it reads as java.util.Properties does was compared once over
600,000 random texts.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.process.settings.properties import PropertiesError, parse_properties

PIECES = [
    "a",
    "b",
    "=",
    ":",
    " ",
    "\t",
    "\f",
    "\\",
    "\n",
    "\r",
    "\r\n",
    "#",
    "!",
    "u",
    "0",
    "f",
    "\\u0041",
    "\\\n",
    "\ud800",
    "ß",
]


def read(text: str) -> dict[str, str]:
    return {key: entry.value for key, entry in parse_properties(text).entries.items()}


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t=\f b ", {"a": "b "}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n! c=d\n\n  \t\ne=f", {"e": "f"}),
        ("a=b # c", {"a": "b # c"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\r\n\tc", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("# a\\\nb=c", {"b": "c"}),
        ("a=b\\", {"a": "b"}),
        ("\\", {"": ""}),
        ("\\\n\n", {}),
        (r"a\=b=c", {"a=b": "c"}),
        (r"a\ b=c", {"a b": "c"}),
        (r"a=\t\n\r\f\q\"\\", {"a": '\t\n\r\fq"\\'}),
        (r"\u0061=\u00dF", {"a": "ß"}),
        (r"a=\ud83d\ude00", {"a": "\U0001f600"}),
        ("a=b\rc=d\r\ne=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=1\x0b=2", {"a": "1\x0b=2"}),
    ],
)
def test_the_format_is_javas(text: str, entries: dict[str, str]) -> None:
    """Comments, separators, continued lines and escapes mean what they mean to
    java.util.Properties.
    """
    assert read(text) == entries


@pytest.mark.parametrize("text", [r"a=\u", r"a=\u12", r"a=\u12g4", r"a=\uD800", r"a=\uDC00\uD800x", r"\u00=b"])
def test_a_wrong_escape_is_told_with_its_line(text: str) -> None:
    """An escape that is no character is a mistake that names file and line."""
    with pytest.raises(PropertiesError, match=r"server\.properties, line 3"):
        parse_properties("x=y\n#\n" + text, "server.properties")


def test_each_key_knows_its_line() -> None:
    """Lines are counted from 1 where the key stands, whatever was continued or left
    empty before.
    """
    entries = parse_properties("# c\na=1\\\n 2\\\n 3\r\n\r\nb=1\r\\\nc=2").entries
    assert {key: entry.line for key, entry in entries.items()} == {"a": 2, "b": 6, "c": 7}


def test_of_a_key_that_stands_twice_the_last_holds_and_it_is_told() -> None:
    """Last wins, with one sentence that names both lines."""
    properties = parse_properties("a=1\nb=2\na=3", "f")
    assert properties.entries["a"].value == "3"
    assert properties.entries["a"].line == 3
    assert properties.warnings == ("f, line 3: a stands on line 1 already; this one holds.",)


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_any_text_gives_a_result_or_a_configuration_error(text: str) -> None:
    """Nothing else is raised, and every line number lies within the text."""
    try:
        properties = parse_properties(text)
    except PropertiesError:
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert all(1 <= entry.line <= lines for entry in properties.entries.values())


def escaped(text: str) -> str:
    return (
        "".join(f"\\{char}" if char in "\\=: #!" else char for char in text).replace("\n", "\\n").replace("\r", "\\r")
    )


PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\t\f"), min_size=1)


@given(st.dictionaries(PLAIN, PLAIN))
def test_what_is_written_with_escapes_is_read_back(entries: dict[str, str]) -> None:
    """Any keys and values survive being written and read."""
    assert read("\n".join(f"{escaped(key)}={escaped(value)}" for key, value in entries.items())) == entries
