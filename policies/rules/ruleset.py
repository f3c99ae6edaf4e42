"""The rules of several files together, and their findings on a request.

Rule: a rule set never changes and is never half valid. `load_rules` returns all rules of all files,
or raises with every mistake in them. `judge` asks every rule that applies, in the order of the
files, so that a verdict has the findings of all rules and not of the first alone.

A file without rules is a mistake, because a file that is just being written looks the same, unless
it says `rule_count = 0`. With any `rule_count`, a file that was cut off between two rules is not
taken for whole.

A file that cannot be read is a mistake like any other, reported with the file's name.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from ..interface import ClusterState, JudgedRequest
from ..verdict import Finding, RuleAction
from .builtin import BUILT_IN
from .expressions import read_rule
from .facts import Facts
from .matching import USER
from .mistakes import MAX_BYTES, Mistake, RuleFileError, RuleSource
from .positions import Positions
from .rule import NameGuard, Rule
from .tables import Noted, TomlTable
from .toml import TomlError, decoded, parse_toml
from .vocabulary import CONFIG_APIS, CREATED, OPERATION_OF_API, OPERATION_OF_KIND, OPERATIONS

RULE = "rule"
COUNT = "rule_count"


class RuleSet:
    """All rules of all rule files, in their order."""

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        hash_: str = "",
        files: Sequence[str] = (),
        doubts: Sequence[Mistake] = (),
    ) -> None:
        self.rules = tuple(rules)
        self._doubts = doubts
        self.hash = hash_
        """SHA-256 of the values in the files, in hexadecimal. Comments and spaces do
        not change it.
        """
        self.name = ", ".join(files)
        self._by_operation = {
            operation: tuple(rule for rule in rules if operation in rule.operations) for operation in OPERATIONS
        }

    @property
    def rule_actions(self) -> Mapping[str, RuleAction]:
        return {rule.name: rule.action for rule in self.rules}

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences about rules that may not do what their author means."""
        guards = {rule.guards_names for rule in self.rules}
        unguarded = (
            _unguarded(rule) for rule in self.rules if rule.owned is not None and not _is_guarded(rule, guards)
        )
        return (*map(str, self._doubts), *unguarded)

    @property
    def reads_creation(self) -> bool:
        """Whether a rule reads the time of creation of topics that are to be deleted."""
        return any(CREATED in rule.reads for rule in self._by_operation["delete"])

    @property
    def judged_apis(self) -> frozenset[str]:
        """Kafka's names of the APIs whose `AdminRequest`s a rule judges."""
        judged = {api for api, operation in OPERATION_OF_API.items() if self._by_operation[operation]}
        if any(self._by_operation[operation] for operation in OPERATION_OF_KIND.values()):
            judged |= CONFIG_APIS
        return frozenset(judged)

    def judge(self, request: JudgedRequest, cluster: ClusterState) -> tuple[Finding, ...]:
        facts = Facts(request, cluster)
        findings: list[Finding] = []
        for rule in self._by_operation[facts.operation]:
            if (finding := rule.finding(facts)) is not None:
                findings.append(finding)  # noqa: PERF401 - faster than a generator if there are no findings, as nearly always
        return tuple(findings)


def load_rules(sources: Sequence[RuleSource]) -> RuleSet:
    """Make the rules of all files. Raises RuleFileError with every mistake."""
    mistakes: list[Mistake] = []
    doubts: list[Mistake] = []
    rules: list[Rule] = []
    documents: list[Mapping[str, Any]] = []
    names: dict[str, str] = {}
    for source in sources:
        document = _document(source, mistakes)
        if document is not None:
            documents.append(document)
            rules += _read(source, document, mistakes, doubts, names)
    if mistakes:
        raise RuleFileError(mistakes)
    canonical = msgspec.json.encode(documents, order="sorted")
    return RuleSet(rules, sha256(canonical).hexdigest(), [source.name for source in sources], doubts)


def _is_guarded(quota: Rule, guards: Collection[NameGuard]) -> bool:
    return NameGuard.ALL_BUT_ONES_OWN in guards or (USER not in (quota.owned or "") and NameGuard.SOME_NAMES in guards)


def _unguarded(quota: Rule) -> str:
    pair = f"a [[name_pattern]] with {USER} that denies keeps users to their own names"
    if USER not in (quota.owned or ""):
        pair += ", and [[protected_topics]] keeps these for some"
    return f"{quota.name} counts the topics called {quota.owned}, whoever creates them, and no others: {pair}."


def _built_in(kind: str, table: TomlTable, name: str) -> Rule:
    return msgspec.structs.replace(BUILT_IN[kind](table, name), spares_kafkas_own=True)


def _document(source: RuleSource, mistakes: list[Mistake]) -> Mapping[str, Any] | None:
    if len(source.data) > MAX_BYTES:
        mistakes.append(Mistake(source.name, 1, 1, f"the file is larger than {MAX_BYTES} bytes"))
        return None
    try:
        return parse_toml(decoded(source.data))
    except TomlError as error:
        mistakes.append(Mistake(source.name, error.line, error.column, str(error)))
    return None


def _read(
    source: RuleSource,
    document: Mapping[str, Any],
    mistakes: list[Mistake],
    doubts: list[Mistake],
    names: dict[str, str],
) -> list[Rule]:
    noted: list[Noted] = []
    root = TomlTable(document, (), noted)
    positions = Positions(decoded(source.data))
    rules: list[tuple[tuple[int, int], Rule]] = []
    same: dict[tuple[str, str], str] = {}
    """The first rule with each content."""
    for kind in (RULE, *BUILT_IN):
        for index, table in enumerate(root.tables(kind)):
            default = kind if index == 0 else f"{kind}-{index + 1}"
            rule = read_rule(table) if kind == RULE else _built_in(kind, table, default)
            if rule.name in names:
                table.note(f"there is a rule {rule.name} already, in {names[rule.name]}", "name")
            if (
                twin := same.setdefault((kind, table.content("name", "message", "description")), rule.name)
            ) != rule.name:
                table.note(f"this says what the rule {twin} says already")
            if rule.name:
                names[rule.name] = source.name
            rules.append((positions.line_column(table.path), rule))
    said = root.count(COUNT)
    root.finish()
    if said is not None and said != len(rules):
        root.note(f"{COUNT} is {said}, but the file has {len(rules)}: is it cut off?", COUNT)
    if not rules and said is None and not noted:
        root.note(f"the file has no rules; if that is intended, add {COUNT} = 0")
    for each in noted:
        line, column = positions.line_column(each.path, character=each.character)
        (doubts if each.is_doubt else mistakes).append(Mistake(source.name, line, column, each.text))
    for found in (mistakes, doubts):
        found.sort(key=lambda mistake: (mistake.file, mistake.line, mistake.column))
    return [rule for _, rule in sorted(rules, key=itemgetter(0))]  # in the order of the file


def read_rule_files(paths: Sequence[Path]) -> RuleSet:
    return rules_of((path, _content(path)) for path in paths)


def rules_of(contents: Iterable[tuple[Path, bytes | str]]) -> RuleSet:
    """Make rules of files, each given by its content or by the reason why it cannot be read. Raises
    RuleFileError.
    """
    sources, mistakes = [], []
    for path, held in contents:
        if isinstance(held, bytes):
            sources.append(RuleSource(str(path), held))
        else:
            mistakes.append(Mistake(str(path), 1, 1, f"the file cannot be read: {held}"))
    try:
        rules = load_rules(sources)
    except RuleFileError as error:
        raise RuleFileError([*mistakes, *error.mistakes]) from None
    if mistakes:
        raise RuleFileError(mistakes)
    return rules


def _content(path: Path) -> bytes | str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)  # one byte more shows that the file is too large
    except OSError as error:
        return error.strerror or str(error)
