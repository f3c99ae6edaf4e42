"""The built-in rules: tables of a line or two, instead of an expression, for what people use most.

Rule: a built-in rule judges only what a request changes, so that a topic which is older than the
rule can still be altered in other ways.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from ...text import noun, plural
from ..interface import AdminRequest, TopicState
from ..topic_counts import Held, counts_of, total
from ..verdict import RuleAction
from . import possible
from .config_bounds import read_config_bounds
from .facts import Facts
from .matching import USER, Match, PatternFault, full_match, literal_prefix, pattern_match
from .rule import NameGuard, Rule, Scope, read_scope
from .tables import TomlTable
from .vocabulary import (
    ADMIN_OPERATIONS,
    CREATED,
    ELECT_LEADERS,
    ELECTION_TYPE,
    ELECTION_TYPES,
    NAME,
    PARTITIONS,
    PARTITIONS_BEFORE,
    PRINCIPAL,
    REASSIGN,
    REPLICAS,
    TIME,
    TOPIC,
    TOPIC_OPERATIONS,
)

CREATE_OR_ALTER = ("create", "alter")
WORDS: Mapping[str, str] = {
    "create_acls": "create ACLs of {}",
    "delete_acls": "delete ACLs of {}",
    "alter_user_scram_credentials": "change the credentials of user {}",
    "alter_client_quotas": "change the quotas of {}",
    "create_delegation_token": "create a delegation token",
    "renew_delegation_token": "renew a delegation token",
    "expire_delegation_token": "expire a delegation token",
    "delete_groups": "delete group {}",
    "offset_commit": "set offsets of group {}",
    "offset_delete": "delete offsets of group {}",
    "elect_leaders": "elect leaders of {}",
    "alter_replica_log_dirs": "move replicas of {} to other directories",
    "alter_group_configs": "change the configs of group {}",
    "alter_client_metrics": "change the client metrics {}",
}
"""The operations in words, with the place of the resource."""
MAX_NAME = 250
"""The longest name of a resource in a message, in characters."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS = re.compile(r"(\d{2}):(\d{2})-(\d{2}):(\d{2})", re.ASCII)
DAY_MINUTES = 24 * 60

Window = tuple[int, int]
"""Begin and end in minutes of the day, the end excluded. If the end is smaller, it is on the next
day.
"""


def read_name_pattern(table: TomlTable, name: str) -> Rule:
    scope = read_scope(table, name, ("create",))
    pattern = table.text("pattern")
    speaks_of_user = pattern is not None and USER in pattern
    matches: Match = lambda _name: True  # noqa: E731 - a file with a bad pattern is not used
    if pattern is not None:
        fault = possible.placeholder(pattern) or possible.topic_regex(pattern)
        try:
            matches = full_match(pattern, "user" if speaks_of_user else None)
        except PatternFault as bad:
            fault = str(bad)
        if fault is not None:
            table.note(f"pattern {fault}", "pattern")
    elif not table.has("pattern"):
        table.note("pattern is missing")
    table.finish()

    def is_own(facts: Facts) -> bool:
        user = facts.user()
        return user is not None and pattern is not None and full_match(pattern, user)(facts.topic)

    def judge(facts: Facts) -> str | None:
        if is_own(facts) if speaks_of_user else matches(facts.topic):
            return None
        return scope.message or f"The name {facts.topic} does not match {pattern}."

    guards = speaks_of_user and scope.action is RuleAction.DENY
    return msgspec.structs.replace(
        scope.rule(judge, {TOPIC, PRINCIPAL} if speaks_of_user else {TOPIC}),
        guards_names=NameGuard.ALL_BUT_ONES_OWN if guards else NameGuard.NOTHING,
    )


def read_partitions(table: TomlTable, name: str) -> Rule:
    rule = _limits(table, name, "partition", CREATE_OR_ALTER, _partition_counts, reads=PARTITIONS)
    return msgspec.structs.replace(rule, reads_of_existing=frozenset({PARTITIONS_BEFORE}))


def read_replication(table: TomlTable, name: str) -> Rule:
    return _limits(table, name, "replica", (*CREATE_OR_ALTER, REASSIGN), _replica_counts, reads=REPLICAS)


def _partition_counts(facts: Facts, after: TopicState) -> Iterator[int]:
    before = facts.before
    if before is None or before.num_partitions != after.num_partitions or facts.may_grow_unseen:
        yield after.num_partitions


def _replica_counts(facts: Facts, after: TopicState) -> Iterator[int]:
    """Yield the distinct numbers of replicas of new and reassigned partitions. A cancelled
    reassignment brings back what was there before.
    """
    known: Mapping[int, Sequence[int]] = {} if facts.before is None else facts.before.replica_assignments
    counts = {
        len(row)
        for index, row in after.replica_assignments.items()
        if index not in known
        or (index not in facts.cancelled and (tuple(known[index]) != tuple(row) or facts.may_move_unseen(index)))
    }
    yield from sorted(counts)


def _limits(
    table: TomlTable,
    name: str,
    what: str,
    operations: Sequence[str],
    counts: Callable[[Facts, TopicState], Iterator[int]],
    *,
    reads: tuple[str, str],
) -> Rule:
    scope = read_scope(table, name, operations)
    least, most = table.count("min", 1), table.count("max", 1)
    if not (table.has("min") or table.has("max")):
        table.note("neither min nor max is given")
    if least is not None and most is not None and least > most:
        table.note(f"min {least} is more than max {most}, so that nothing is ever allowed", "min")
    table.finish()

    def judge(facts: Facts) -> str | None:
        if facts.after is None:
            return None
        for count in counts(facts, facts.after):
            if least is not None and count < least:
                return scope.message or f"{_are(count, what)} fewer than {least}."
            if most is not None and count > most:
                return scope.message or f"{_are(count, what)} more than {most}."
        return None

    return msgspec.structs.replace(scope.rule(judge, {reads}), lenient_to_existing=True)


def _are(count: int, what: str) -> str:
    return f"{plural(count, what)} {noun(count, 'is', 'are')}"


# ------------------------------------------------------------------ who, how many, when


def read_protected_topics(table: TomlTable, name: str) -> Rule:
    scope = read_scope(table, name, TOPIC_OPERATIONS)
    if not table.has("topics"):
        table.note("topics is missing: the topics that are protected")
    table.finish()

    def judge(facts: Facts) -> str | None:
        return scope.message or f"{facts.topic} is protected: {facts.principal} may not {_verb(facts)} it."

    guards = scope.action is RuleAction.DENY and "create" in scope.operations
    return msgspec.structs.replace(
        scope.rule(judge, {TOPIC, PRINCIPAL}), guards_names=NameGuard.SOME_NAMES if guards else NameGuard.NOTHING
    )


def _verb(facts: Facts) -> str:
    return {"delete_records": "delete records of"}.get(facts.operation, facts.operation)


def read_quota(table: TomlTable, name: str) -> Rule:
    """Read a `[[quota]]`: how many topics and partitions a principal may own. A principal owns the
    topics whose names match `owned`, because nobody records who created a topic.
    """
    scope = read_scope(table, name, CREATE_OR_ALTER)
    owned, most_topics, most_partitions = table.text("owned"), table.count("max_topics"), table.count("max_partitions")
    if owned is None and not table.has("owned"):
        table.note(f"owned is missing: the names of the topics that count, such as {USER}.*")
    if not (table.has("max_topics") or table.has("max_partitions")):
        table.note("neither max_topics nor max_partitions is given")
    if owned is not None:
        fault = possible.topic_pattern(owned)
        try:
            pattern_match(owned, "user")
        except PatternFault as bad:
            fault = str(bad)
        if fault is not None:
            table.note(f"owned {fault}", "owned")
    table.finish()

    def judge(facts: Facts) -> str | None:
        assert owned is not None
        return _over_quota(scope, facts, owned, most_topics, most_partitions)

    rule = scope.rule(judge, {TOPIC, PRINCIPAL, PARTITIONS})
    return msgspec.structs.replace(
        rule, owned=owned, lenient_to_existing=True, reads_of_existing=frozenset({PARTITIONS_BEFORE})
    )


def _over_quota(
    scope: Scope, facts: Facts, owned: str, most_topics: int | None, most_partitions: int | None
) -> str | None:
    after, before = facts.after, facts.before
    if after is None:
        return None
    if before is not None and after.num_partitions <= before.num_partitions and not facts.may_grow_unseen:
        return None
    user = facts.user() if USER in owned else None
    if user is None and USER in owned:
        return None  # a client without a name owns nothing
    match = pattern_match(owned, user)
    if not match(facts.topic):
        return None
    others = _held_by_others(facts, match, literal_prefix(owned, user))
    if most_topics is not None and before is None and others.topics + 1 > most_topics:
        return scope.message or f"{facts.principal} has {others.topics} of {plural(most_topics, 'topic')} already."
    partitions = others.partitions + after.num_partitions
    if most_partitions is not None and partitions > most_partitions:
        return (
            scope.message
            or f"{facts.principal} would have {plural(partitions, 'partition')}, but may have {most_partitions}."
        )
    return None


def _held_by_others(facts: Facts, match: Match, beginning: tuple[str, bool]) -> Held:
    """Count what a principal owns besides the topic of the request: by the counts of the cluster if
    it keeps any, otherwise by looking at all topics.
    """
    cluster, own = facts.cluster, facts.topic
    counts = counts_of(cluster)
    if counts is None:
        states = (cluster.topic_state(name) for name in cluster.topics() if name != own and match(name))
        return total(state.num_partitions for state in states if state is not None)
    prefix, takes_all = beginning
    if not takes_all:
        return total(held for name, held in counts.beginning(prefix) if name != own and match(name))
    held, mine = counts.held(prefix), counts.partitions(own)
    return held if mine is None else Held(held.topics - 1, held.partitions - mine)


def read_deletion_age(table: TomlTable, name: str) -> Rule:
    """Read a `[[deletion_age]]`: how old a topic must be, or may be, to be deleted."""
    scope = read_scope(table, name, ("delete",))
    least, most = table.duration_ms("min"), table.duration_ms("max")
    if not (table.has("min") or table.has("max")):
        table.note("neither min nor max is given")
    if least is not None and most is not None and least > most:
        table.note("min is more than max, so that nothing is ever allowed", "min")
    table.finish()

    def judge(facts: Facts) -> str | None:
        age = _age_ms(facts)
        if least is not None and age < least:
            return (
                scope.message
                or f"{facts.topic} is too young to be deleted: {age // 1000} s old; minimum {least // 1000} s."
            )
        if most is not None and age > most:
            return (
                scope.message
                or f"{facts.topic} is too old to be deleted: {age // 1000} s old; maximum {most // 1000} s."
            )
        return None

    return scope.rule(judge, {TOPIC, CREATED, TIME})


class UnknownAgeError(Exception):
    """The request does not have the time of the topic's creation, or its own time."""


def _age_ms(facts: Facts) -> int:
    if facts.created_ms is None or facts.request.time_ms is None:
        raise UnknownAgeError("the age of the topic is not known")
    return facts.request.time_ms - facts.created_ms


def read_protected_operations(table: TomlTable, name: str) -> Rule:
    scope = read_scope(table, name, ADMIN_OPERATIONS, ADMIN_OPERATIONS)
    if not table.has("operations"):
        table.note("operations is missing: the operations that are protected")
    elections = table.choices("election_types", ELECTION_TYPES)
    if elections is not None and ELECT_LEADERS not in scope.operations:
        table.note(f"election_types is about {ELECT_LEADERS}, which operations does not name", "election_types")
    table.finish()

    def judge(facts: Facts) -> str | None:
        request = facts.request
        assert isinstance(request, AdminRequest)
        elects = request.election_type
        if elects is not None and elections is not None and elects not in elections:
            return None
        words = WORDS[facts.operation] if elects is None else f"elect {elects} leaders of {{}}"
        return scope.message or f"{facts.principal} may not {words.format(request.name[:MAX_NAME])}."

    return scope.rule(judge, {PRINCIPAL, NAME, ELECTION_TYPE})


def read_change_window(table: TomlTable, name: str) -> Rule:
    """Read a `[[change_window]]`. A window that passes midnight belongs to the day on which it
    opens.
    """
    scope = read_scope(table, name)
    days = _days(table)
    windows = [_window(table, text, index) for index, text in enumerate(table.texts("hours") or ("00:00-24:00",))]
    zone = _zone(table)
    if not (table.has("days") or table.has("hours")):
        table.note("neither days nor hours is given")
    table.finish()

    def judge(facts: Facts) -> str | None:
        now = facts.time.astimezone(zone)
        if any(is_open(now, days, window) for window in windows if window is not None):
            return None
        return scope.message or f"{now:%a %H:%M} {zone.key} is outside of the change window."

    return scope.rule(judge, {TIME})


def is_open(now: datetime, days: frozenset[str], window: Window) -> bool:
    begin, end = window
    minute = now.hour * 60 + now.minute
    today, yesterday = DAYS[now.weekday()], DAYS[(now - timedelta(days=1)).weekday()]
    if begin < end:
        return today in days and begin <= minute < end
    return (today in days and minute >= begin) or (yesterday in days and minute < end)


def _days(table: TomlTable) -> frozenset[str]:
    chosen: set[str] = set()
    for index, text in enumerate(table.texts("days") or DAYS):
        first, dash, last = text.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            table.note(
                f"days has {text!r}, but takes {', '.join(DAYS)} and ranges such as mon-fri", *table.at("days", index)
            )
            continue
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        chosen.update(DAYS[begin : end + 1] if begin <= end else DAYS[begin:] + DAYS[: end + 1])
    return frozenset(chosen)


def _window(table: TomlTable, text: str, index: int) -> Window | None:
    found = HOURS.fullmatch(text)
    times: Sequence[int] = [] if found is None else [int(part) for part in found.groups()]
    if not times or times[1] > 59 or times[3] > 59 or times[0] > 23 or times[2] * 60 + times[3] > DAY_MINUTES:
        table.note(f"hours has {text!r}, but takes times such as 09:00-17:00", *table.at("hours", index))
        return None
    window = times[0] * 60 + times[1], times[2] * 60 + times[3]
    if window[0] == window[1]:
        table.note(f"hours has {text!r}, a window that is never open", *table.at("hours", index))
    return window


def _zone(table: TomlTable) -> ZoneInfo:
    name = table.text("timezone") or "UTC"
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError; a folder of zones is an OSError
        table.note(f"timezone {name!r} is unknown; it is one of the tz database, such as Europe/Berlin", "timezone")
        return ZoneInfo("UTC")


BUILT_IN: Mapping[str, Callable[[TomlTable, str], Rule]] = {
    "name_pattern": read_name_pattern,
    "partitions": read_partitions,
    "replication": read_replication,
    "config_bounds": read_config_bounds,
    "protected_topics": read_protected_topics,
    "protected_operations": read_protected_operations,
    "quota": read_quota,
    "deletion_age": read_deletion_age,
    "change_window": read_change_window,
}
