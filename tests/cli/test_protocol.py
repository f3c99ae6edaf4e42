"""The protocol's descriptions of its own APIs and messages."""

import pytest

from minicontroller.cli.protocol import ApiRow, source, supported


def test_show_prints_both_directions() -> None:
    """The source of a message's encoder and decoder is shown as it is compiled."""
    text = source("CreateTopicsRequest", 7)
    assert text.startswith("# CreateTopicsRequest, version 7: the encoder\n")
    assert "# CreateTopicsRequest, version 7: the decoder\n" in text
    for line in ("def encode(m):", "def decode(d, o):", "b = m1.name.encode()", "num_partitions_2"):
        assert line in text
    compile(text, "shown", "exec")


def test_show_does_not_mind_case() -> None:
    """A name in the wrong case is understood."""
    assert source("createtopicsrequest", 0) == source("CreateTopicsRequest", 0)


def test_show_names_the_nearest_message() -> None:
    """A misspelt name is answered with the one that was meant."""
    with pytest.raises(LookupError, match="there is no message CreateTopicRequest; the nearest is CreateTopicsRequest"):
        source("CreateTopicRequest", 7)
    with pytest.raises(LookupError, match="there is no message 123; the nearest is "):
        source("123", 7)


def test_show_names_the_versions() -> None:
    """A version that does not exist is answered with those that do."""
    with pytest.raises(LookupError, match="CreateTopicsRequest has the versions 0 to 7, not 9"):
        source("CreateTopicsRequest", 9)


def test_the_table() -> None:
    """The table has a line for each API, by key, with its versions as people write them."""
    rows = supported()
    assert [row.key for row in rows] == sorted(row.key for row in rows)
    assert ApiRow(19, "CreateTopics", 0, 7, 5) in rows
    assert {row.name: row.versions for row in rows}["CreateTopics"] == "0-7"
    assert {row.name: row.versions for row in rows}["Envelope"] == "0"
    assert {row.name: row.flexible_from for row in rows}["SaslHandshake"] is None
