"""What expressions may speak of, what they may cost, and how each mistake in one is told."""

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import cel
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.policies.interface import PolicyRequest
from minicontroller.policies.rules.checking import ExpressionFaults, check
from minicontroller.policies.rules.syntax import MAX_CHARACTERS, MAX_DEPTH, SyntaxFault, parse
from minicontroller.policies.rules.vocabulary import BOOL, FUNCTIONS, METHODS, VARIABLES
from minicontroller.policies.verdict import RuleAction
from tests.policies.asking import administer, alter, cluster, create, delete, delete_records, reassign
from tests.rules.reading import condition, mistake, mistakes, rules, said


def holds(expression: str) -> bool:
    return said(condition(expression), create("sales.orders", [[1, 2, 3]], configs={"retention.ms": "7"})) == []


QUOTED = '"7"'
VALUES = {
    "string": '"7"', "bytes": 'b"7"', "list": "[7]", "map": '{"a": 7}', "int": "7", "uint": "7u", "double": "7.0",
    "timestamp": 'timestamp("2024-02-29T13:14:15Z")', "duration": 'duration("7s")',
}  # fmt: skip


@pytest.mark.parametrize("name", [*FUNCTIONS, *(f".{name}" for name in METHODS)])
def test_each_function_is_the_engines(name: str) -> None:
    """What is declared works for every type that it is declared for."""
    (first, *others), _ = METHODS[name[1:]] if name.startswith(".") else FUNCTIONS[name]
    for kind in first:
        value = {"duration": '"7s"', "timestamp": '"2024-02-29T13:14:15Z"'}.get(name, VALUES[kind])
        call = f"{value}{name}({QUOTED if others else ''})" if name.startswith(".") else f"{name}({value})"
        assert holds(f"[{call}].size() == 1"), call


@pytest.mark.parametrize(("variable", "field"), [(v, f) for v, fields in VARIABLES.items() for f in fields])
def test_each_field_is_there(variable: str, field: str) -> None:
    """What is declared can be read, for an operation that has it."""
    request = {"before": alter(), "request": delete()}.get(variable, create())
    if field == "delete_records_offsets":
        request = delete_records()
    elif field == "reassignments":
        request = reassign()
    elif field in {"kind", "name"}:
        assert said(condition(f"[request.{field}].size() == 1", operations='"admin"'), administer()) == []
        return
    request = msgspec.structs.replace(request, time_ms=1, **({"created_ms": 1} if field == "created" else {}))
    known = {request.topic: create().requested_state}
    operations = '["delete"]' if field == "created" else '["create", "alter", "delete", "delete_records"]'
    guard = {"before": "before == null || ", "after": "after == null || "}.get(variable, "")
    text = condition(f"{guard}[{variable}.{field}].size() == 1", operations=operations)
    assert said(text, request, cluster(known)) == []


@pytest.mark.parametrize("created_ms", [None, 1])
def test_whether_a_field_is_there(created_ms: int | None) -> None:
    """`has` asks for a field that a request may lack, and does not fail where it does."""
    request = msgspec.structs.replace(delete(), created_ms=created_ms)
    text = condition(
        "has( request . created ) ? request.created.getFullYear() == 1970 : false", operations='["delete"]'
    )
    assert (said(text, request) == []) == (created_ms is not None)
    text = condition("before != null && has(before.num_partitions) && !has(before.configs.x)")
    change = alter()
    assert said(text, change, cluster({change.topic: create().requested_state})) == []


def test_values() -> None:
    """The fields hold what their names say."""
    for expression in (
        'request.topic == "sales.orders" && request.operation == "create" && request.api == "CreateTopics"',
        'principal == "User:alice" && cluster.cluster_size == 3 && cluster.topic_count == 0',
        'after.replica_assignments == [[1, 2, 3]] && after.configs == {"retention.ms": "7"}',
        "before == null && after != null && after.generated_replica_assignments && !after.internal",
        "request.client_id == null && request.config_operations == null && request.delete_records_offsets == null",
        "request.reassignments == null",
    ):
        assert holds(expression), expression


ENTRY = ("after", f"configs__{b'retention.ms'.hex()}")


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ('after.configs["retention.ms"] == "7"', {ENTRY}),
        ("int(after.configs[ 'retention.ms' ]) + 1 == 8", {ENTRY}),
        ('after . configs [ r"retention.ms" ].size() == 1', {ENTRY}),
        (r'after.configs["retention\u002ems"] == "7"', {ENTRY}),
        ('"retention.ms" in after.configs', {(ENTRY[0], f"{ENTRY[1]}__")}),
        ('!("segment.ms" in after.configs)', None),
        ('"x" in after.configs ? after.configs["x"] == "" : after.configs["retention.ms"] == "7"', None),
        ('("retention.ms") in (after.configs)', {("after", "configs")}),
        ('(after.configs)["retention.ms"] == "7"', {("after", "configs")}),
        ('after.configs[("retention.ms")] == "7"', {("after", "configs")}),
        ('"retention.ms" in // here\n after.configs', {("after", "configs")}),
        ('after.configs["retention.ms"] == "7" && size(after.configs) == 1', {ENTRY, ("after", "configs")}),
        ('["a"].all(x, after.configs["retention.ms"] == "7" && !(x in after.configs))', {ENTRY, ("after", "configs")}),
        ('!("" in after.configs)', {("after", "configs")}),
        ('{"retention.ms": 1}["retention.ms"] == 1 && "a" in {"a": 1}', set()),
        ('["retention.ms"].exists(after_, "a" in {"a": after_})', set()),
    ],
)
def test_an_entry_is_read_alone(expression: str, reads: set[tuple[str, str]] | None) -> None:
    """A map that is looked into for a written key is not handed over: what it holds costs nothing,
    and the answer is the same.
    """
    assert holds(expression)
    if reads is not None:
        assert check(expression, BOOL).fields == reads


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('request.config_operations["a"] == null', None),
        ('request.config_operations["a"] == "1" && "a" in request.config_operations', "1"),
        ('"a" in request.config_operations', None),
    ],
)
def test_an_entry_may_be_null(expression: str, value: str | None) -> None:
    """A config that is to be deleted is there, and has no value."""
    change = msgspec.structs.replace(alter(), config_operations={"a": value})
    text = condition(expression, operations='["alter"]')
    assert said(text, change, cluster({change.topic: create().requested_state})) == []


@pytest.mark.parametrize("map_", ["after.configs", "request.config_operations"])
def test_an_entry_that_is_not_there_refuses(map_: str) -> None:
    """The reason names it; so it is where there is no map."""
    [found] = rules(condition(f"{map_}['retention.bytes'] == '5'")).judge(create(), cluster())
    assert (found.action, found.error) == (
        RuleAction.DENY,
        f'AbsentFieldError: {map_}["retention.bytes"] is not there',
    )


@pytest.mark.parametrize("expression", ['"a" in {}', '!("a" in {})', '{}["a"] == "1"', '!("a" in {} || 1 > 2)'])
@pytest.mark.parametrize(("map_", "request_"), [("request.config_operations", create()), ("before.configs", alter())])
def test_where_there_is_no_map_nobody_can_tell(expression: str, map_: str, request_: PolicyRequest) -> None:
    """Whoever asks whether something is in it cannot be answered, whichever answer would allow: the
    request is refused (K201-11).
    """
    text = condition(expression.replace("{}", map_), operations='["create"]' if "request" in map_ else '["alter"]')
    [found] = rules(text).judge(request_, cluster())
    assert found.action is RuleAction.DENY
    assert (found.error or "").startswith(f"AbsentFieldError: {map_}")


FORMS = (
    "{k} in {m}",
    "!({k} in {m})",
    '{m}[{k}] == "1"',
    '{k} in {m} && {m}[{k}] != "1"',
    '!({k} in {m}) || {m}[{k}] == "1"',
)


@given(
    st.sampled_from(FORMS),
    st.sampled_from(["request.config_operations", "after.configs", "before.configs"]),
    st.sampled_from([None, {}, {"a": "1"}, {"a": None, "b": "2"}]),
    st.sampled_from(["a", "b", "c"]),
)
def test_an_entry_alone_says_what_the_map_says(
    form: str, map_: str, operations: Mapping[str, str | None] | None, key: str
) -> None:
    """An expression decides as it does with parentheses, which keep the map from being looked into
    beforehand.
    """
    change = msgspec.structs.replace(alter(configs={"b": "1"}), config_operations=operations)
    known = cluster({change.topic: create(configs={"a": "1", "c": "2"}).requested_state})
    alone, whole = (
        said(condition(form.format(k=k, m=m), operations='["alter"]'), change, known)
        for k, m in ((f"'{key}'", map_), (f"('{key}')", f"({map_})"))
    )
    assert bool(alone) == bool(whole)


def test_who_is_not_authenticated_is_null() -> None:
    """A rule can speak of strangers, and does not take a user who is called ANONYMOUS for one."""
    stranger = msgspec.structs.replace(create(), principal=None)
    namesake = msgspec.structs.replace(create(), principal="User:ANONYMOUS")
    for expression in (
        "principal == null",
        "!(principal != null)",
        'principal != "User:a" && !(principal in ["User:a"])',
    ):
        assert said(condition(expression), stranger) == []
    assert said(condition("principal == null"), namesake) != []
    assert said(condition('principal.startsWith("User:ANON")'), namesake) == []
    assert said(condition('principal.startsWith("User:")'), stranger) != []
    [found] = rules(condition('!principal.startsWith("User:a")')).judge(stranger, cluster())
    assert found.action is RuleAction.DENY and found.error is not None


def test_user_anonymous_is_a_mistake_in_an_expression() -> None:
    """It would never meet them there, and let them pass where they were meant; in lists it names
    them, as in Kafka's.
    """
    for expression in ('principal != "User:ANONYMOUS"', "!(principal in ['User:a', 'User:ANONYMOUS'])"):
        assert "names User:ANONYMOUS, a user of that name" in mistake(condition(expression))
    listed = condition("false", more='principals = ["User:ANONYMOUS"]')
    for principal in (None, "User:ANONYMOUS"):
        assert said(listed, msgspec.structs.replace(create(), principal=principal)) != []


def test_the_time_is_the_requests() -> None:
    """What is decided does not depend on when it is judged."""
    leap_day = datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)
    text = condition("request.time.getMonth() == 1 && request.time.getDate() == 29 && request.time.getHours() == 13")
    assert said(text, msgspec.structs.replace(create(), time_ms=int(leap_day.timestamp() * 1000))) == []
    [found] = rules(text).judge(create(), cluster())  # one that does not tell its time
    assert (found.action, found.error) == (RuleAction.DENY, "AbsentFieldError: request.time is not there")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("after.num_partitons < 5", ":5:22: condition after has no num_partitons; did you mean num_partitions?"),
        ("afte.num_partitions < 5", ":5:16: condition names afte, which is unknown; did you mean after?"),
        (
            'after.configs["retention.ms"] > 5',
            ":5:46: condition compares a string with an int: convert with int(...) or string(...)",
        ),
        ('after.num_partitions == "5"', ":5:37: condition compares an int with a string, which are never equal"),
        (
            'after.configs.retention.ms == "5"',
            ':5:40: condition reads ms of a string, which does not have it; a config is written ["retention.ms"]',
        ),
        ("after.num_partitions", ":5:22: condition is an int, but must be a bool"),
        ("after.configs", "condition is a map of string to string, but must be a bool"),
        ("request.topic.startWith('a')", "condition calls startWith, which is unknown; did you mean startsWith?"),
        ("matches(request.topic, 'a')", "condition calls matches, which is unknown: write ....matches(...)"),
        ("request.topic.matches('(')", "condition has a bad regular expression: missing ): ("),
        ("request.topic.matches(principal)", "condition gives matches a pattern that is not written out"),
        ("request.topic.size() > 3 &&", "condition ends where a value is expected"),
        ("(request.topic == 'a'", "condition ends where ')' is expected"),
        ("request.topic == 'a' 'b'", "condition has 'b' where the end is expected"),
        ("request.topic = 'a'", "condition has '=', which CEL does not have"),
        ("after == 5", "condition takes after as a whole"),
        ("cluster == null", "condition takes cluster as a whole"),
        ("after.internal && 5", "condition has an int where && takes a bool"),
        ("5 in after.configs", "condition looks for an int in a map of string to string"),
        ("after.configs.all(k, k)", "condition has a string where all takes a bool"),
        ("has(after)", "condition gives has something that is not a field"),
        ("[1].all(after__configs, true)", "condition calls its own variable after__configs, which is taken"),
        ("after.num_partitions / 2.0 > 1.0", "condition has / between an int and a double"),
        ("!!after.internal", "condition has ! twice"),
        ("import == 1", "condition has import where a value is expected"),
        ("request.topic.size(1) == 1", "condition calls size with one argument"),
        ("size(after.num_partitions) == 1", "condition calls size with an int"),
        (f"'{'x' * MAX_CHARACTERS}' == ''", f"condition is longer than {MAX_CHARACTERS} characters"),
        ("1" + "+1" * MAX_DEPTH + " > 1", f"condition is nested deeper than {MAX_DEPTH} levels"),
        ("(" * 99 + "true" + ")" * 99, f"condition is nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_each_mistake_is_told_where_it_is(expression: str, complaint: str) -> None:
    """Whoever wrote it reads what is wrong, at which line and column, and what he
    may have meant.
    """
    assert complaint in mistake(condition(expression))


def test_all_mistakes_of_an_expression_are_told() -> None:
    """Each mistake of an expression is told once, however many there are."""
    found = mistakes(condition('after.nosuch > 1 && 5 || afte.x == "a" || after.configs.all(k, k == 5 && nosuch(k))'))
    assert [each.column - 15 for each in found] == [7, 21, 26, 66, 74]


@pytest.mark.parametrize(
    "expression",
    [
        "after.replica_assignments.all(r, after.replica_assignments.exists(s, s == r))",
        "after.configs.all(k, after.configs.all(l, k == l))",
        "[1, 2].all(a, after.configs.all(k, k != ''))",
        "after.replica_assignments.all(r, r in after.replica_assignments)",
        "after.replica_assignments.all(a, a.all(b, [b].all(c, [c].all(d, d > 0))))",
        f"after.replica_assignments.all(r, [{'1,' * 40}].all(x, x > 0))",
    ],
)
def test_no_expression_costs_the_square_of_a_request(expression: str) -> None:
    """A comprehension within one goes over what the outer one yields; what it goes over again and
    again is refused.
    """
    with pytest.raises(ExpressionFaults):
        check(expression, BOOL)


def test_a_large_topic_is_judged_in_proportion() -> None:
    """What may be written goes over ten thousand partitions in a moment."""
    rows = [[1, 2, 3]] * 10_000
    assert (
        said(
            condition("after.replica_assignments.all(r, size(r) == 3 && r.all(b, b in [1, 2, 3]))"),
            create(replicas=rows),
        )
        == []
    )


DEEPEST: Mapping[str, Callable[[int], str]] = {
    "brackets": lambda n: "(" * n + "1" + ")" * n,
    "lists": lambda n: "[" * n + "]" * n,
    "maps": lambda n: "{1:" * n + "1" + "}" * n,
    "sums": lambda n: "+".join(["1"] * n),
    "members": lambda n: "a" + ".b" * n,
    "indexes": lambda n: "a" + "[0]" * n,
    "methods": lambda n: "a" + ".size()" * n,
    "calls": lambda n: "size(" * n + "a" + ")" * n,
    "choices": lambda n: "true?1:" * n + "1",
    "comprehensions": lambda n: "a.all(x," * n + "true" + ")" * n,
}
DEEP = """
import sys, threading, cel
def run():
    try:
        cel.compile(sys.argv[1]).execute({"a": [1]})
    except Exception:
        pass
threading.stack_size(512 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("shape", DEEPEST)
def test_the_deepest_expression_fits_a_small_stack(shape: str) -> None:
    """What is accepted at most does not end the process, in a thread with half a megabyte."""
    accepted = 0
    for size in range(1, 2 * MAX_DEPTH):
        try:
            parse(DEEPEST[shape](size))
            accepted = size
        except SyntaxFault:
            break
    assert 10 <= accepted <= MAX_DEPTH
    subprocess.run([sys.executable, "-c", DEEP, DEEPEST[shape](accepted)], check=True)


def test_what_would_be_refused_does_end_the_process() -> None:
    """The bound is needed: without it a rule file could kill a node."""
    assert threading.current_thread() is threading.main_thread()
    outcome = subprocess.run([sys.executable, "-c", DEEP, "a" + ".b" * 5000], check=False, capture_output=True)
    assert outcome.returncode < 0


def test_our_matches_is_the_engines() -> None:
    """A pattern means in a rule what it means in the engine, which compiles it each time."""
    for pattern in ("^a", "b", "a.c$", "(?i)ABC", "[[:alpha:]]+", r"\\d", "", "é"):
        for text in ("abc", "ABC", "a1", "", "é"):
            asked = f"'{text}'.matches('{pattern}')"
            assert holds(asked) is cel.compile(asked).execute(), asked


def test_a_message_may_be_an_expression() -> None:
    """It tells the caller what he asked for; where it fails, the rule's name is told. A message
    beside it would never be shown.
    """
    text = "message_expression = \"'only ' + string(after.replication_factor) + ' replicas'\""
    assert said(condition("false", more=text), create(replicas=[[1, 2]])) == ["only 2 replicas"]
    failing = "message_expression = \"after.configs['retention.ms']\""
    assert "leave one out" in mistake(condition("false", more=f"{failing}\nmessage = 'plain'"))
    assert said(condition("false", more=failing), create()) == ["The rule it is not met."]


def test_match_conditions_say_whether_a_rule_applies() -> None:
    """All of them must hold; one that fails denies (fail closed)."""
    text = condition("false", more="match_conditions = ['!after.internal', 'after.num_partitions > 2']")
    assert said(text, create(replicas=[[1]] * 2)) == []
    assert len(said(text, create(replicas=[[1]] * 3))) == 1
    failing = condition("true", more="match_conditions = ['int(after.configs[\"x\"]) > 0']\naction = 'audit'")
    [found] = rules(failing).judge(create(), cluster())
    assert (found.action, found.message) == (
        RuleAction.DENY, "The rule it could not be evaluated on this request, which is therefore refused."
    )  # fmt: skip
