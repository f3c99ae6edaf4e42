"""Which recorded requests certainly pass the rules of a candidate, found in columns of many events
at once.

Rule: nothing here judges by itself. Whether a rule objects to a request depends on a few values of
the request, and of its topic before, which the rule names (`Rule.reads`); the rule itself is asked
once for each different combination of them. A request is certain if no rule that may apply objects,
whatever other topics there are. Anything else is left to the judge, by the rules that may object:
values that no column has, a look at the cluster, an exception.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import REDACTED
from ...audit.replay import ALTERATIONS, CREATE_TOPIC, DELETE_RECORDS, DELETE_TOPIC
from ...policies.judging import Judge
from ...policies.rules.facts import Facts
from ...policies.rules.rule import Rule
from ...policies.rules.ruleset import RuleSet
from ...policies.rules.vocabulary import REASSIGN
from .encoded import Encoded, Flags, Numbers, flags, mention
from .questions import PARTITIONS_BEFORE, Question, inputs_of
from .verdicts import ALLOWED
from .watching import Watched

ALL = -1
"""The bits of all rules."""
LAST_BIT = 62
MOST_JUDGES = 1_000
MOST_KEPT = 100_000
"""Of the answers of a rule that are remembered from one lot of events to the next."""
OPERATIONS: Mapping[str, Sequence[str]] = {
    "create": (CREATE_TOPIC,),
    "alter": tuple(sorted(ALTERATIONS)),
    REASSIGN: tuple(sorted(ALTERATIONS)),
    "delete": (DELETE_TOPIC,),
    "delete_records": (DELETE_RECORDS,),
}
"""The operations of rules, and of events."""
ESCAPE = b"\\"
"""Any character may be escaped in JSON."""


class NeedsUserError(Exception):
    """A pattern asks for the name of the user."""


class Sifted(NamedTuple):
    """What columns tell of some events."""

    certain: Flags
    """Which are requests that policies are asked about, that the recorded policy allowed without a
    word, and that certainly pass all rules if the topic was as the event says.
    """
    doubts: Numbers
    """The rules that may object to each of them whatever the topic was, as bits."""


class Prefilter:
    """The rules of a candidate that has nothing but rules. It is asked for one lot of events after
    another.
    """

    def __init__(self, rules: RuleSet) -> None:
        self._whole = rules
        self._rules = [_Asked(rule) for rule in rules.rules if not rule.operations.isdisjoint(OPERATIONS)]
        reads = {name for rule in self._rules for name in rule.columns}
        self.columns = tuple(sorted(reads | ALWAYS))
        """The names of the columns that it needs, for `encoded.projection`."""
        self._judges: dict[int, Judge] = {}

    def sift(self, table: pa.Table) -> Sifted:
        encoded = Encoded(table)
        certain, doubts = np.zeros(table.num_rows, np.bool_), np.full(table.num_rows, ALL)
        for operation, rows in _by_operation(table, np.flatnonzero(_asked(table))):
            pass_all, may_object = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.int64)
            for number, rule in enumerate(self._rules):
                if operation in rule.operations and len(rows):
                    passes = rule.passes(encoded, rows, operation)
                    pass_all &= passes.now
                    may_object |= np.where(passes.always, 0, _bit(number))
            certain[rows], doubts[rows] = pass_all, may_object
        return Sifted(certain & _plain(table), doubts)

    def judge(self, doubts: int) -> Judge | None:
        """Return a judge by the rules that may object; None for that of all rules."""
        if doubts == ALL:
            return None
        if doubts not in self._judges:
            if len(self._judges) > MOST_JUDGES:
                self._judges.clear()
            some = [each.rule for number, each in enumerate(self._rules) if doubts & _bit(number)]
            self._judges[doubts] = Judge(rules=RuleSet(some, self._whole.hash, [self._whole.name]))
        return self._judges[doubts]


def _bit(number: int) -> int:
    """Return the bit of a rule; those behind the first ones share the last one."""
    return 1 << min(number, LAST_BIT)


def prefilter_of(watched: Watched) -> Prefilter | None:
    """Return the prefilter of a candidate; None if it has Python code, too."""
    rules = watched.rules
    return Prefilter(rules) if isinstance(rules, RuleSet) and not watched.has_code else None


ALWAYS = frozenset(
    {
        *("kind", "resource", "operation", "asked_ms", "internal", "reassignments", "decision", "findings", "event"),
        *("validate_only", "effect"),
    }
)
"""The columns that tell which events are looked at."""


def _asked(table: pa.Table) -> Flags:
    """Return which events are requests about topics that hide nothing."""
    is_asked = flags(pc.equal(table.column("kind"), "decision")) & flags(pc.equal(table.column("resource"), "topic"))
    is_asked &= flags(pc.is_valid(table.column("asked_ms")))
    line = table.column("event")
    return is_asked & ~mention(line, REDACTED.encode()) & ~mention(line, ESCAPE)


def _plain(table: pa.Table) -> Flags:
    """Return which requests were allowed without a word or not judged then, and did to their topics
    what they say.
    """
    decision = table.column("decision")
    is_silent = flags(pc.equal(decision, ALLOWED)) & flags(pc.equal(pc.list_value_length(table.column("findings")), 0))
    is_done = ~flags(table.column("validate_only")) & flags(pc.not_equal(table.column("effect"), "unknown"))
    return is_done & (is_silent | flags(pc.is_null(decision)))


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


class _Passes(NamedTuple):
    """Which requests a rule certainly does not object to."""

    now: Flags
    """If the topic was as the event says."""
    always: Flags
    """Whatever it was."""


class _Asked:
    """A rule that is asked."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.operations = rule.operations
        self._inputs = {each: inputs_of(rule, each) for each in OPERATIONS if each in rule.operations}
        self._scopes = list(_scopes(rule))
        self.columns = {
            *(name for inputs in self._inputs.values() for name in inputs or ()),
            *(name for names, _ in self._scopes for name in names),
        }
        self._known: dict[tuple[Any, ...], bool] = {}

    def passes(self, encoded: Encoded, rows: Numbers, operation: str) -> _Passes:
        """Look at requests, all of one operation."""
        passes = np.zeros(len(rows), np.bool_)
        for number, (names, is_spared) in enumerate(self._scopes):
            passes |= self._each(encoded, rows, names, is_spared, (number,))
        inputs = self._inputs[operation]
        if inputs is None or passes.all():
            return _Passes(passes, passes)
        left, spared = np.flatnonzero(~passes), passes.copy()
        passes[left] = self._each(encoded, rows[left], inputs, self._has_no_objection(inputs, operation), (operation,))
        return _Passes(passes, spared if PARTITIONS_BEFORE in inputs else passes)

    def _each(
        self,
        encoded: Encoded,
        rows: Numbers,
        names: Sequence[str],
        ask: Callable[[tuple[Any, ...]], bool],
        key: tuple[Any, ...],
    ) -> Flags:
        """Ask once for each different combination of values."""
        values, which = encoded.combinations(names, rows)
        known = self._known
        if len(known) > MOST_KEPT:
            known.clear()
        answers = []
        for each in values:
            answer = known.get((key, each))
            if answer is None:
                answer = known[key, each] = _answer(ask, each)
            answers.append(answer)
        found: Flags = np.array(answers, np.bool_)[which]
        return found

    def _has_no_objection(self, names: Sequence[str], operation: str) -> Callable[[tuple[Any, ...]], bool]:
        rule = self.rule

        def has_none(values: tuple[Any, ...]) -> bool:
            question = Question(operation, dict(zip(names, values, strict=True)), rule)
            return rule.judge(Facts(question.request, question.cluster)) is None

        return has_none


def _answer(ask: Callable[[tuple[Any, ...]], bool], values: tuple[Any, ...]) -> bool:
    """Ask, and take a failure for no: the judge finds out what comes of it."""
    try:
        return ask(values)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
        return False


Spares = Callable[[tuple[Any, ...]], bool]


def _scopes(rule: Rule) -> Iterator[tuple[tuple[str, ...], Spares]]:
    """Yield functions that tell by the values of some columns that the rule does not apply."""
    if rule.principals is not None or rule.except_principals is not None:
        yield ("principal",), lambda values: _is_of_others(rule, values[0])
    if rule.topics is not None or rule.except_topics is not None:
        yield ("name",), lambda values: _is_other_topic(rule, values[0])
    if (callers := rule.callers) is not None:
        yield ("client_host", "client_id"), lambda values: not callers(_facts_of_caller(*values))


def _is_of_others(rule: Rule, principal: str | None) -> bool:
    principal = _facts("principal", principal).principal
    return (rule.principals is not None and not rule.principals(principal)) or (
        rule.except_principals is not None and rule.except_principals(principal)
    )


def _is_other_topic(rule: Rule, topic: str) -> bool:
    """Whether a rule does not apply to a topic, whoever asks."""
    if not topic:
        return False
    return (rule.topics is not None and not rule.topics(topic, _user)) or (
        rule.except_topics is not None and rule.except_topics(topic, _user)
    )


def _user() -> str | None:
    raise NeedsUserError


def _facts(name: str, value: Any) -> Facts:
    question = Question("delete", {name: value})
    return Facts(question.request, question.cluster)


def _facts_of_caller(host: str, client_id: str | None) -> Facts:
    question = Question("delete", {"client_host": host, "client_id": client_id})
    return Facts(question.request, question.cluster)
