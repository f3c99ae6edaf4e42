"""Evaluates a candidate's rules on columns of many recorded requests at once.

A rule's verdict depends on a few values of the request and of its topic, which the rule names
(`Rule.reads`); the rule is asked once for each different combination of them. A request is settled
if every rule that may apply has a verdict that no other topic can change. Other requests are left
to the judge with the rules that may object: where a value has no column, a rule reads the cluster,
or a rule raises.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import REDACTED
from ...audit.replay import ALTERATIONS, CREATE_TOPIC, CREATE_TOPICS, DELETE_RECORDS, DELETE_TOPIC
from ...policies.interface import (
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
)
from ...policies.judging import PolicyJudge
from ...policies.rules.facts import Facts
from ...policies.rules.rule import Rule
from ...policies.rules.ruleset import RuleSet
from ...policies.rules.vocabulary import REASSIGN
from ...policies.verdict import Finding
from .encoded import Encoded, Flags, Numbers, flags, mention
from .questions import PARTITIONS_BEFORE, SyntheticQuestion, inputs_of
from .sandbox import ALLOWED, Sandbox
from .verdicts import NO_POLICY, Opinion, opinion

ALL = -1
LAST_BIT = 62
MOST_JUDGES = 1_000
MOST_KEPT = 100_000
"""How many answers of a rule may be remembered from one lot of events to the next."""
UNKNOWN = -1
"""The number that stands for an unknown finding, opinion or outcome."""
SILENT = 0
"""The number of no finding, and of the opinion that allows without a word."""
OPERATIONS: Mapping[str, Sequence[str]] = {
    "create": (CREATE_TOPIC,),
    "alter": tuple(sorted(ALTERATIONS)),
    REASSIGN: tuple(sorted(ALTERATIONS)),
    "delete": (DELETE_TOPIC,),
    "delete_records": (DELETE_RECORDS,),
}
"""The operations of events, by the operations that rules know."""
KINDS: Mapping[str, type[PolicyRequest]] = {
    CREATE_TOPIC: CreateTopicRequest,
    **dict.fromkeys(ALTERATIONS, AlterTopicRequest),
    DELETE_TOPIC: DeleteTopicRequest,
    DELETE_RECORDS: DeleteRecordsRequest,
}
"""The requests that policies are asked about, by the operations of events."""
ESCAPE = rb"\u"
"""The beginning of an escape in JSON, in which any character of REDACTED may be written."""
COLUMNS = frozenset({"kind", "resource", "operation", "api", "asked_ms", "internal", "reassignments", "event"})


class NeedsUserError(Exception):
    """A pattern asks for the name of the user."""


class Sifted(NamedTuple):
    """The candidate's opinions and the rules' doubts about some events, as far as columns show
    them.
    """

    opinions: Numbers
    """The number of the candidate's opinion on each request, if the topic was as the event says;
    otherwise UNKNOWN.
    """
    doubts: Numbers
    """The rules that may object to each request whatever the topic was, as bits."""


class Prefilter:
    """The rules of a candidate that has nothing but rules. It is asked for one lot of events after
    another.
    """

    def __init__(self, rules: RuleSet, names: Mapping[str, str]) -> None:
        """Prepare to ask the rules; for `names` see `verdicts.opinion`."""
        self._whole = rules
        self._names = names
        self._rules = [_AskedRule(rule) for rule in rules.rules if not rule.operations.isdisjoint(OPERATIONS)]
        self._composing = PolicyJudge(rules=rules)
        self._judges: dict[int, PolicyJudge] = {}
        self._numbers: dict[tuple[Finding | None, ...], int] = {}
        self._forget()
        reads = {name for rule in self._rules for name in rule.columns}
        self.columns = tuple(sorted(reads | COLUMNS))
        """The names of the columns that the prefilter needs, for `encoded.projection`."""

    def _forget(self) -> None:
        self.opinions: list[Opinion] = []
        """The opinions by their numbers, until the next lot."""
        self._numbers.clear()
        assert self._number(()) == SILENT

    def sift(self, table: pa.Table, encoded: Encoded, is_asked: Flags) -> Sifted:
        if len(self.opinions) > MOST_KEPT:
            self._forget()
        opinions, doubts = np.full(table.num_rows, UNKNOWN), np.full(table.num_rows, ALL)
        is_kafkas_own = _kafkas_own(table)
        for operation, rows in _by_operation(table, np.flatnonzero(is_asked)):
            asked = [(number, rule) for number, rule in enumerate(self._rules) if operation in rule.operations]
            said = [rule.said(encoded, rows, operation) for _, rule in asked]
            may_object = np.zeros(len(rows), np.int64)
            for (number, _), each in zip(asked, said, strict=True):
                may_object |= np.where(each.is_never, 0, _bit(number))
            found = self._opinions([rule for _, rule in asked], [each.findings for each in said], len(rows))
            found[is_kafkas_own[rows] & (found != SILENT)] = UNKNOWN  # most rules spare them
            opinions[rows], doubts[rows] = found, may_object
        return Sifted(opinions, doubts)

    def _opinions(self, rules: "Sequence[_AskedRule]", findings: Sequence[Numbers], count: int) -> Numbers:
        """Return the numbers of the opinions that come of what the rules say about each request."""
        found = np.full(count, SILENT)
        if not findings:
            return found
        matrix = np.stack(findings, axis=1)
        found[(matrix == UNKNOWN).any(axis=1)] = UNKNOWN
        objected = np.flatnonzero((matrix > SILENT).any(axis=1) & (found != UNKNOWN))
        for row, numbers in zip(objected.tolist(), matrix[objected].tolist(), strict=True):
            found[row] = self._number(
                tuple(rule.findings[number] for rule, number in zip(rules, numbers, strict=True) if number != SILENT)
            )
        return found

    def _number(self, findings: tuple[Finding, ...]) -> int:
        number = self._numbers.get(findings)
        if number is None:
            number = self._numbers[findings] = len(self.opinions)
            self.opinions.append(opinion(self._composing.verdict(findings, None, ALLOWED), names=self._names))
        return number

    def judge(self, doubts: int) -> PolicyJudge | None:
        """Return a judge by the rules of these bits; None for ALL, which the candidate has."""
        if doubts == ALL:
            return None
        if doubts not in self._judges:
            if len(self._judges) > MOST_JUDGES:
                self._judges.clear()
            some = [each.rule for number, each in enumerate(self._rules) if doubts & _bit(number)]
            self._judges[doubts] = PolicyJudge(rules=RuleSet(some, self._whole.hash, [self._whole.name]))
        return self._judges[doubts]


def _bit(number: int) -> int:
    """Return the bit of a rule; those behind the first ones share the last one."""
    return 1 << min(number, LAST_BIT)


class CodePrefilter:
    """The prefilter of a candidate with Python code: it is certain only of requests that the code
    is not asked about, if there are no rules beside it.
    """

    columns = tuple(sorted(COLUMNS))
    opinions = (NO_POLICY,)

    def __init__(self, sandbox: Sandbox) -> None:
        kinds = {} if sandbox.rules is not None else KINDS
        self._unasked = pa.array(
            [each for each, kind in kinds.items() if kind.__name__ not in sandbox.kinds], pa.string()
        )

    def sift(self, table: pa.Table, _encoded: Encoded, is_asked: Flags) -> Sifted:
        is_certain = is_asked & flags(pc.is_in(table.column("operation"), self._unasked))
        return Sifted(np.where(is_certain, SILENT, UNKNOWN), np.full(table.num_rows, ALL))

    def judge(self, _doubts: int) -> None:
        """Leave the judgement to the candidate."""


_kept: dict[tuple[object, ...], Prefilter] = {}
"""The last prefilter: a worker's next slice asks the same rules about much the same values."""


def prefilter_of(sandbox: Sandbox) -> Prefilter | CodePrefilter:
    rules = sandbox.rules
    if not isinstance(rules, RuleSet) or sandbox.has_code:
        return CodePrefilter(sandbox)
    key = (rules.hash, *sorted(sandbox.names.items()))
    if key not in _kept:
        _kept.clear()
        _kept[key] = Prefilter(rules, sandbox.names)
    return _kept[key]


def asked(table: pa.Table) -> Flags:
    """Return which events are requests about topics that hide nothing."""
    is_asked = flags(pc.equal(table.column("kind"), "decision")) & flags(pc.equal(table.column("resource"), "topic"))
    is_asked &= flags(pc.is_valid(table.column("asked_ms")))
    return is_asked & ~mention(table.column("event"), REDACTED.encode(), ESCAPE)


def _kafkas_own(table: pa.Table) -> Flags:
    """Return which topics a cluster creates for itself."""
    is_automatic = flags(pc.not_equal(table.column("api"), CREATE_TOPICS))
    return is_automatic & flags(table.column("internal")) & flags(pc.equal(table.column("operation"), CREATE_TOPIC))


def _by_operation(table: pa.Table, rows: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Divide rows by the operation that rules know. What no policy is asked about has none."""
    is_requested = flags(pc.is_valid(table.column("internal")))
    is_reassigned = flags(pc.is_valid(table.column("reassignments")))
    for operation, names in OPERATIONS.items():
        wanted = flags(pc.is_in(table.column("operation"), pa.array(names)))
        if operation in {"create", "alter", REASSIGN}:
            wanted &= is_requested
        if operation in {"alter", REASSIGN}:
            wanted &= is_reassigned == (operation == REASSIGN)
        yield operation, rows[wanted[rows]]


class _RuleAnswers(NamedTuple):
    """The answers of a rule about some requests."""

    findings: Numbers
    """The number of the rule's finding on each request, if the topic was as the event says;
    otherwise UNKNOWN.
    """
    is_never: Flags
    """Whether the rule does not object to a request, whatever the topic was."""


class _AskedRule:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.operations = rule.operations
        self._inputs = {each: inputs_of(rule, each) for each in OPERATIONS if each in rule.operations}
        self._inputs_of_existing = {
            each: inputs_of(rule, each, rule.reads_of_existing)
            for each in self._inputs
            if each in {"alter", REASSIGN} and rule.reads_of_existing
        }
        self._scopes = list(_scopes(rule))
        self.columns = {
            *(
                name
                for of in (self._inputs, self._inputs_of_existing)
                for inputs in of.values()
                for name in inputs or ()
            ),
            *(name for names, _ in self._scopes for name in names),
        }
        self._known: dict[tuple[Any, ...], int] = {}
        self.findings: list[Finding | None] = [None]
        """The rule's findings by their numbers, with None for SILENT."""
        self._numbers: dict[str, int] = {}

    def said(self, encoded: Encoded, rows: Numbers, operation: str) -> _RuleAnswers:
        if len(self._known) > MOST_KEPT:
            self._known.clear()
            del self.findings[1:]
            self._numbers.clear()
        found, is_doubtful = np.full(len(rows), UNKNOWN), np.zeros(len(rows), np.bool_)
        for number, (names, is_meant) in enumerate(self._scopes):
            meant = self._each(encoded, rows, names, is_meant, number)
            found[meant == SILENT] = SILENT
            is_doubtful |= meant == UNKNOWN
        is_never = found == SILENT
        for inputs in (self._inputs[operation], self._inputs_of_existing.get(operation)):
            left = np.flatnonzero(found == UNKNOWN)
            if inputs is not None and len(left):
                found[left] = self._each(
                    encoded, rows[left], inputs, self._finding(inputs, operation), (operation, inputs)
                )
                if PARTITIONS_BEFORE not in inputs:
                    is_never = found == SILENT
        found[is_doubtful & (found != SILENT)] = UNKNOWN
        return _RuleAnswers(found, is_never)

    def _each(
        self,
        encoded: Encoded,
        rows: Numbers,
        names: Sequence[str],
        ask: Callable[[tuple[Any, ...]], int],
        key: object,
    ) -> Numbers:
        """Ask once for each different combination of values; `key` stands for what is asked."""
        values, which = encoded.combinations(names, rows)
        known = self._known
        answers = []
        for each in values:
            answer = known.get((key, each))
            if answer is None:
                answer = known[key, each] = _answer(ask, each)
            answers.append(answer)
        found: Numbers = np.array(answers, np.int64)[which]
        return found

    def _finding(self, names: Sequence[str], operation: str) -> Callable[[tuple[Any, ...]], int]:
        """Return a function from values to the number of the rule's finding."""
        rule = self.rule
        is_known = operation == "create" or not rule.lenient_to_existing or PARTITIONS_BEFORE in names

        def finding(values: tuple[Any, ...]) -> int:
            question = SyntheticQuestion(operation, dict(zip(names, values, strict=True)), rule)
            message = rule.judge(Facts(question.request, question.cluster))
            if message is None:
                return SILENT
            return self._number(message) if is_known and question.is_exact else UNKNOWN

        return finding

    def _number(self, message: str) -> int:
        number = self._numbers.get(message)
        if number is None:
            number = self._numbers[message] = len(self.findings)
            self.findings.append(Finding(self.rule.name, self.rule.action, message))
        return number


def _answer(ask: Callable[[tuple[Any, ...]], int], values: tuple[Any, ...]) -> int:
    """Ask, and leave a failure to the judge, which finds out what comes of it."""
    try:
        return ask(values)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
        return UNKNOWN


IsMeant = Callable[[tuple[Any, ...]], int]


def _scopes(rule: Rule) -> Iterator[tuple[tuple[str, ...], IsMeant]]:
    """Yield functions that say by the values of some columns whether the rule applies, SILENT if
    not.
    """
    if rule.principals is not None or rule.except_principals is not None:
        yield ("principal",), lambda values: not _is_of_others(rule, values[0])
    if rule.topics is not None or rule.except_topics is not None:
        yield ("name",), lambda values: not _is_other_topic(rule, values[0]) if values[0] else UNKNOWN
    if (callers := rule.callers) is not None:
        yield ("client_host", "client_id"), lambda values: callers(_facts_of_caller(*values))


def _is_of_others(rule: Rule, principal: str | None) -> bool:
    principal = _facts("principal", principal).principal
    return (rule.principals is not None and not rule.principals(principal)) or (
        rule.except_principals is not None and rule.except_principals(principal)
    )


def _is_other_topic(rule: Rule, topic: str) -> bool:
    """Whether a rule does not apply to a topic, whoever asks."""
    return (rule.topics is not None and not rule.topics(topic, _user)) or (
        rule.except_topics is not None and rule.except_topics(topic, _user)
    )


def _user() -> str | None:
    raise NeedsUserError


def _facts(name: str, value: Any) -> Facts:
    question = SyntheticQuestion("delete", {name: value})
    return Facts(question.request, question.cluster)


def _facts_of_caller(host: str, client_id: str | None) -> Facts:
    question = SyntheticQuestion("delete", {"client_host": host, "client_id": client_id})
    return Facts(question.request, question.cluster)
