"""Rules decide as a reference in plain Python decides, on requests and rules made by chance."""

import re
from collections.abc import Callable, Mapping

import msgspec
from hypothesis import given, reject
from hypothesis import strategies as st

from minicontroller.audit.replayed_topics import ReplayedCluster, ReplayedTopics, SeenStates
from minicontroller.policies import AlterTopicRequest, CreateTopicRequest, TopicState
from minicontroller.policies.rules.matching import PatternFault, literal_prefix, pattern_match
from minicontroller.policies.rules.mistakes import RuleFileError
from minicontroller.policies.states import ClusterSnapshot, requested_state, topic_state
from minicontroller.policies.verdict import RuleAction
from tests.audit.logs import a_state
from tests.policies.asking import cluster
from tests.rules.reading import condition, rules

Change = CreateTopicRequest | AlterTopicRequest

NAMES = ("sales.orders", "sales.x", "ops.audit", "x")
CONFIGS = ("retention.ms", "cleanup.policy")
PRINCIPALS = (None, "User:sales", "User:ops")

texts = st.sampled_from(["", "sales", ".", "User:", "orders", "1000", "x"])
configs = st.dictionaries(st.sampled_from(CONFIGS), st.sampled_from(["0", "-1", "1000", "86400000", "delete"]))
replicas = st.integers(1, 5).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(1, 4), min_size=1, max_size=4, unique=True), min_size=count, max_size=count
    )
)
states = st.builds(topic_state, replicas, configs)
clusters = st.dictionaries(st.sampled_from(NAMES), states).map(cluster)


@st.composite
def requests(draw: st.DrawFn) -> Change:
    kind = draw(st.sampled_from([CreateTopicRequest, AlterTopicRequest]))
    state = requested_state(draw(replicas), draw(configs))
    made: Change = kind(
        topic=draw(st.sampled_from(NAMES)), principal=draw(st.sampled_from(PRINCIPALS)), requested_state=state
    )
    return made


# ------------------------------------------------------------------ expressions


class EvaluationError(Exception):
    """The engine could not evaluate an expression."""


class Meaning(msgspec.Struct, frozen=True):
    """An expression, as text and as a function of the request and the state before."""

    text: str
    value: Callable[[Change, TopicState | None], object]


def attempt(meaning: Meaning, request: Change, before: TopicState | None) -> object:
    """Return its value, or None if it cannot be evaluated."""
    try:
        return meaning.value(request, before)
    except (EvaluationError, KeyError, AttributeError, ZeroDivisionError, ValueError):
        return None


def config_of(key: str, configs: Mapping[str, str]) -> str:
    return configs[key]


def both(operator: str, one: Meaning, other: Meaning) -> Meaning:
    """CEL's `&&` and `||`: what decides alone covers an error of the other side."""
    decisive = operator == "||"

    def value(request: Change, before: TopicState | None) -> bool:
        found = [attempt(part, request, before) for part in (one, other)]
        if decisive in found:
            return decisive
        if None in found:
            raise EvaluationError
        return not decisive

    return Meaning(f"({one.text} {operator} {other.text})", value)


def compared(operator: str, one: Meaning, other: Meaning) -> Meaning:
    compare: Mapping[str, Callable[[object, object], bool]] = {
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,  # type: ignore[operator]
        ">=": lambda a, b: a >= b,  # type: ignore[operator]
    }
    return Meaning(
        f"{one.text} {operator} {other.text}",
        lambda request, before: compare[operator](one.value(request, before), other.value(request, before)),
    )


def add(operator: str, one: Meaning, other: Meaning) -> Meaning:
    def value(request: Change, before: TopicState | None) -> int:
        left, right = one.value(request, before), other.value(request, before)
        assert isinstance(left, int) and isinstance(right, int)
        if operator == "/":
            return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return {"+": left + right, "-": left - right, "*": left * right}[operator]

    return Meaning(f"({one.text} {operator} {other.text})", value)


def literal(text: str) -> Meaning:
    return Meaning(f'"{text}"', lambda _request, _before: text)


whole = st.one_of(
    st.integers(-3, 9).map(lambda n: Meaning(f"({n})", lambda _request, _before: n)),
    st.just(Meaning("after.num_partitions", lambda request, _: request.requested_state.num_partitions)),
    st.just(Meaning("after.replication_factor", lambda request, _: request.requested_state.replication_factor)),
    st.just(Meaning("size(after.configs)", lambda request, _: len(request.requested_state.configs))),
    st.just(Meaning("before.num_partitions", lambda _, before: before.num_partitions)),  # type: ignore[union-attr]
    st.sampled_from(CONFIGS).map(
        lambda key: Meaning(
            f'int(after.configs["{key}"])', lambda request, _: int(request.requested_state.configs[key])
        )
    ),
)
numbers = st.one_of(whole, st.builds(add, st.sampled_from("+-*/"), whole, whole))
strings = st.one_of(
    texts.map(literal),
    st.just(Meaning("request.topic", lambda request, _: request.topic)),
    st.just(Meaning("principal", lambda request, _: request.principal)),
    st.sampled_from(CONFIGS).map(
        lambda key: Meaning(
            f'after.configs["{key}"]', lambda request, _: config_of(key, request.requested_state.configs)
        )
    ),
)


def searched(method: str, one: Meaning, other: Meaning) -> Meaning:
    test: Mapping[str, Callable[[str, str], bool]] = {
        "startsWith": str.startswith,
        "endsWith": str.endswith,
        "contains": str.__contains__,
    }
    return Meaning(
        f"{one.text}.{method}({other.text})",
        lambda request, before: test[method](
            a_string(one.value(request, before)), a_string(other.value(request, before))
        ),
    )


def a_string(value: object) -> str:
    """Return a string; anything else, null too, is an error of the evaluation."""
    if not isinstance(value, str):
        raise EvaluationError
    return value


def every_row(macro: str, least: int) -> Meaning:
    judge: Callable[..., bool] = {"all": all, "exists": any}[macro]
    return Meaning(
        f"after.replica_assignments.{macro}(row, size(row) >= {least} && row.{macro}(id, id < {least + 1}))",
        lambda request, _: judge(
            len(row) >= least and judge(broker < least + 1 for broker in row)
            for row in request.requested_state.replica_assignments.values()
        ),
    )


simple = st.one_of(
    st.builds(compared, st.sampled_from(["==", "!=", "<", ">="]), numbers, numbers),
    st.builds(compared, st.sampled_from(["==", "!="]), strings, strings),
    st.builds(searched, st.sampled_from(["startsWith", "endsWith", "contains"]), strings, texts.map(literal)),
    st.builds(every_row, st.sampled_from(["all", "exists"]), st.integers(0, 4)),
    st.sampled_from(CONFIGS).map(
        lambda key: Meaning(f'"{key}" in after.configs', lambda request, _: key in request.requested_state.configs)
    ),
    st.just(Meaning("before == null", lambda _, before: before is None)),
)


def negated(meaning: Meaning) -> Meaning:
    return Meaning(f"!({meaning.text})", lambda request, before: not meaning.value(request, before))


conditions = st.recursive(
    simple,
    lambda inner: st.one_of(st.builds(both, st.sampled_from(["&&", "||"]), inner, inner), inner.map(negated)),
    max_leaves=6,
)
KNOWS_NULL = "(before == null || true) && "


@given(conditions, requests(), clusters)
def test_a_condition_means_what_it_says(meaning: Meaning, request: Change, of: ClusterSnapshot) -> None:
    """A condition that holds has nothing against the request; one that does not is a finding; one
    that fails denies.
    """
    before = of.topic_state(request.topic) if isinstance(request, AlterTopicRequest) else None
    wanted = attempt(meaning, request, before)
    try:
        read = rules(condition(KNOWS_NULL + f"({meaning.text})", more="action = 'warn'"))
    except RuleFileError as mistake:  # of what no request can ever meet, which tests/rules/test_plausible.py is about
        if not re.search("names|compares|converts", str(mistake)):
            raise
        reject()
    [*found] = read.judge(request, of)
    if wanted is True:
        assert found == []
    else:
        assert [(finding.action, finding.error is not None) for finding in found] == [
            (RuleAction.WARN, False) if wanted is False else (RuleAction.DENY, True)
        ]


# ------------------------------------------------------------------ built-in rules

bounds = st.tuples(st.integers(1, 4), st.integers(1, 4)).map(sorted)


def said_no(text: str, request: Change, of: ClusterSnapshot) -> bool:
    return bool(rules(text).judge(request, of))


def before_of(request: Change, of: ClusterSnapshot) -> TopicState | None:
    return None if isinstance(request, CreateTopicRequest) else of.topic_state(request.topic)


@given(bounds, requests(), clusters)
def test_partition_limits(limits: list[int], request: Change, of: ClusterSnapshot) -> None:
    """A number of partitions that is new to the topic is within the limits."""
    least, most = limits
    before, count = before_of(request, of), request.requested_state.num_partitions
    wanted = (before is None or before.num_partitions != count) and not least <= count <= most
    assert said_no(f"[[partitions]]\nmin = {least}\nmax = {most}", request, of) is wanted


@given(bounds, requests(), clusters)
def test_replication_limits(limits: list[int], request: Change, of: ClusterSnapshot) -> None:
    """Each partition that is new or moved has so many replicas."""
    least, most = limits
    before = before_of(request, of)
    rows = [] if before is None else list(before.replica_assignments.values())
    moved = [
        row
        for index, row in request.requested_state.replica_assignments.items()
        if index >= len(rows) or tuple(rows[index]) != tuple(row)
    ]
    wanted = any(not least <= len(row) <= most for row in moved)
    assert said_no(f"[[replication]]\nmin = {least}\nmax = {most}", request, of) is wanted


@given(st.sampled_from([-1, 0, 1000]), st.booleans(), requests(), clusters)
def test_config_bounds(most: int, required: bool, request: Change, of: ClusterSnapshot) -> None:
    """A config that is new to the topic is within the bounds; -1 is more than any limit, and what
    is no number is refused.
    """
    before, value = before_of(request, of), request.requested_state.configs.get("retention.ms")
    changes = before is None or before.configs.get("retention.ms") != value
    if value is None:
        wanted = True  # Kafka's default is more than any of these
    elif value == "delete":
        wanted = True
    else:
        wanted = int(value) > most or (int(value) == -1 and most >= 0)
    text = f"[[config_bounds]]\nconfigs = {{ 'retention.ms' = {{ max = {most}, required = {str(required).lower()} }} }}"
    assert said_no(text, request, of) is (changes and wanted)


@given(st.integers(0, 3), st.integers(0, 9), requests(), clusters)
def test_quotas(most_topics: int, most_partitions: int, request: Change, of: ClusterSnapshot) -> None:
    """What a principal has are the topics with its name, the requested one included; only what
    grows is judged.
    """
    user = (request.principal or "User:nobody at all").removeprefix("User:")
    before, after = before_of(request, of), request.requested_state
    names = [name for name in of.topics() if name.startswith(f"{user}.") and name != request.topic]
    held = sum(state.num_partitions for name in names if (state := of.topic_state(name)) is not None)
    grows = before is None or after.num_partitions > before.num_partitions
    too_many = before is None and len(names) + 1 > most_topics
    wanted = (
        request.topic.startswith(f"{user}.") and grows and (too_many or held + after.num_partitions > most_partitions)
    )
    text = f"[[quota]]\nowned = '{{user}}.*'\nmax_topics = {most_topics}\nmax_partitions = {most_partitions}"
    assert said_no(text, request, of) is wanted


PATTERNS = ("{user}.*", "*", "{user}.?*", "sales.x", "/{user}[.].*/", "*.x", "{user}.*.*")


@given(st.sampled_from(PATTERNS), st.integers(0, 2), st.integers(0, 9), requests(), clusters)
def test_counted_or_looked_at(pattern: str, topics: int, partitions: int, request: Change, of: ClusterSnapshot) -> None:
    """A cluster that keeps counts gives the same verdict as one whose topics are looked at one by
    one.
    """
    asked = rules(
        f"[[quota]]\nowned = '{pattern}'\nmax_topics = {topics}\nmax_partitions = {partitions}\n"
        f"[[rule]]\nname = 'count'\noperations = ['create', 'alter']\ncondition = 'cluster.topic_count < {topics}'"
    )
    assert asked.judge(request, counted(of)) == asked.judge(request, of)


def test_a_topic_that_grows_is_counted_once() -> None:
    """What a topic has already is not added to what it will have, where counts are kept."""
    asked = rules("[[quota]]\nowned = '{user}.*'\nmax_partitions = 7")
    of = counted(cluster({name: topic_state([[1]] * 3) for name in ("sales.x", "sales.y", "ops.x")}))
    grown = AlterTopicRequest(topic="sales.x", principal="User:sales", requested_state=requested_state([[1]] * 4))
    assert asked.judge(grown, of) == ()
    too_far = msgspec.structs.replace(grown, requested_state=requested_state([[1]] * 5))
    [finding] = asked.judge(too_far, of)
    assert finding.message == "User:sales would have 8 partitions, but may have 7."


def counted(of: ClusterSnapshot) -> ReplayedCluster:
    made = {
        name: a_state(replicas=tuple(map(tuple, state.replica_assignments.values())), configs=dict(state.configs))
        for name, state in of.known_topics.items()
    }
    return ReplayedCluster(ReplayedTopics.of(made), of.cluster_size, SeenStates())


@given(st.text("ab*?/.", min_size=1, max_size=6), st.text("ab./", max_size=6))
def test_what_a_pattern_begins_with(pattern: str, text: str) -> None:
    """Every text that matches begins with the literal prefix, and where the prefix is said to be
    all, every text that begins so matches.
    """
    try:
        match = pattern_match(pattern)
    except PatternFault:
        return
    prefix, takes_all = literal_prefix(pattern)
    assert not match(text) or text.startswith(prefix)
    assert not takes_all or match(text) is text.startswith(prefix)
