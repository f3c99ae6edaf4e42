"""What docs/policies.md shows works as it stands."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from minicontroller.cli.policy_cases import read_request
from minicontroller.cli.policy_requests import RequestGiven
from minicontroller.policies.rules.builtin import BUILT_IN
from minicontroller.policies.rules.facts import operation_of
from minicontroller.policies.rules.mistakes import RuleFileError, RuleSource
from minicontroller.policies.rules.ruleset import load_rules
from minicontroller.policies.rules.vocabulary import FUNCTIONS, GROUPS, MACROS, METHODS, OPERATIONS, VARIABLES
from tests.cli.command import call

DOCUMENT = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return found


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who copies the policy and its test has a test that passes."""
    policy, test = blocks("python")
    (tmp_path / "team_policy.py").write_text(policy)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {}
    exec(test, names)
    [shown] = [value for name, value in names.items() if name.startswith("test_")]
    assert callable(shown)
    shown()
    del sys.modules["team_policy"]


def commands() -> Iterator[tuple[list[str], str]]:
    """Yield each command of the page, and the output that is shown below it."""
    for block in blocks("console"):
        for typed in re.findall(r"^\$ minicontroller (.*\n(?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            arguments, _, shown = typed.partition("\n")
            yield arguments.split(), shown


def test_the_rules_do_what_is_shown(tmp_path: Path) -> None:
    """A reader who copies the files and types the commands reads what is shown; all files that are
    rules are sound but the bad ones.
    """
    for block in blocks("toml"):
        name = re.match(r"# (\S+)\n", block)
        assert name is not None, block
        (tmp_path / name[1]).write_text(block)
    shown_commands = list(commands())
    assert len(shown_commands) == 6
    for arguments, shown in shown_commands:
        outcome = call(*arguments, folder=tmp_path)
        wanted = re.escape(shown).replace(re.escape("..."), ".*")
        assert re.fullmatch(wanted, outcome.stdout + outcome.stderr), outcome
        assert outcome.code == (1 if "Error:" in shown else 3 if "toml: deny\n" in shown else 0)
    assert call("policy", "check", "rules.toml", "own.toml", folder=tmp_path).code == 0
    for file in ("scopes.toml", "administration.toml"):
        assert call("policy", "check", file, folder=tmp_path).code == 0


def test_sample_requests_are_as_shown(tmp_path: Path) -> None:
    """The table has every operation with its API and an example that can be read, and with the
    paragraph above it every field that a sample request can have.
    """
    rows = re.findall(r"^\| `(\w+)` \| (\w+)[^|]* \| ([^|]+) \| `(\{ .* \})`[^|]*\|$", DOCUMENT, re.MULTILINE)
    assert [operation for operation, *_ in rows] == list(OPERATIONS)
    shown = set(re.findall(r"`(\w+)`", DOCUMENT.partition("A request has an `operation`")[2].partition("\n\n")[0]))
    for operation, api, fields, example in rows:
        listed = set(re.findall(r"`(\w+)`", fields))
        shown |= listed
        assert set(tomllib.loads(f"request = {example}")["request"]) <= {"operation", *listed}
        (tmp_path / "request.toml").write_text(f"request = {example}\n")
        case = read_request(tmp_path / "request.toml")
        assert (operation_of(case.request), case.request.api) == (operation, api)
    assert {*shown, "operation"} >= set(RequestGiven.__struct_fields__)


def test_everything_is_shown() -> None:
    """Each kind of rule, each function, each variable and each of its fields stands in the
    document.
    """
    fields = {field for variable in VARIABLES.values() for field in variable}
    names = {*BUILT_IN, *FUNCTIONS, *METHODS, *MACROS, *VARIABLES, *fields}
    assert not [name for name in sorted(names) if f"`{name}`" not in DOCUMENT and f"`[[{name}]]`" not in DOCUMENT]


def test_the_operations_of_each_rule() -> None:
    """The table says which operations each kind of rule judges; another one is a mistake."""
    rows = re.findall(r"^\| `\[\[(\w+)\]\]` \|.*\| ([^|]+) \|$", DOCUMENT, re.MULTILINE)
    documented = {
        kind: {
            operation
            for word in re.findall(r"\w+", text)
            for operation in GROUPS.get(word, (word,))
            if operation in OPERATIONS
        }
        for kind, text in rows
    }
    judged = {kind: {each for each in OPERATIONS if not _is_never_judged(kind, each)} for kind in BUILT_IN}
    assert documented == judged


def _is_never_judged(kind: str, operation: str) -> bool:
    source = RuleSource("rules.toml", f"[[{kind}]]\noperations = '{operation}'\nunknown = 1\n".encode())
    with pytest.raises(RuleFileError) as found:
        load_rules([source])
    return any("never judges" in mistake.text for mistake in found.value.mistakes)
