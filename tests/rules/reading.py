"""Rules from text, and what they hold against a request."""

from collections.abc import Sequence

import pytest

from minicontroller.policies import ClusterState
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.rules.mistakes import Mistake, RuleFileError, RuleSource
from minicontroller.policies.rules.ruleset import RuleSet, load_rules
from tests.policies.asking import cluster


def rules(text: str) -> RuleSet:
    return load_rules([RuleSource("rules.toml", text.encode())])


def mistakes(text: str | bytes) -> Sequence[Mistake]:
    with pytest.raises(RuleFileError) as found:
        load_rules([RuleSource("rules.toml", text if isinstance(text, bytes) else text.encode())])
    return found.value.mistakes


def mistake(text: str) -> str:
    """The only one."""
    [only] = mistakes(text)
    return str(only)


def condition(expression: str, *, operations: str = '["create", "alter"]', more: str = "") -> str:
    """A file with one rule."""
    return f"[[rule]]\nname = 'it'\noperations = {operations}\n{more}\ncondition = '''{expression}'''\n"


def said(text: str, request: JudgedRequest, of: ClusterState | None = None) -> list[str]:
    """The messages of the findings."""
    return [finding.message for finding in rules(text).judge(request, of or cluster())]
