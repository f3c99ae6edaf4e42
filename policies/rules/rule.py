"""A rule: the requests that it applies to, its objection to a request, and its action."""

from collections.abc import Callable, Collection, Sequence
from enum import Enum

import msgspec

from ..verdict import Finding, RuleAction
from . import possible
from .facts import Facts
from .matching import Match, MatchOfUser
from .tables import TomlTable
from .vocabulary import ADMIN, GROUPS, INCLUDED, OPERATIONS, TOPIC_OPERATIONS, TOPICS

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
    name: str
    action: RuleAction
    operations: frozenset[str]
    judge: Judge
    topics: MatchOfUser | None = None
    except_topics: MatchOfUser | None = None
    principals: Match | None = None
    except_principals: Match | None = None
    callers: Callable[[Facts], bool] | None = None
    """Whether the rule is about the host and the client id of the caller; None if about all."""
    resources: MatchOfUser | None = None
    except_resources: MatchOfUser | None = None
    reads: frozenset[tuple[str, str]] = frozenset()
    """The pairs (variable, field) on which it depends whether, and in which words, the rule objects
    to a request that it applies to. Of a rule that is `lenient_to_existing` they are those for a
    new topic.
    """
    lenient_to_existing: bool = False
    """Whether the rule looks at a topic before a request, and at other topics, only to object to
    less than it would object to for a new topic, or by an exception where it cannot look at them.
    """
    reads_of_existing: frozenset[tuple[str, str]] | None = None
    """Of a rule that is `lenient_to_existing`: the pairs that it reads besides `reads` if the topic
    exists; None if it reads more than pairs.
    """
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
        if self.callers is not None and not self.callers(facts):
            return False
        if not topic:
            return self.has_resource(facts) and (self.topics is None or self.knows_defaults)
        return not (
            (self.topics is not None and not self.topics(topic, facts.user))
            or (self.except_topics is not None and self.except_topics(topic, facts.user))
        )

    def has_resource(self, facts: Facts) -> bool:
        """Whether the rule applies to what the request changes, if that is no topic."""
        wanted, excepted = self.resources, self.except_resources
        if wanted is None and excepted is None:
            return True
        name = getattr(facts.request, "name", "")
        return (wanted is None or wanted(name, facts.user)) and not (
            excepted is not None and excepted(name, facts.user)
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
    callers: Callable[[Facts], bool] | None
    resources: MatchOfUser | None
    except_resources: MatchOfUser | None
    message: str | None

    def has_topic(self, name: str, facts: Facts) -> bool:
        """Whether the rule applies to this topic, whichever topic the request names."""
        return (self.topics is None or self.topics(name, facts.user)) and not (
            self.except_topics is not None and self.except_topics(name, facts.user)
        )

    def rule(self, judge: Judge, reads: Collection[tuple[str, str]]) -> Rule:
        return Rule(
            self.name, self.action, self.operations, judge,
            self.topics, self.except_topics, self.principals, self.except_principals,
            self.callers, self.resources, self.except_resources, frozenset(reads),
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
    chosen = table.choices("operations", (*OPERATIONS, *GROUPS))
    judged = operations if sees_defaults or not table.has("topics") else [each for each in operations if each in TOPICS]
    for index, named in enumerate(chosen or ()):
        never = next((each for each in GROUPS.get(named, (named,)) if each in OPERATIONS and each not in judged), None)
        if never is not None:
            table.note(_never(named, never, operations), *table.at("operations", index))
    actions = table.choices("action", [action.value for action in RuleAction]) or ("deny",)
    if len(actions) > 1:
        table.note("action is a list, but must be one of deny, warn, audit", "action")
    valid = actions[0] in {action.value for action in RuleAction}
    scope = frozenset(operations).intersection(meant if chosen is None else _with_included(chosen))
    for key in ("resources", "except_resources"):
        if table.has(key) and not scope <= ADMIN:
            table.note(_no_resource(key, sorted(scope - ADMIN)), key)
    _check_exceptions(table)
    return Scope(
        name or "",
        RuleAction(actions[0]) if valid else RuleAction.DENY,
        scope,
        table.patterns_of_user("topics", possible.topic_pattern),
        table.patterns_of_user("except_topics", possible.topic_pattern),
        table.patterns("principals", possible.principal_pattern),
        table.patterns("except_principals", possible.principal_pattern),
        _callers(table),
        table.patterns_of_user("resources", possible.resource_pattern(scope)),
        table.patterns_of_user("except_resources", possible.resource_pattern(scope)),
        _message(table),
    )


def _message(table: TomlTable) -> str | None:
    message = table.text("message")
    fault = None if message is None else possible.placeholder(message, ())
    if fault is not None:
        table.note(f"message {fault}: message_expression can name what a request has", "message")
    return message


def _check_exceptions(table: TomlTable) -> None:
    """Note exceptions that leave nothing of what the rule is about."""
    for key in ("topics", "principals", "hosts", "client_ids", "resources"):
        named, excepted = table.raw(key), table.raw(f"except_{key}")
        named, excepted = ([each] if isinstance(each, str) else each for each in (named, excepted))
        if not isinstance(excepted, list):
            continue
        if "*" in excepted or (isinstance(named, list) and named and all(each in excepted for each in named)):
            table.note(f"except_{key} leaves nothing that the rule could be about", f"except_{key}")


def _never(named: str, never: str, operations: Sequence[str]) -> str:
    """Return the mistake that a rule names an operation, or a group of them, which it can never
    judge.
    """
    if never in operations:
        why = "is matched by resources" if never in ADMIN else "concerns no topic"
        return f"operations names {named!r}, which {why}, but the rule is only about some topics"
    kinds = ", ".join(operations)
    return f"operations names {named!r}, which this kind of rule never judges; it judges {kinds}"


def _no_resource(key: str, judged: Sequence[str]) -> str:
    return (
        f"{key} is about {', '.join(GROUPS)} and the operations in them, but the rule judges {', '.join(judged)}: "
        "narrow operations, or name topics"
    )


def _with_included(chosen: Sequence[str]) -> frozenset[str]:
    named = frozenset(operation for each in chosen for operation in GROUPS.get(each, (each,)))
    return named.union(*(INCLUDED.get(operation, ()) for operation in named))


def _callers(table: TomlTable) -> Callable[[Facts], bool] | None:
    """Read the hosts and client ids of a rule, and return whether it is about a caller; None if it
    is about all. A client without an id has an empty one.
    """
    hosts, except_hosts = (table.patterns(key, possible.host_pattern) for key in ("hosts", "except_hosts"))
    ids, except_ids = (table.patterns(key, lambda _pattern: None) for key in ("client_ids", "except_client_ids"))
    if hosts is None and except_hosts is None and ids is None and except_ids is None:
        return None

    def are_meant(facts: Facts) -> bool:
        host, client_id = facts.request.client_host, facts.request.client_id or ""
        return not (
            (hosts is not None and not hosts(host))
            or (except_hosts is not None and except_hosts(host))
            or (ids is not None and not ids(client_id))
            or (except_ids is not None and except_ids(client_id))
        )

    return are_meant
