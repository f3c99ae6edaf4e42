"""Reads requests and test cases for rules from TOML, and evaluates them.

Rule: omitted values have the plainest defaults, and errors begin with the name of the file. The
time and the cluster of a case come from its file only, so its result is reproducible.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..cluster.entities import INTERNAL_TOPICS
from ..policies.configs.canonical import canonical_configs
from ..policies.interface import JudgedRequest, TopicState
from ..policies.rules.ruleset import RuleSet
from ..policies.rules.toml import TomlError, decoded, parse_toml
from ..policies.states import ClusterSnapshot, topic_state
from ..policies.verdict import Finding, RuleAction, refusal
from .policy_requests import NEED_TOPIC, RequestGiven, TopicGiven, asked, misnamed


class CaseError(Exception):
    """Files of cases are invalid. The message has a line for each mistake, which begins with the
    file's name.
    """


class ClusterGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cluster_size: int = 3
    default_configs: dict[str, str] = {}
    """The cluster's defaults of topic configs, by config name, where they differ from Kafka's."""
    topics: dict[str, TopicGiven] = {}


class CaseGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    request: RequestGiven
    name: str = ""
    before: TopicGiven | None = None
    """The state before the request: of its topic, instead of an entry in `cluster.topics`, or the
    configs of its broker.
    """
    cluster: ClusterGiven = ClusterGiven()
    expect: Literal["allow", "deny", "warn", "audit"] = "allow"
    rule: str | None = None
    message: str | None = None
    """A text that the message of the decisive rule must contain."""


class FileGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: list[Any]
    rules: list[str] = []
    """The rule files, relative to this file. The default is the rule file of the same name:
    orders.toml for orders.cases.toml.
    """


class Case(msgspec.Struct, frozen=True):
    file: Path
    name: str
    rules: tuple[Path, ...]
    request: JudgedRequest
    cluster: ClusterSnapshot
    expect: str
    rule: str | None = None
    message: str | None = None


class CaseOutcome(msgspec.Struct, frozen=True):
    case: Case
    decision: str
    """The decision: `deny`, `warn`, `audit` or `allow`."""
    findings: tuple[Finding, ...]
    failure: str | None
    """A sentence about the difference from the expectation, or None if there is none."""


def read_all(files: Iterable[Path], read: Callable[[Path], Sequence[Case]]) -> list[Case]:
    """Return the cases that `read` finds in these files. Raises CaseError with all mistakes."""
    cases: list[Case] = []
    mistakes = []
    for file in files:
        try:
            cases += read(file)
        except CaseError as error:
            mistakes.append(str(error))
    if mistakes:
        raise CaseError("\n".join(mistakes))
    return cases


def read_request(file: Path) -> Case:
    """Read one request for `policy check --request`. Its time defaults to now. Raises CaseError."""
    given = _converted(file, _document(file), CaseGiven)
    request = given.request
    if request.time is None:
        request = msgspec.structs.replace(request, time=datetime.now(UTC))
    return _case(file, 1, msgspec.structs.replace(given, request=request), ())


def read_cases(file: Path) -> list[Case]:
    """Return the cases in a file. Raises CaseError with all mistakes, one of each case."""
    given = _converted(file, _document(file), FileGiven)
    rules = tuple(file.parent / name for name in given.rules) or (
        file.with_name(file.name.removesuffix(".cases.toml") + ".toml"),
    )
    cases, mistakes = [], []
    for number, raw in enumerate(given.case, 1):
        try:
            cases.append(_case(file, number, _converted(file, raw, CaseGiven, f"case {number}: "), rules))
        except CaseError as error:
            mistakes.append(str(error))
    if mistakes:
        raise CaseError("\n".join(mistakes))
    return cases


def judged(case: Case, rules: RuleSet) -> CaseOutcome:
    findings = rules.judge(case.request, case.cluster)
    actions = {finding.action for finding in findings}
    decision = next((action.value for action in RuleAction if action in actions), "allow")
    return CaseOutcome(case, decision, findings, _failure(case, decision, findings))


def _failure(case: Case, decision: str, findings: Sequence[Finding]) -> str | None:
    said = "; ".join(f"{finding.rule}: {finding.error or finding.message}" for finding in findings)
    if decision != case.expect:
        return f"expected {case.expect}, but it is {decision}{f' ({said})' if said else ''}"
    decisive = refusal(findings) or next((f for f in findings if f.action.value == decision), None)
    if case.rule is not None and (decisive is None or decisive.rule != case.rule):
        return f"expected {decision} by {case.rule}, but it is by {decisive.rule if decisive else 'no rule'}"
    if case.message is not None and (decisive is None or case.message not in decisive.message):
        return f"expected {case.message!r} in the message, but it is {decisive.message if decisive else ''!r}"
    return None


# ------------------------------------------------------------------ reading


def _document(file: Path) -> Mapping[str, Any]:
    try:
        return parse_toml(decoded(file.read_bytes()))
    except OSError as error:
        raise CaseError(f"{file}: the file cannot be read: {error.strerror or error}") from None
    except TomlError as error:
        raise CaseError(f"{file}:{error.line}:{error.column}: {error}") from None


def _converted(file: Path, document: Any, kind: type[Any], which: str = "") -> Any:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise CaseError(f"{file}: {which}{error}") from None


def _case(file: Path, number: int, given: CaseGiven, rules: tuple[Path, ...]) -> Case:
    request = given.request
    topics = {name: _state(name, topic) for name, topic in given.cluster.topics.items()}
    if (fault := misnamed(request)) is not None:
        raise CaseError(f"{file}: case {number}: {fault}")
    if given.before is not None and request.topic:
        topics[request.topic] = _state(request.topic, given.before)
    if request.operation in NEED_TOPIC and request.topic not in topics:
        topics[request.topic] = _state(request.topic, TopicGiven())
    try:
        configs = given.before.configs or {} if given.before is not None else {}
        made = asked(request, topics.get(request.topic), configs, canonical_configs(given.cluster.default_configs))
    except ValueError as error:
        raise CaseError(f"{file}: case {number}: {error}") from None
    return Case(
        file, given.name or f"case {number}", rules, made, ClusterSnapshot(topics, given.cluster.cluster_size),
        given.expect, given.rule, given.message,
    )  # fmt: skip


def _state(name: str, given: TopicGiven) -> TopicState:
    return topic_state(given.rows(), given.configs or {}, internal=name in INTERNAL_TOPICS)
