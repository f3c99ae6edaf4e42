"""The rules that need no expression, and when rules apply at all."""

from datetime import UTC, datetime

import msgspec
import pytest

from minicontroller.policies import DeleteTopicRequest, PolicyRequest
from minicontroller.policies.rules.matching import MAX_KEPT, pattern_match
from minicontroller.policies.states import requested_state, topic_state
from minicontroller.policies.verdict import RuleAction
from tests.policies.asking import alter, cluster, create, delete, delete_records, reassign
from tests.rules.reading import condition, mistake, mistakes, rules, said

HOUR_MS = 3_600_000


def test_a_name_pattern_is_for_all_of_the_name_of_new_topics() -> None:
    """The whole name matches, and topics that are there are left alone."""
    text = "[[name_pattern]]\npattern = 'a+|b'"
    assert [bool(said(text, create(name))) for name in ("aa", "b", "ab", "xaa", "aax", "aa\n")] == [
        False,
        False,
        *[True] * 4,
    ]
    assert said(text, alter("xx")) == said(text, delete("xx")) == []
    assert said(text + "\nmessage = 'call it a'", create("x")) == ["call it a"]


def test_limits_leave_what_is_older_alone() -> None:
    """A topic beyond a limit can still be altered otherwise."""
    old = cluster({"sales.orders.placed": topic_state([[1]] * 9)})
    text = "[[partitions]]\nmax = 5\n[[replication]]\nmin = 2"
    assert said(text, alter(replicas=[[1]] * 9, operations={"retention.ms": "1"}), old) == []
    assert said(text, alter(replicas=[[1]] * 10), old) == [
        "10 partitions are more than 5.",
        "1 replica is fewer than 2.",
    ]


def test_limits_of_replicas_judge_reassignments() -> None:
    """The partitions that a request reassigns must be within the limit; one whose reassignment it
    cancels, and all others, stay as they are.
    """
    there = cluster({"sales.orders.placed": topic_state([[1], [1, 2], [1, 2]])})
    text = "[[partitions]]\nmax = 1\n[[replication]]\nmin = 2"
    assert said(text, reassign(replicas=[[1], [1, 2], [1, 2]], reassignments={2: (2, 3)}), there) == []
    assert said(text, reassign(replicas=[[1], [1], [1, 2]], reassignments={1: None}), there) == []
    too_few = reassign(replicas=[[1], [1, 2], [1, 2]], reassignments={1: None, 2: (3,)})
    assert said(text, too_few, there) == ["1 replica is fewer than 2."]
    for chosen in ("alter", "reassign"):
        assert said(f"[[replication]]\nmin = 2\noperations = '{chosen}'", too_few, there) != [], chosen
    assert said("[[replication]]\nmin = 2\noperations = 'create'", too_few, there) == []


@pytest.mark.parametrize(
    ("bound", "value", "message"),
    [
        ("min = 5", "4", "x 4 is less than 5."),
        ("max = 5", "6", "x 6 is more than 5."),
        ("max = 5", "-1", "x -1 is more than 5."),
        ("max = -1", "-1", None),
        ("min = 1, max = 5", "3", None),
        ("max = 5", None, None),
        ("required = true", None, "x must be set."),
        ("required = true", "1", None),
        ("forbidden = true", "1", "x must not be set."),
        ("forbidden = true", None, None),
        ("allowed = ['a', 'b']", "c", "x c is none of a, b."),
        ("allowed = 'a'", "a", None),
        (
            "max = 5",
            "many",
            "The rule config_bounds could not be evaluated on this request, which is therefore refused.",
        ),
    ],
)
def test_config_bounds(bound: str, value: str | None, message: str | None) -> None:
    """Each bound says what it wants; what is no number where one must be is refused."""
    text = f"[[config_bounds]]\nconfigs = {{ x = {{ {bound} }} }}"
    assert said(text, create(configs={} if value is None else {"x": value})) == ([] if message is None else [message])


def test_protected_topics() -> None:
    """Only the named principals may create or change protected topics, unless `operations` says
    otherwise.
    """
    text = "[[protected_topics]]\ntopics = ['ops.*']\nexcept_principals = ['User:ops']"
    for request in (create("ops.x"), alter("ops.x"), reassign("ops.x"), delete("ops.x"), delete_records("ops.x")):
        assert len(said(text, request)) == 1
        assert said(text, msgspec.structs.replace(request, principal="User:ops")) == []
    assert said(text, create("x.ops")) == said(text, delete("x.ops")) == []
    assert said(text, create("ops.x")) == ["ops.x is protected: User:alice may not create it."]
    assert said(text + "\noperations = 'delete'", create("ops.x")) == []


EVERY_BUILT_IN = """
[[name_pattern]]
pattern = 'a+'
[[partitions]]
max = 2
[[replication]]
min = 4
[[config_bounds]]
configs = { "cleanup.policy" = { allowed = "delete" } }
[[protected_topics]]
topics = "__*"
[[quota]]
owned = "__*"
max_topics = 0
[[change_window]]
days = "mon"
"""


def test_kafkas_own_topics_are_judged_where_a_client_asks_for_them() -> None:
    """What the cluster creates for itself comes as it needs it, and whoever else names such a topic
    is judged as for any other.
    """
    own = create("__consumer_offsets", internal=True, configs={"cleanup.policy": "compact"})
    asked = msgspec.structs.replace(own, time_ms=1)
    assert len(said(EVERY_BUILT_IN, asked)) == 7
    assert said(EVERY_BUILT_IN, msgspec.structs.replace(asked, automatic=True)) == []
    there = cluster({"__consumer_offsets": topic_state([[1]], internal=True)})
    grown = msgspec.structs.replace(
        alter("__consumer_offsets"),
        requested_state=requested_state([[1]] * 9, {"cleanup.policy": "compact"}, internal=True),
    )
    limits = EVERY_BUILT_IN.partition("[[protected_topics]]")[0]
    assert len(said(limits, grown, there)) == 3
    used = msgspec.structs.replace(create("b" * 9), automatic=True)
    assert len(said(limits, used)) == 3


@pytest.mark.parametrize(
    ("key", "bound", "value", "is_refused"),
    [
        ("retention.bytes", "max = 5", "-1", True),
        ("retention.bytes", "max = 5", "-2", True),
        ("retention.bytes", "max = 5", " -02", True),
        ("retention.ms", "max = 5", "+6", True),
        ("retention.ms", "max = 5", "05", False),
        ("retention.ms", "min = 5", "-1", False),
        ("retention.ms", "min = 5", "4", True),
        ("retention.ms", "max = 9007199254740992", "9007199254740993", True),
        ("retention.ms", "max = 9007199254740993", "9007199254740993", False),
        ("retention.ms", "min = 9007199254740993", "9007199254740992", True),
        ("retention.ms", "max = 9223372036854775806", "9223372036854775807", True),
        ("compression.gzip.level", "max = 5", "-1", False),
        ("compression.zstd.level", "max = 5", "-7", False),
        ("min.cleanable.dirty.ratio", "max = 0", "0.5", True),
        ("min.cleanable.dirty.ratio", "max = 1", "1.0", False),
        ("unclean.leader.election.enable", "allowed = 'false'", " False", False),
        ("unclean.leader.election.enable", "allowed = ' FALSE'", "false", False),
        ("unclean.leader.election.enable", "allowed = 'false'", "true\t", True),
        ("cleanup.policy", "allowed = ['delete', 'compact, delete']", "compact,delete", False),
        ("cleanup.policy", "allowed = ['delete']", "compact,compact", True),
        ("cleanup.policy", "allowed = ['delete']", " delete,delete", False),
    ],
)
def test_bounds_are_of_values_and_not_of_texts(key: str, bound: str, value: str, is_refused: bool) -> None:
    """However a value is written, the bound holds for what Kafka makes of it, to the last digit and
    where it means no limit.
    """
    text = f'[[config_bounds]]\nconfigs = {{ "{key}" = {{ {bound} }} }}'
    assert bool(said(text, create(configs={key: value}))) is is_refused


@pytest.mark.parametrize(
    ("bound", "own", "defaults", "message"),
    [
        ("'min.insync.replicas' = { min = 2 }", {}, {}, "min.insync.replicas 1 (the default) is less than 2."),
        ("'min.insync.replicas' = { min = 2 }", {}, {"min.insync.replicas": "2"}, None),
        ("'min.insync.replicas' = { min = 2 }", {"min.insync.replicas": "2"}, {}, None),
        ("'min.insync.replicas' = { min = 2, absent = 'allow' }", {}, {}, None),
        ("'retention.ms' = { max = 86400000 }", {}, {}, "retention.ms 604800000 (the default) is more than 86400000."),
        ("'retention.ms' = { max = 86400000 }", {}, {"retention.ms": "-1"}, "retention.ms -1 (the default) is more than 86400000."),
        ("'cleanup.policy' = { allowed = 'compact' }", {}, {}, None),
        ("'cleanup.policy' = { allowed = 'compact', absent = 'default' }", {}, {}, "cleanup.policy delete (the default) is none of compact."),
        ("'local.retention.ms' = { max = 5 }", {"retention.ms": "5"}, {}, None),
        ("'local.retention.ms' = { max = 5 }", {}, {}, "local.retention.ms -2 (the default) is more than 5."),
        ("'local.retention.bytes' = { max = 5 }", {"local.retention.bytes": "-2", "retention.bytes": "6"}, {}, "local.retention.bytes -2 is more than 5."),
        ("'retention.ms' = { max = 5, forbidden = true }", {}, {}, "retention.ms 604800000 (the default) is more than 5."),
    ],
)  # fmt: skip
def test_a_topic_that_says_nothing_has_the_default(
    bound: str, own: dict[str, str], defaults: dict[str, str], message: str | None
) -> None:
    """Minima and maxima are about what holds, and other bounds where they say so."""
    request = create(configs=own)
    state = msgspec.structs.replace(request.requested_state, default_configs=defaults)
    found = said(f"[[config_bounds]]\nconfigs = {{ {bound} }}", msgspec.structs.replace(request, requested_state=state))
    assert found == ([] if message is None else [message])


def test_who_deletes_a_config_falls_to_the_default() -> None:
    """The default is judged where a change leads to it, and not where a topic had it before."""
    text = "[[config_bounds]]\nconfigs = { 'min.insync.replicas' = { min = 2 } }"
    two = cluster({"t": topic_state([[1]], {"min.insync.replicas": "2"}), "old": topic_state([[1]])})
    assert said(text, alter("t", configs={}), two) == ["min.insync.replicas 1 (the default) is less than 2."]
    assert said(text, alter("old", configs={"retention.ms": "1"}), two) == []
    raised = requested_state([[1]], default_configs={"min.insync.replicas": "2"})
    assert said(text, msgspec.structs.replace(alter("t"), requested_state=raised), two) == []


def test_an_expression_knows_what_would_hold() -> None:
    """`after.effective_configs` has every config of a topic: its own, else the cluster's default,
    else Kafka's.
    """
    text = condition(
        """after.effective_configs["min.insync.replicas"] == "2" && after.effective_configs["retention.ms"] == "5" &&
        "segment.ms" in after.effective_configs && after.effective_configs["segment.ms"] == "604800000" &&
        !("nothing" in after.effective_configs) && after.effective_configs.exists(k, k == "flush.ms")"""
    )
    state = requested_state(
        [[1]], {"retention.ms": " 05"}, default_configs={"min.insync.replicas": "2", "retention.ms": "7"}
    )
    assert said(text, msgspec.structs.replace(create(), requested_state=state)) == []
    assert state.effective_configs["retention.ms"] == "5"
    assert len(state.effective_configs) == len(dict(state.effective_configs)) == 36


@pytest.mark.parametrize("name", ["*", "?", "a*"])
def test_nobody_owns_everything_by_his_name(name: str) -> None:
    """A name that has the signs of a pattern stands for itself wherever patterns speak of users."""
    request = msgspec.structs.replace(create("ab.x"), principal=f"User:{name}")
    own = msgspec.structs.replace(request, topic=f"{name}.x")
    for quota in ("{user}.*", "/{user}[.].*/", "*{user}.x"):
        text = f"[[quota]]\nowned = '{quota}'\nmax_topics = 0"
        assert said(text, request) == []
        assert len(said(text, own)) == 1
    for text in (
        "[[name_pattern]]\npattern = '{user}[.].*'",
        condition("false", more="except_topics = '{user}.*'"),
    ):
        assert len(said(text, request)) == 1
        assert said(text, own) == []


OWN_NAMES = """
[[name_pattern]]
pattern = '{user}\\.[^.]+'
except_principals = "User:platform"
[[quota]]
owned = "{user}.*"
max_topics = 2
"""


def test_a_name_pattern_and_a_quota_hold_together() -> None:
    """With a name pattern, no principal can use up another's quota, exceed its own, or evade it by
    another name.
    """
    there = cluster({name: topic_state([[1]]) for name in ("sales.a", "sales.b", "ops.a")})

    def asked(principal: str | None, name: str) -> list[str]:
        return said(OWN_NAMES, msgspec.structs.replace(create(name), principal=principal), there)

    assert asked("User:ops", "ops.b") == []
    assert asked("User:sales", "sales.c") == ["User:sales has 2 of 2 topics already."]
    for stranger in ("User:ops", "User:sale", "User:sales.c", "User:", None, "User:ANONYMOUS", "User:.*", "User:s*"):
        assert asked(stranger, "sales.c") == [r"The name sales.c does not match {user}\.[^.]+."]
    assert asked("User:platform", "sales.c") == []
    assert asked(None, ".c") != [] and asked("User:", ".c") != [] and asked(None, "ANONYMOUS.c") != []


@pytest.mark.parametrize(
    ("scope", "principal", "applies"),
    [
        ("topics = '{user}.*'", "User:sales", True), ("topics = '{user}.*'", "User:ops", False), ("topics = '{user}.*'", None, False),
        ("topics = '{user}.*'", "User:", False), ("except_topics = '{user}.*'", "User:sales", False),
        ("except_topics = ['x', '{user}.*']", None, True), ("except_topics = '/{user}[.].*/'", "User:sale", True),
        ("topics = '/{user}[.].*/'", "User:sale.", False), ("topics = ['{user}.y', 'sales.*']", None, True),
    ],
)  # fmt: skip
def test_scopes_know_who_asks(scope: str, principal: str | None, applies: bool) -> None:
    """`{user}` in a scope is the caller's name, and matches nothing for an
    unauthenticated client.
    """
    request = msgspec.structs.replace(create(), principal=principal)
    assert bool(said(condition("false", more=scope), request)) is applies


@pytest.mark.parametrize(
    ("more", "warns"),
    [
        ("", True),
        ("[[name_pattern]]\npattern = '[a-z]+'", True),
        ("[[name_pattern]]\npattern = '{user}-.*'\naction = 'warn'", True),
        ("[[name_pattern]]\npattern = '{user}-.*'", False),
        ("[[protected_topics]]\ntopics = 'a'", True),
    ],
)
def test_a_quota_without_its_pair_is_told(more: str, warns: bool) -> None:
    """Names that others may create count for nobody; where names are kept apart nothing is said."""
    assert bool(rules(f"[[quota]]\nowned = '{{user}}.*'\nmax_topics = 1\n{more}").warnings) is warns
    fixed = rules(f"[[quota]]\nowned = 'sales.*'\nmax_topics = 1\n{more}")
    assert bool(fixed.warnings) is (warns and "protected" not in more)
    assert not rules(f"[[partitions]]\nmax = 1\n{more}").warnings


def test_a_name_in_a_regular_expression_is_taken_literally() -> None:
    """The dot in a user's name is a dot."""
    text = "[[quota]]\nowned = '/{user}-.*/'\nmax_topics = 0"
    request = msgspec.structs.replace(create("a.b-c"), principal="User:a.b")
    assert len(said(text, request)) == 1
    assert said(text, msgspec.structs.replace(request, topic="axb-c")) == []


@pytest.mark.parametrize(
    ("age_ms", "refused"),
    [(0, True), (HOUR_MS - 1, True), (HOUR_MS, False), (24 * HOUR_MS, False), (24 * HOUR_MS + 1, True)],
)
def test_deletion_age(age_ms: int, refused: bool) -> None:
    """A topic may be deleted from one age on until another."""
    request = msgspec.structs.replace(delete(), created_ms=1000, time_ms=1000 + age_ms)
    assert bool(said("[[deletion_age]]\nmin = '1h'\nmax = '1d'", request)) is refused


@pytest.mark.parametrize("unknown", [{"created_ms": None}, {"time_ms": None}])
def test_an_unknown_age_is_refused(unknown: dict[str, None]) -> None:
    """A topic of unknown age is not deleted."""
    request = msgspec.structs.replace(DeleteTopicRequest(topic="x", principal=None, created_ms=1, time_ms=2), **unknown)
    [found] = rules("[[deletion_age]]\nmax = '1d'").judge(request, cluster())
    assert (found.action, found.error) == (RuleAction.DENY, "UnknownAgeError: the age of the topic is not known")


def at(time: str) -> PolicyRequest:
    return msgspec.structs.replace(
        create(), time_ms=int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)
    )


@pytest.mark.parametrize(
    ("window", "time", "open_"),
    [
        ("days = 'mon-fri'", "2024-06-07T23:59", True),  # a Friday
        ("days = 'mon-fri'", "2024-06-08T00:00", False),
        ("days = ['sat-mon', 'wed']", "2024-06-10T12:00", True),
        ("days = ['sat-mon', 'wed']", "2024-06-11T12:00", False),
        ("hours = '09:00-17:00'", "2024-06-07T08:59", False),
        ("hours = '09:00-17:00'", "2024-06-07T09:00", True),
        ("hours = '09:00-17:00'", "2024-06-07T17:00", False),
        ("hours = ['01:00-02:00', '23:00-24:00']", "2024-06-07T23:59", True),
        ("hours = '22:00-02:00'\ndays = 'fri'", "2024-06-07T22:00", True),
        ("hours = '22:00-02:00'\ndays = 'fri'", "2024-06-08T01:59", True),  # belongs to the Friday
        ("hours = '22:00-02:00'\ndays = 'fri'", "2024-06-07T01:59", False),  # belongs to the Thursday
        ("hours = '09:00-17:00'\ntimezone = 'Europe/Berlin'", "2024-06-07T07:00", True),  # summer: two hours ahead
        ("hours = '09:00-17:00'\ntimezone = 'Europe/Berlin'", "2024-01-05T07:00", False),  # winter: one
        ("hours = '09:00-17:00'\ntimezone = 'Europe/Berlin'", "2024-01-05T08:00", True),
    ],
)
def test_change_windows(window: str, time: str, open_: bool) -> None:
    """Days and hours are those of the zone; a window that passes midnight belongs to the day on
    which it opens.
    """
    assert (said(f"[[change_window]]\n{window}", at(time)) == []) is open_


def test_a_request_without_a_time_is_outside_of_every_window() -> None:
    """A request without a time is refused: what cannot be judged fails closed."""
    [found] = rules("[[change_window]]\ndays = 'mon-sun'").judge(create(), cluster())
    assert found.error == "NoTimeError: the time of the request is unknown"


@pytest.mark.parametrize(
    ("scope", "applies"),
    [
        ("topics = 'sales.*'", True), ("topics = 'ops.*'", False), ("topics = ['ops.*', 'sales.orders.placed']", True),
        ("topics = '/sales[.].*/'", True), ("topics = '/sales/'", False), ("topics = '*.placed'", True), ("topics = '?ales.*'", True),
        ("topics = 'SALES.*'", False), ("except_topics = 'sales.*'", False), ("except_topics = 'ops.*'", True),
        ("principals = 'User:alice'", True), ("principals = 'User:a*'", True), ("principals = 'User:bob'", False),
        ("except_principals = '/User:.*/'", False), ("except_principals = 'User:bob'", True), ("topics = '*'", True),
        ("topics = 'sales.*'\nexcept_topics = '*.placed'", False),
    ],
)  # fmt: skip
def test_scopes(scope: str, applies: bool) -> None:
    """Names, globs and regular expressions say which topics and principals a rule is about."""
    assert bool(said(condition("false", more=scope), create())) is applies


def test_evil_patterns_take_no_time() -> None:
    """Patterns that would make a backtracking matcher run for ever are answered."""
    evil = "a" * 249
    for pattern in ("/(a+)+b/", "/(a|a)*b/", "/(a|aa)+$b/", "*a*a*a*a*a*a*a*a*a*a*b"):
        assert said(condition("false", more=f"topics = '{pattern}'"), create(evil)) == []


def test_findings_come_in_the_order_of_the_file() -> None:
    """All rules are asked, whatever the others said; each does what its action says."""
    text = "".join(
        f"[[rule]]\nname = '{name}'\noperations = 'create'\ncondition = 'false'\naction = '{name}'\n"
        for name in ("warn", "deny", "audit")
    )
    found = rules(f"{text}[[partitions]]\nmax = 1\n").judge(create(), cluster())
    assert [(finding.rule, finding.action) for finding in found] == [
        ("warn", RuleAction.WARN), ("deny", RuleAction.DENY), ("audit", RuleAction.AUDIT), ("partitions", RuleAction.DENY)
    ]  # fmt: skip


def test_the_hash_is_of_what_a_file_says() -> None:
    """Comments and spaces do not change it; a limit does."""
    one = rules("[[partitions]]\nmax = 5").hash
    assert rules("# why\n\n[[partitions]]\nmax   =   5 # five").hash == one
    assert rules("[[partitions]]\nmax = 6").hash != one
    assert len(one) == 64


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[rules]]\nname = 'x'", "rules.toml:1:1: rules is unknown; did you mean rule?"),
        ("[[partitions]]\nmaximum = 5\nmin = 1", "rules.toml:2:1: maximum is unknown; did you mean max?"),
        ("[[partitions]]\nmax = '5'", "rules.toml:2:1: max is a string, but must be a whole number"),
        ("[[partitions]]\nmax = true", "max is true or false, but must be a whole number"),
        ("[[partitions]]\nmax = 0", "max is 0, but must be at least 1"),
        ("[[partitions]]\nmin = 6\nmax = 5", "rules.toml:2:1: min 6 is more than max 5, so that nothing is ever allowed"),
        ("[[partitions]]", "rules.toml:1:1: neither min nor max is given"),
        ("partitions = 5", "partitions is a whole number, but must be tables: [[partitions]]"),
        ("[[partitions]]\nmax = 5\noperations = ['create', 'delete']", "rules.toml:3:25: operations names 'delete', which this kind of rule never judges; it judges create, alter"),
        ("[[partitions]]\nmax = 5\noperations = 'reassign'", "operations names 'reassign', which this kind of rule never judges; it judges create, alter"),
        ("[[protected_topics]]\ntopics = 'a'\noperations = 'alter_broker'", "'alter_broker', which this kind of rule never judges"),
        ("[[change_window]]\ndays = 'mon'\ntopics = 'a'\noperations = ['create', 'alter_broker']", "rules.toml:4:25: operations names 'alter_broker', which concerns no topic, but the rule is only about some topics"),
        ("[[partitions]]\nmax = 5\ntopics = []", "topics is empty, so nothing can ever match"),
        ("[[partitions]]\nmax = 5\ntopics = 'a/b'", "topics: 'a/b' can match no topic: no name has '/' in it"),
        ("[[partitions]]\nmax = 5\ntopics = '/(/'", "topics: '/(/' is a bad regular expression"),
        ("[[partitions]]\nmax = 5\ntopics = '/a)(b/'", "topics: '/a)(b/' is a bad regular expression"),
        ("[[partitions]]\nmax = 5\nprincipals = 'alice'", "can match no principal: write it with its type, as User:alice"),
        ("[[partitions]]\nmax = 5\naction = 'block'", "action names 'block'"),
        ("[[name_pattern]]\npattern = '('", "rules.toml:2:1: pattern is a bad regular expression: missing ): "),
        ("[[config_bounds]]\nconfigs = { x = { } }", "x has no bound"),
        ("[[config_bounds]]\nconfigs = { x = { max = 1, maks = 1 } }", "maks is unknown; known are absent, allowed"),
        ("[[config_bounds]]\nconfigs = { x = { max = 1, absent = 'never' } }", "rules.toml:2:28: absent is 'never', but must be default or allow"),
        ("[[deletion_age]]\nmin = '5 hours'", "min is '5 hours', but must be a number with ms, s, m, h or d, such as 12h"),
        ("[[change_window]]\ndays = 'monday'", "days has 'monday', but takes mon, tue, "),
        ("[[change_window]]\nhours = '9-17'", "hours has '9-17', but takes times such as 09:00-17:00"),
        ("[[change_window]]\nhours = '09:00-09:00'", "a window that is never open"),
        ("[[change_window]]\ndays = 'mon'\ntimezone = 'Mars/Phobos'", "rules.toml:3:1: timezone 'Mars/Phobos' is unknown"),
        ("[[quota]]\nmax_topics = 1", "owned is missing"),
        ("[[protected_topics]]\nexcept_principals = 'User:x'", "topics is missing"),
        ("[[rule]]\nname = 'a'", "rules.toml:1:1: the rule has no condition"),
        ("[[rule]]\ncondition = 'true'", "rules.toml:1:1: the rule has no name"),
        ("[[rule]]\nname = 'a'\ncondition = ''", "condition is empty"),
        ("[[rule]]\nname = 'a'\ncondition = 'after.internal'", "condition reads after, which is null for delete and delete_records"),
        ("[[rule]]\nname = 'a'\noperations = 'create'\ncondition = 'before.internal'", "condition reads before, which is null for create"),
        ("[[rule]]\nname = 'a'\ncondition = 'request.operation != \"reasign\"'", "condition compares request.operation with 'reasign', which does not exist; did you mean reassign?"),
        ("[[rule]]\nname = 'a'\noperations = 'create'\nmatch_conditions = ['request.operation in [\"create\", \"alter\"]']\ncondition = 'true'", "match_conditions compares request.operation with 'alter', which the rule never judges; it judges create"),
        ("[[rule]]\nname = 'a'\ncondition = 'request.created < request.time'", "request.created is there for delete only"),
        ("[[partitions]]\nmax = 5\nname = 'a'\n[[replication]]\nmin = 2\nname = 'a'", "rules.toml:6:1: there is a rule a already"),
        ("a = ", "rules.toml:1:5: this is not TOML: a value is missing here"),
        ("[[rule", "rules.toml:1:7: this is not TOML: the ]] that ends the name of a table is missing here"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_where_it_is(text: str, complaint: str) -> None:
    """File, line and column, what is wrong, and what was meant; a rule that can never match is a
    mistake too.
    """
    assert complaint in mistake(text)


def test_all_mistakes_are_told_at_once() -> None:
    """All mistakes of a file are reported together."""
    found = mistakes("[[partitions]]\nmax = 0\ntopics = ''\nnosuch = 1\n[[rule]]\nname = 'a'\ncondition = 'x'\n")
    assert [(each.line, each.column) for each in found] == [(2, 1), (3, 1), (4, 1), (7, 14)]


@pytest.mark.parametrize("pattern", ["{user}.*", r"/{user}\.[^.]+/", "{user}.?x*"])
def test_the_pattern_of_a_user_is_made_once(pattern: str) -> None:
    """A user's pattern is not made for each request; of very many users those that asked last are
    kept.
    """
    assert pattern_match(pattern, "sales") is pattern_match(pattern, "sales")
    assert not pattern_match(pattern, "sale")("sales.orders")
    for number in range(2 * MAX_KEPT):
        pattern_match(pattern, f"user{number}")
    assert pattern_match.cache_info().currsize <= MAX_KEPT
