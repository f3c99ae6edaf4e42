"""Whoever sends text gets an answer in time that grows with it, whatever it says: no pattern goes
back, no parser reads twice.

Proved and counted, not measured: a pattern's syntax tree shows whether it can go back
(`tests/support/patterns.py`), and the lines of Python that a parser runs are counted.
"""

import ast
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

import msgspec
import pytest

from minicontroller.audit.searching import parse_cursor
from minicontroller.cluster.errors import LEFT_OUT
from minicontroller.cluster.topic_names import validate_topic_name
from minicontroller.cluster.znodes import acls, tokens
from minicontroller.cluster.znodes.entity_names import client_entity_at
from minicontroller.cluster.znodes.registrations import decode_endpoint
from minicontroller.controller.handlers.api_versions import _is_software
from minicontroller.network.http.serving import _names_loopback
from minicontroller.policies.configs.validators import release_of, validator_of
from minicontroller.policies.configs.values import KeyType, java_int, parse_value
from minicontroller.policies.rules import syntax
from minicontroller.policies.rules.matching import Match, full_match, pattern_match
from minicontroller.policies.rules.positions import Positions
from minicontroller.policies.rules.toml import _open_at
from minicontroller.process.observe.secrets import redact
from minicontroller.process.settings.environment import key_of_variable
from minicontroller.process.settings.jaas import parse_jaas, parse_jaas_file
from minicontroller.process.settings.keys import base_name, key_named, nearest_key
from minicontroller.process.settings.listeners import parse_counts, parse_endpoints, parse_protocol_map
from minicontroller.process.settings.properties import parse_properties
from minicontroller.security.certificates import PrincipalMapper
from minicontroller.security.key_stores import pem_blocks
from minicontroller.security.principal import principal_from_envelope, principal_from_text
from minicontroller.security.scram import _attributes
from minicontroller.security.scram_credentials import parse_credential
from minicontroller.security.scram_server import read_client_final, read_client_first
from minicontroller.store.digest_md5 import _directives
from minicontroller.text import escaped, parse_time
from tests.support import program
from tests.support.patterns import faults

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FUNCTIONS = frozenset({"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"})
SEARCHES = FUNCTIONS - {"match", "fullmatch"}


class Found(msgspec.Struct, frozen=True):
    """A pattern of the program."""

    file: Path
    name: str
    pattern: re.Pattern[str]


def sources() -> Iterator[tuple[Path, ast.Module]]:
    """The files that make a pattern or call one."""
    called = re.compile(rf"\bre\.|\.(?:{'|'.join(FUNCTIONS)})\(")
    for file in [*program.modules(), *program.modules("config")]:
        text = file.read_text("utf-8")
        if called.search(text):
            yield file.relative_to(ROOT), ast.parse(text)


def calls_of_re(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("re"), name)) if name in FUNCTIONS or name == "compile":
                yield node


def patterns_of(file: Path, tree: ast.Module) -> Iterator[Found]:
    calls = set(calls_of_re(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.Call(args=[ast.Constant(str(text)), *flags]) as call
            ) if call in calls:
                given = [eval(ast.unparse(flag), {"re": re}) for flag in flags]  # our own source
                yield Found(file, name, re.compile(text, *given))


def searched(tree: ast.Module) -> set[str]:
    """Names of what is searched for, or replaced: it is tried at each character of a text."""
    return {
        node.func.value.id if isinstance(node.func.value, ast.Name) else node.func.value.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES
        if isinstance(node.func.value, ast.Name | ast.Attribute)
    }


def test_no_pattern_of_the_program_goes_back() -> None:
    """Each is a constant with a name, so that it can be looked at, and its work grows with the text
    and no faster.
    """
    trees = dict(sources())
    names = {file: searched(tree) for file, tree in trees.items()}
    found = [each for file, tree in trees.items() for each in patterns_of(file, tree)]
    assert len(found) > 30
    wrong = [
        f"{each.file}: {each.name}: {fault}"
        for each in found
        for fault in faults(each.pattern, searched=any(each.name in used for used in names.values()))
    ]
    constants = {file: sum(each.file == file for each in found) for file in trees}
    wrong += [
        f"{file}: patterns are constants, compiled where they have a name"
        for file, tree in trees.items()
        if len(list(calls_of_re(tree))) != constants[file]
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        (r"[0-9]+\.?[0-9]*", False),
        (r"(?:a+)+b", False),
        (r"(?:a++b|a)*+", False),
        (r"[ ]*+,", True),
        (r'"((?:[^"\\]|\\.)*+)"', True),
        (r"(a+?)\1", False),
        (r"(?:a|a){22}b", False),
        (r"a{0,500}a{0,500}b", False),
        (r"a.*?b", False),
    ],
)
def test_a_pattern_that_goes_back_is_noticed(pattern: str, is_searched: bool) -> None:
    """Two neighbours that take the same, one within another, a search that begins anew: none of
    them passes.
    """
    assert faults(re.compile(pattern), searched=is_searched)


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [(r"[0-9]++\.?[0-9]*+", False), (r"(?:[ ]|#[^\n]*+)*+", False), (r'"((?:[^"\\]|\\.)*+)"?', True), (r"[*?]", True)],
)
def test_a_linear_pattern_passes(pattern: str, is_searched: bool) -> None:
    """What gives nothing back is no fault."""
    assert not faults(re.compile(pattern), searched=is_searched)


# ------------------------------------------------------------------ parsers

PUMPS = (
    *(
        "0",
        "9",
        "٣",
        "a",
        " ",
        "\t",
        "\n",
        ",",
        ".",
        "-",
        ":",
        "/",
        "=",
        ";",
        "*",
        "?",
        "%",
        "'",
        '"',
        "\\",
        "[",
        "(",
        "{",
        "_",
        "#",
    ),
    *(
        "a,",
        ", ",
        "\\\n",
        '\\"',
        '"a',
        '"aaaaa"',
        "//",
        "/*",
        "a=b,",
        "a:1,",
        "A://b:1,",
        "[[a]]\n",
        "a.",
        "-----BEGIN A-----",
        "not (",
    ),
)
BEGINNINGS = ("", '"', "/*", "r=", "listener.name.")
ENDINGS = ("", "x", "\0", "\ud800")
GROWTH = 4
SLACK = 600
"""Lines that a text of any length may cost."""


def toml(text: str) -> object:
    return Positions(
        f'a = "{text.translate(str.maketrans("", "", chr(34) + chr(92) + chr(10) + chr(0)))}"\nb = [{"1," * (len(text) // 4)}]'
    )


def validated(notation: str) -> Callable[[str], object]:
    validator = validator_of(notation)
    assert validator is not None
    return lambda text: validator("k", tuple(text.split(",")) if notation == "replicas" else text)


def loopback(text: str) -> object:
    return _names_loopback({"headers": [(b"host", text.encode("latin-1", "replace"))]})


def made_anew(pattern: str) -> Match:
    """Though one like it is kept."""
    full_match.cache_clear()
    pattern_match.cache_clear()
    return pattern_match(pattern)


PARSERS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        **{f"a value of type {kind.name}": partial(parse_value, "k", kind) for kind in KeyType},
        **{f"the limits of {each}": validated(each) for each in ("non-empty", "replicas", "version", "a|b")},
        "a release": release_of,
        "the number of a broker": java_int,
        "a key": key_named,
        "a key without its prefix": base_name,
        "a key that was meant": nearest_key,
        "an environment variable": key_of_variable,
        "JAAS": parse_jaas,
        "a JAAS file": parse_jaas_file,
        "listeners": lambda text: parse_endpoints("listeners", text),
        "security protocols": parse_protocol_map,
        "counts": lambda text: parse_counts("k", text),
        "a principal": principal_from_text,
        "the path of an entity": client_entity_at,
        "the path of ACLs": acls.pattern_at,
        "a list of ACLs": lambda text: acls.decode_acls(text.encode("utf-8", "replace")),
        "a notification of ACLs": lambda text: acls.decode_literal_acl_change(text.encode("utf-8", "replace")),
        "a delegation token": lambda text: tokens.decode_token("id", text.encode("utf-8", "replace"), 0),
        "a principal in an envelope": lambda text: principal_from_envelope(b"\0\0" + text.encode("utf-8", "replace")),
        "a challenge by SCRAM": _attributes,
        "a challenge by DIGEST-MD5": lambda text: _directives(text.encode("utf-8", "replace")),
        "a SCRAM client's first message": lambda text: read_client_first(text.encode("utf-8", "replace")),
        "a SCRAM client's final message": lambda text: read_client_final(text.encode("utf-8", "replace")),
        "a stored SCRAM credential": parse_credential,
        "the software of a client": lambda text: _is_software(text) if text else None,
        "the name of a topic": validate_topic_name,
        "a name against a glob": pattern_match("*a*a*a*b?"),
        "a name against a regular expression": pattern_match("/(a|a)*(a+)+b/"),
        "a glob": lambda text: made_anew(text)("a" * 200),
        "the condition of a rule": syntax.parse,
        "the positions of a rule file": toml,
        "what is not closed in TOML": lambda text: _open_at(text, len(text)),
        "properties": parse_properties,
        "a time": parse_time,
        "a place in the audit log": parse_cursor,
        "what is shown on a terminal": escaped,
        "a secret in a message": lambda text: redact(f"{text[:900]}{LEFT_OUT}{text[-900:]}", {text, text[1:] + "b"}),
        "certificates": lambda text: list(pem_blocks(text)),
        "the subject of a certificate against a rule": PrincipalMapper(
            r"RULE:^CN=(.*?),(a|a)*(.*)$/$1$2/L,DEFAULT"
        ).name_of,
        "rules for principals": PrincipalMapper,
        "the endpoint of a registration": lambda text: decode_endpoint(text, {}),
        "the host of an HTTP request": loopback,
    }
)


def lines_run(parse: Callable[[str], object], text: str) -> int:
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(Exception):  # that it refuses is another test's business
            parse(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("parser", PARSERS)
def test_the_work_of_a_parser_grows_with_the_text(parser: str) -> None:
    """Four times the text costs about four times the lines, of whatever it is made and however it
    begins and ends.
    """
    parse, size = PARSERS[parser], 100
    for pump in PUMPS:
        for begin in BEGINNINGS:
            for end in ENDINGS:
                short, long = (f"{begin}{pump * (times * size // len(pump))}{end}" for times in (1, GROWTH))
                few = lines_run(parse, short)
                assert lines_run(parse, long) <= (GROWTH + 1) * few + SLACK, (begin, pump, end)
