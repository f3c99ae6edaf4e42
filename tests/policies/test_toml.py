"""What is no TOML is told in plain words, with its place and what is missing there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.policies.rules.toml import TomlError, decoded, parse_toml

UNCLOSED = "begins here is not closed: its"
REST = "what follows here does not belong to the value before it"


def fault(data: bytes) -> str:
    with pytest.raises(TomlError) as raised:
        parse_toml(decoded(data))
    return f"{raised.value.line}:{raised.value.column}: {raised.value}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('topics = ["a", "b"\n', f"1:10: this is not TOML: the list that {UNCLOSED} ] is missing"),
        ('topics = ["a", "b"\r\n', f"1:10: this is not TOML: the list that {UNCLOSED} ] is missing"),
        ("b = [\n1\n\nc = 3\n", "4:1: this is not TOML: a comma is missing here, or the list that begins at line 1, column 5 is not closed: its ] is missing"),
        ('b = ["a",\n[[rule]]\n', '2:3: this is not TOML: rule is no value: text stands between quotes, as in "text"; or the list that begins at line 1, column 5 lacks its ]'),
        ("b = [1 2]\n", "1:8: this is not TOML: a comma is missing here, or the list that begins at line 1, column 5"),
        ("b = [\n", f"1:5: this is not TOML: the list that {UNCLOSED} ] is missing"),
        ("a = { b = 1\n}\n", f"1:5: this is not TOML: the table that {UNCLOSED} }} is missing on this line, on which all of it stands"),
        ("a = { b = 1", f"1:5: this is not TOML: the table that {UNCLOSED} }} is missing"),
        ("a = { b = 1, }\n", "1:14: this is not TOML: a key is missing here; or the table that begins at line 1, column 5 lacks its }"),
        ('x = 1\na = "b\nc = "d"\n', f'2:5: this is not TOML: the text that {UNCLOSED} " is missing on this line'),
        ("a = 'b\r\nc = 'd'\r\n", f"1:5: this is not TOML: the text that {UNCLOSED} ' is missing on this line"),
        ('a = ["b]\n', f'1:6: this is not TOML: the text that {UNCLOSED} " is missing on this line'),
        ('a = """b"""\nc = """d\n', f'2:5: this is not TOML: the text that {UNCLOSED} """ is missing'),
        ("a = '''b", f"1:5: this is not TOML: the text that {UNCLOSED} ''' is missing"),
        ('a = "b\\d"\n', '1:7: this is not TOML: a \\ between " begins an escape'),
        ('a = "\\u12"\n', "this is not TOML: after \\u four hexadecimal digits are missing here"),
        ("a = 1\n  a = 2\n", "2:1: this is not TOML: a is there already: a key stands once"),
        ("[a]\n[a]\n", "2:1: this is not TOML: [a] is there already"),
        ("[[a]]\n[a]\n", "2:1: this is not TOML: [a] is there already"),
        ("a =\n", "1:4: this is not TOML: a value is missing here"),
        ("a\n", "1:2: this is not TOML: after the key here, = and its value are missing"),
        ("= 1\n", "1:1: this is not TOML: here a key or the name of a table must begin"),
        ("a = b\n", '1:5: this is not TOML: b is no value: text stands between quotes, as in "text"'),
        ("a = “b”\n", '1:5: this is not TOML: “ is no quote of TOML: write "'),
        ("a = 1 b = 2\n", f"1:7: this is not TOML: {REST}"),
        ("a = 1\rb = 2\n", f"1:6: this is not TOML: {REST}"),
        ("[a\n", "1:3: this is not TOML: the ] that ends the name of a table is missing here"),
        ("[]\n", "1:2: this is not TOML: a key is missing here"),
        ("a = \0\n", "1:5: this is not TOML: the character U+0000 cannot stand here"),
        ('a = "\x01"\n', "1:6: this is not TOML: the character U+0001 cannot stand here"),
        (f"a = {'[' * 9999}", "1:1: this is not TOML that can be read: it is nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_missing_and_where(text: str, told: str) -> None:
    """Whoever forgot a sign reads which one, at which place, and no escape that nobody wrote."""
    assert told in fault(text.encode())


def test_bytes_of_editors() -> None:
    """A mark at the beginning, tabs and line ends of Windows are no mistakes; another encoding is
    one, with its place.
    """
    assert parse_toml(decoded(b"\xef\xbb\xbf\ta =\t1\r\n[b]\r\n")) == {"a": 1, "b": {}}
    assert fault("a = 1\nb = 'é'\n".encode("latin-1")) == "2:6: the file is not UTF-8"
    assert fault("a = 1\n".encode("utf-16")) == "1:1: the file is not UTF-8, but UTF-16: save it as UTF-8"


@given(st.text() | st.text("ab=\"'[]{}.,#\\\n\r\t 1é", max_size=40))
def test_any_text(text: str) -> None:
    """Any text is a document, or has a mistake at a place of it, told on one line that can be
    printed.
    """
    found = None
    try:
        parse_toml(decoded(text.encode("utf-8", "replace")))
    except TomlError as error:
        found = error
    if found is not None:
        lines = text.replace("\r\n", "\n").split("\n")
        assert 1 <= found.line <= len(lines)
        assert 1 <= found.column <= len(lines[found.line - 1]) + 1
        assert str(found).isprintable()
