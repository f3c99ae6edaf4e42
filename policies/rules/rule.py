"""A rule: the requests that it applies to, its objection to a request, and its action."""

from collections.abc import Callable, Sequence
from enum import Enum

import msgspec

from ..verdict import Finding, RuleAction
from .facts import Facts
from .matching import USER, Match, MatchOfUser
from .tables import TomlTable
from .vocabulary import INCLUDED, OPERATIONS, TOPIC_OPERATIONS

TOPICS = frozenset(TOPIC_OPERATIONS)
TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*?")

Judge = Callable[[Facts], str | None]
"""Returns the objection to a request, as a message for the client, or None. An exception denies."""

COULD_NOT = "The rule {} could not be evaluated on this request, which is therefore refused."


class NameGuard(Enum):
    """The new names that a rule denies, which matters for quotas."""

    NOTHING = 0
    SOME_NAMES = 1
    """Some names are only for some principals."""
    ALL_BUT_ONES_OWN = 2
    """All names are denied but those that contain the name of the user who creates them."""


class Rule(msgspec.Struct, frozen=True):
    """A rule of a rule file."""

    name: str
    action: RuleAction
    operations: frozenset[str]
    judge: Judge
    topics: MatchOfUser | None = None
    except_topics: MatchOfUser | None = None
    principals: Match | None = None
    except_principals: Match | None = None
    reads: frozenset[tuple[str, str]] = frozenset()
    """The pairs (variable, field) that the rule's expressions read."""
    spares_kafkas_own: bool = False
    """Whether the rule allows internal topics that the cluster creates for itself. It still applies
    to clients that name such a topic.
    """
    knows_defaults: bool = False
    """Whether the rule itself finds the topics that a change of a broker's configs concerns."""
    owned: str | None = None
    """For a quota: the pattern of the names that count."""
    guards_names: NameGuard = NameGuard.NOTHING
    """The new names that the rule denies."""

    def finding(self, facts: Facts) -> Finding | None:
        """Return the rule's objection to the request; None if it has none."""
        if self.spares_kafkas_own and facts.is_kafkas_own:
            return None
        try:
            message = self.judge(facts) if self._is_about(facts) else None
        except Exception as error:  # noqa: BLE001 - an expression may fail in any way, and each of them denies
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return Finding(self.name, RuleAction.DENY, COULD_NOT.format(self.name), reason)
        return None if message is None else Finding(self.name, self.action, message)

    def _is_about(self, facts: Facts) -> bool:
        """Whether the rule applies to the request. Principals are compared first, because the name
        of a topic does not matter for one that the rule excepts.
        """
        topic, principal = facts.topic, facts.principal
        if (self.principals is not None and not self.principals(principal)) or (
            self.except_principals is not None and self.except_principals(principal)
        ):
            return False
        if not topic:
            return self.topics is None or self.knows_defaults
        return not (
            (self.topics is not None and not self.topics(topic, facts.user))
            or (self.except_topics is not None and self.except_topics(topic, facts.user))
        )


class Scope(msgspec.Struct, frozen=True):
    """The keys that all kinds of rules have, which say when a rule applies and what it does."""

    name: str
    action: RuleAction
    operations: frozenset[str]
    topics: MatchOfUser | None
    except_topics: MatchOfUser | None
    principals: Match | None
    except_principals: Match | None
    message: str | None

    def has_topic(self, name: str, facts: Facts) -> bool:
        """Whether the rule applies to this topic, whichever topic the request names."""
        return (self.topics is None or self.topics(name, facts.user)) and not (
            self.except_topics is not None and self.except_topics(name, facts.user)
        )

    def rule(self, judge: Judge, reads: frozenset[tuple[str, str]] = frozenset()) -> Rule:
        return Rule(
            self.name, self.action, self.operations, judge,
            self.topics, self.except_topics, self.principals, self.except_principals, reads,
        )  # fmt: skip


def read_scope(
    table: TomlTable,
    default_name: str | None,
    operations: Sequence[str] = OPERATIONS,
    meant: Sequence[str] = TOPIC_OPERATIONS,
    *,
    sees_defaults: bool = False,
) -> Scope:
    """Read the scope of a rule. Its kind can judge `operations`, and judges those in `meant` if the
    rule names none. `sees_defaults` says that a rule with topics judges changes of brokers, too.
    """
    name = table.text("name") or default_name
    if name is None and not table.has("name"):
        table.note("the rule has no name")
    chosen = table.choices("operations", OPERATIONS)
    judged = operations if sees_defaults or not table.has("topics") else [each for each in operations if each in TOPICS]
    for index, operation in enumerate(chosen or ()):
        if operation in OPERATIONS and operation not in judged:
            table.note(_never(operation, operations), *table.at("operations", index))
    actions = table.choices("action", [action.value for action in RuleAction]) or ("deny",)
    if len(actions) > 1:
        table.note("action is a list, but must be one of deny, warn, audit", "action")
    valid = actions[0] in {action.value for action in RuleAction}
    return Scope(
        name or "",
        RuleAction(actions[0]) if valid else RuleAction.DENY,
        frozenset(operations).intersection(meant if chosen is None else _with_included(chosen)),
        table.patterns_of_user("topics", impossible_topic),
        table.patterns_of_user("except_topics", impossible_topic),
        table.patterns("principals", impossible_principal),
        table.patterns("except_principals", impossible_principal),
        table.text("message"),
    )


def _never(operation: str, operations: Sequence[str]) -> str:
    """Return the mistake that a rule names an operation which it can never judge."""
    if operation in operations:
        return f"operations names {operation!r}, which concerns no topic, but the rule is only about some topics"
    kinds = ", ".join(operations)
    return f"operations names {operation!r}, which this kind of rule never judges; it judges {kinds}"


def _with_included(chosen: Sequence[str]) -> frozenset[str]:
    return frozenset(chosen).union(*(INCLUDED.get(operation, ()) for operation in chosen))


def impossible_topic(pattern: str) -> str | None:
    if pattern.startswith("/") and pattern.endswith("/") and len(pattern) > 1:
        return None
    strange = next((character for character in pattern.replace(USER, "") if character not in TOPIC_CHARACTERS), None)
    return None if strange is None else f"can match no topic: no name has {strange!r} in it"


def impossible_principal(pattern: str) -> str | None:
    if ":" in pattern or "*" in pattern or pattern.startswith("/"):
        return None
    return f"can match no principal: write it with its type, as User:{pattern}"
