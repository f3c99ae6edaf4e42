"""Whatever a rule file holds, it gives rules or mistakes with their places, and nothing else."""

import tomllib
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minicontroller.policies.rules.builtin import BUILT_IN
from minicontroller.policies.rules.mistakes import RuleFileError, RuleSource
from minicontroller.policies.rules.positions import Positions
from minicontroller.policies.rules.ruleset import RuleSet, load_rules, read_rule_files
from minicontroller.policies.rules.syntax import SyntaxFault, parse
from minicontroller.policies.verdict import Finding
from tests.policies.asking import alter, cluster, create, delete, delete_records
from tests.rules.reading import mistakes

WORDS = [
    "name", "operations", "topics", "except_topics", "principals", "except_principals", "action", "message", "condition",
    "message_expression", "match_conditions", "pattern", "min", "max", "configs", "allowed", "required", "forbidden", "owned",
    "max_topics", "max_partitions", "days", "hours", "timezone", "nosuch",
]  # fmt: skip
TEXTS = [
    "", "*", "/a(/", "/(a+)+$/", "User:x", "create", "deny", "true", "false", "after.num_partitions > 1", "1 +", "{user}.*", "12h",
    "mon-fri", "09:00-17:00", "25:00-26:00", "Europe/Berlin", "../../etc/passwd", "Europe", "\x00", "\U0001f600", "request.created",
]  # fmt: skip
TOKENS = [
    "after", ".", "num_partitions", "configs", "before", "request", "time", "topic", "(", ")", "[", "]", "{", "}", ",", ":", "?", "1", "2.5",
    "'a'", '"\\q"', "b'x'", "r'\\'", "&&", "||", "!", "-", "+", "==", "<", "in", "null", "true", "all", "x", "has", "matches", "size", "'''",
]  # fmt: skip

scalars = st.one_of(
    st.sampled_from(TEXTS), st.text(max_size=8), st.integers(), st.booleans(), st.floats(), st.datetimes()
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)),
    max_leaves=8,
)
tables = st.dictionaries(st.sampled_from(WORDS), values, max_size=6)
documents = st.dictionaries(
    st.sampled_from(["rule", *BUILT_IN, "nosuch"]), st.one_of(values, tables, st.lists(tables, max_size=3)), max_size=4
)


def toml(value: object) -> str:
    """The value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(
            f"\\U{ord(character):08x}"
            if character in '"\\' or ord(character) < 32 or ord(character) == 127
            else character
            for character in value
            if not 0xD800 <= ord(character) < 0xE000
        )
        return f'"{escaped}"'
    return str(value) if not hasattr(value, "isoformat") else value.isoformat()


def loaded(data: bytes) -> RuleSet | None:
    try:
        return load_rules([RuleSource("rules.toml", data)])
    except RuleFileError as error:
        lines = data.count(b"\n") + 1
        for mistake in error.mistakes:
            assert 1 <= mistake.line <= lines
            assert mistake.column >= 1
            assert mistake.text
        return None


def judge_everything(rules: RuleSet) -> None:
    for request in (create(), alter(), delete(), delete_records()):
        assert all(isinstance(finding, Finding) for finding in rules.judge(request, cluster()))


@given(st.binary(max_size=300))
@example(b"\xff")
@example(b"a = " + b"[" * 5000)
@example(b"a = " + b"9" * 5000)
@example(b"\xef\xbb\xbfa = 1")
@example(b"rule = 1e999")
def test_any_bytes(data: bytes) -> None:
    """Bytes that are no rules are mistakes."""
    rules = loaded(data)
    if rules is not None:
        judge_everything(rules)


@given(documents)
def test_any_toml(document: Mapping[str, Any]) -> None:
    """Whatever stands where a rule's parts belong is accepted and works, or is told."""
    text = "\n".join(f"{key} = {toml(value)}" for key, value in document.items())
    assert tomllib.loads(text).keys() == document.keys()
    rules = loaded(text.encode())
    if rules is not None:
        judge_everything(rules)


@given(st.lists(st.sampled_from(TOKENS), max_size=14))
def test_any_expression(tokens: list[str]) -> None:
    """What looks like an expression is one, or is told."""
    rules = loaded(f"[[rule]]\nname = 'a'\ncondition = {toml(' '.join(tokens))}\n".encode())
    if rules is not None:
        judge_everything(rules)


@given(st.text(max_size=60))
@example("'" * 4000)
@example("a" * 4000)
@example("//" * 2000)
@example("'''" + "\\" * 3000)
def test_any_text_is_no_expression_or_one(text: str) -> None:
    """The parser says no at a character that the text has, or gives a tree."""
    with suppress(SyntaxFault):
        parse(text)
        return
    with pytest.raises(SyntaxFault) as found:
        parse(text)
    assert 0 <= found.value.at <= len(text)


def test_a_file_that_is_too_large() -> None:
    """Nobody waits for a file that is no rule file."""
    [found] = mistakes(b"#" * 1_000_001)
    assert "larger than" in str(found)


def test_a_file_without_an_end(tmp_path: Path) -> None:
    """No more is read of a file that is far too large, or a device, than tells that."""
    file = tmp_path / "rules.toml"
    with file.open("wb") as sparse:
        sparse.truncate(100 << 20)
    tracemalloc.start()
    with pytest.raises(RuleFileError, match=r"rules\.toml:1:1: the file is larger than"):
        read_rule_files([file])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c-d", '"e.f"']), values, min_size=1),
    st.sampled_from(["", "[t]\n", "[[t]]\n[[t]]\n", "# c\r\n\r\n[t.'u']\n"]),
)
def test_every_key_is_found_where_it_stands(table: Mapping[str, Any], header: str) -> None:
    """The place of each key is where it is written."""
    text = header + "\n".join(f"  {key} = {toml(value)}" for key, value in table.items())
    positions = Positions(text)
    prefix: tuple[str | int, ...] = {"": (), "[t]\n": ("t",), "[[t]]\n[[t]]\n": ("t", 1)}.get(header, ("t", "u"))
    lines = text.replace("\r\n", "\n").split("\n")
    for key in table:
        line, column = positions.line_column((*prefix, key.strip('"')))
        assert lines[line - 1][column - 1 :].startswith(key)


@pytest.mark.parametrize(
    "written",
    [
        "'ab?'",
        '"ab?"',
        '"\\u0061b?"',
        '"\\tb?"',
        "'''ab?'''",
        '"""\nab?"""',
        '"""a\\\n   b?"""',
        '"""a\nb?"""',
        "'''\n\n ?'''",
        '"""\\\n ?"""',
    ],
)
def test_a_character_within_a_string_is_found_where_it_stands(written: str) -> None:
    """Escapes, lines and continued lines are counted as they are written."""
    text = f"# before\nk = {written}"
    character = tomllib.loads(text)["k"].index("?")
    line, column = Positions(text).line_column(("k",), character=character)
    assert text.split("\n")[line - 1][column - 1] == "?"
