"""What is counted in columns and what is put to the judge come to what the judge alone says."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from minicontroller.audit.event import AuditEvent, Decision, NamedState, encode
from minicontroller.pipeline.backtest.batches import ColumnarReplay
from minicontroller.pipeline.backtest.candidate import Candidate
from minicontroller.pipeline.backtest.encoded import Encoded
from minicontroller.pipeline.backtest.prefilter import UNKNOWN, Prefilter, asked, prefilter_of
from minicontroller.pipeline.backtest.reading import tables_of
from minicontroller.pipeline.backtest.replaying import ALWAYS, Backtest, Window
from minicontroller.pipeline.backtest.verdicts import Difference
from tests.audit.logs import a_state
from tests.pipeline.backtest.asking import in_python, in_rules
from tests.pipeline.backtest.by_words import ALLOWED, FAILED, History, broken, denied
from tests.pipeline.backtest.files import written

NAMES = ("a.orders", "a.Orders", "b-1", "__internal", "alice.x", "größe", "A.ORDERS")
PRINCIPALS = ("User:alice", "User:bob", "User:ALICE", "User:", None)
NUMBERS = (
    *("1", "0", "-1", "-2", "01", "+1", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "1e3", "", "abc", "[hidden]", "86400000", " 5"),
)
KEYS = (
    "retention.ms",
    "local.retention.ms",
    "min.insync.replicas",
    "cleanup.policy",
    "compression.type",
    "no.such.key",
)
TEXTS = ("delete", "compact,delete", "compact", "zstd", "ZSTD", "producer", "[hidden]")
RULES = (
    "[[partitions]]\nmax = {n}",
    "[[partitions]]\nmin = {n}\naction = 'warn'",
    "[[replication]]\nmin = {n}\nmax = 3",
    "[[replication]]\nmax = {n}\noperations = ['alter']",
    "[[name_pattern]]\npattern = '[a-z]+[.-].*'",
    "[[name_pattern]]\npattern = '{{user}}\\..*'",
    "[[name_pattern]]\npattern = '(?i)A\\.[a-z]+|b-1'\naction = 'audit'",
    "[[protected_topics]]\ntopics = ['a.*']\nexcept_principals = ['User:alice']",
    "[[protected_topics]]\ntopics = ['/A\\..*/', '{{user}}.*']\nprincipals = ['User:*']\noperations = ['delete']",
    "[[protected_topics]]\ntopics = ['b*']\nclient_ids = ['x']\nexcept_hosts = ['10.*']",
    '[[config_bounds]]\n[config_bounds.configs]\n"retention.ms" = {{ min = {number}, max = 9223372036854775807 }}',
    '[[config_bounds]]\n[config_bounds.configs]\n"local.retention.ms" = {{ max = 86400000 }}\n"no.such.key" = {{ min = 1 }}',
    "[[config_bounds]]\nexcept_topics = ['*-1']\n[config_bounds.configs]\n\"min.insync.replicas\" = {{ required = true, max = {n} }}",
    "[[config_bounds]]\n[config_bounds.configs]\n\"cleanup.policy\" = {{ allowed = ['delete', 'compact,delete'], absent = 'allow' }}",
    "[[config_bounds]]\n[config_bounds.configs]\n\"compression.type\" = {{ allowed = ['zstd', 'producer'] }}\n\"no.such.key\" = {{ forbidden = true }}",
    "[[quota]]\nowned = '{{user}}.*'\nmax_topics = {n}",
    "[[quota]]\nowned = 'a.*'\nmax_partitions = {n}",
    "[[deletion_age]]\nmin = '1h'",
    "[[change_window]]\ndays = ['mon-fri']\nhours = ['08:00-18:00']\nprincipals = ['User:bob']",
    "[[rule]]\nname = 'c'\noperations = ['create']\ncondition = 'after.replication_factor >= {n} || principal == null'",
    "[[rule]]\nname = 'p'\ncondition = 'principal != null && principal.startsWith(\"User:a\")'\nprincipals = ['User:*']",
    '[[rule]]\nname = "i"\noperations = ["create", "alter"]\nmatch_conditions = [\'"retention.ms" in after.configs\']\ncondition = \'int(after.configs["retention.ms"]) >= {number} || request.topic.matches("^a")\'',
    "[[rule]]\nname = 'e'\noperations = ['create', 'alter']\ncondition = 'after.effective_configs[\"retention.ms\"] != \"1\"'",
    "[[rule]]\nname = 'raw'\noperations = ['create']\ncondition = '!(\"no.such.key\" in after.raw_configs)'\nmessage_expression = 'after.raw_configs[\"no.such.key\"]'",
    "[[rule]]\nname = 'b'\noperations = ['alter']\ncondition = 'after.num_partitions <= {n} * before.num_partitions'",
    "[[rule]]\nname = 'n'\ncondition = 'before == null || after == null || !before.internal'",
    "[[rule]]\nname = 'm'\noperations = ['create', 'alter']\ncondition = 'after.configs.all(k, k != \"no.such.key\")'",
    "[[rule]]\nname = 'k'\noperations = ['alter']\ncondition = 'request.config_operations == null || size(request.config_operations) < 2'",
    "[[rule]]\nname = 'o'\noperations = ['alter', 'delete_records']\ncondition = 'request.operation != \"reassign\"'",
    "[[rule]]\nname = 'r'\ncondition = 'request.reassignments == null && request.delete_records_offsets == null'",
    "[[rule]]\nname = 's'\noperations = ['create']\ncondition = 'cluster.topic_count < {n} || cluster.cluster_size > 3'",
    "[[rule]]\nname = 'a'\noperations = ['create']\ncondition = '!request.automatic && !request.validate_only && !after.internal'",
    "[[rule]]\nname = 'g'\noperations = ['create']\ncondition = 'after.generated_replica_assignments && size(after.replica_assignments) > 0'",
    "[[rule]]\nname = 'w'\ncondition = 'request.time.getHours() < 12 || request.client_id != null'",
    "[[rule]]\nname = 'h'\ncondition = 'has(request.client_id) && request.client_host != \"10.0.0.1\"'",
)


def some_rules(folder: Path, chance: Random) -> Candidate:
    kinds = chance.sample(RULES, chance.randint(1, 4))
    texts = [each.format(n=chance.randint(1, 3), number=chance.choice([-1, 0, 1, 9007199254740993])) for each in kinds]
    named = [
        text if "name =" in text else text.replace("]]", f"]]\nname = 'rule {number}'", 1)
        for number, text in enumerate(texts)
    ]
    return in_rules(folder, "\n".join(named))


def some_configs(chance: Random) -> dict[str, str]:
    keys = chance.sample(KEYS, chance.randint(0, 3))
    return {key: chance.choice(NUMBERS if "." in key and key[0] in "rlmn" else TEXTS) for key in keys}


Act = Callable[[History, Random, str, dict[str, Any]], object]
ACTS: tuple[Act, ...] = (
    lambda history, chance, name, said: history.alter(name, some_configs(chance), **said),
    lambda history, chance, name, said: history.adjust(name, {**some_configs(chance), "retention.ms": None}, **said),
    lambda history, chance, name, said: history.grow(name, chance.randint(0, 4), **said),
    lambda history, chance, name, said: history.reassign(name, moved(history, name, chance), **said),
    lambda history, _, name, said: history.delete_records(name, {0: -1}, **said),
    lambda history, _, name, said: history.delete(name, **said),
    lambda history, chance, name, _: history.observe(
        name, a_state(chance.randint(1, 3), internal=chance.random() < 0.5)
    ),
    lambda history, _, name, __: history.become(name, a_state(2)),
    lambda history, _, name, __: history.refuse(name, "INVALID_CONFIG"),
)


def moved(history: History, name: str, chance: Random) -> dict[int, tuple[int, ...]]:
    """The first partition, if there is any, goes to two brokers, or to none."""
    return dict.fromkeys(range(len(history.topics[name].replicas[:1])), chance.choice([(1, 2), ()]))


def some_assumed(chance: Random) -> tuple[NamedState, ...]:
    """What the policy saw otherwise than it came to be, because changes were under way."""
    names = chance.sample(NAMES, chance.choice([0, 0, 0, 1, 2]))
    return tuple(NamedState(topic=name, state=chance.choice([None, a_state(chance.randint(1, 9))])) for name in names)


def some_events(chance: Random, steps: int = 25) -> list[AuditEvent]:
    """What people asked for, whatever came of it."""
    history = History()
    for _ in range(steps):
        name, there = chance.choice(NAMES), sorted(history.topics)
        said: dict[str, Any] = {
            "principal": chance.choice(PRINCIPALS),
            "policy": chance.choice([ALLOWED, ALLOWED, ALLOWED, None, denied("no", "r"), broken("it raised")]),
            "client_id": chance.choice(["", "x", None]),
            "client_host": chance.choice(["10.0.0.1", "127.0.0.1"]),
            "validate_only": chance.random() < 0.2,
            "assumed": some_assumed(chance),
            "upstream_cluster_id": chance.choice([None, "behind"]),
            **chance.choice([{}, {}, {"enforced": False}, FAILED]),
        }
        if name not in there:
            more: dict[str, Any] = {"api": chance.choice(["CreateTopics", "Metadata"])}
            if chance.random() < 0.2:
                more |= {"element": chance.randint(0, 1), "elements": 2}
            history.create(name, chance.randint(0, 4), configs=some_configs(chance), **said, **more)
        elif chance.random() < 0.1:
            chance.choice([history.elect, history.lose])()
        elif history.topics[name].marked_for_deletion:
            history.remove(name)
        else:
            chance.choice(ACTS)(history, chance, name, said)
    return history.events


def said_of(
    folder: Path, events: list[AuditEvent], candidate: Candidate, window: Window, *, is_sifted: bool
) -> tuple[list[Difference], str]:
    """In columns and by carrying, or by looking at each event."""
    with candidate.sandboxed() as sandbox:
        backtest = Backtest(sandbox, window=window)
        if is_sifted:
            sieve, piece = ColumnarReplay(sandbox, window), written(folder / "events.parquet", events)
            found = [each for table in tables_of([piece], sieve.columns) for each in sieve.differences(backtest, table)]
        else:
            found = [each for event in events if (each := backtest.feed(event, encode(event))) is not None]
    return found, backtest.tally().encode()


def assert_the_same(folder: Path, events: list[AuditEvent], candidate: Candidate, *, is_windowed: bool) -> None:
    """In columns and by carrying it comes to what it comes to by looking at each event."""
    times = [event.time_ms for event in events]
    window = Window(times[len(times) // 3], times[len(times) * 2 // 3]) if is_windowed else ALWAYS
    alone = said_of(folder, events, candidate, window, is_sifted=False)
    assert said_of(folder, events, candidate, window, is_sifted=True) == alone


@given(st.integers(0, 1_000_000), st.booleans())
@settings(max_examples=50)
def test_prefilter_and_judge_say_what_the_judge_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_windowed: bool
) -> None:
    """Whatever the rules and the requests are: the same differences, counts and notes."""
    folder, chance = tmp_path_factory.mktemp("prefilter"), Random(seed)
    candidate, events = some_rules(folder, chance), some_events(chance)
    assert_the_same(folder, events, candidate, is_windowed=is_windowed)


KEEPING = """
def validate_create_topic(self, request, cluster):
    self.seen = [*getattr(self, "seen", ()), (cluster, cluster.topics(), cluster.topic_state("a.orders"))][-3:]
    for earlier, names, state in self.seen[::2]:
        assert (earlier.topics(), earlier.topic_state("a.orders")) == (names, state)
    if request.requested_state.num_partitions > 2:
        raise PolicyViolation(f"{request.topic}: {len(cluster.topics(include_internal=True))} topics")

def validate_alter_topic(self, request, cluster):
    self.last = getattr(self, "last", cluster)
    before, states = cluster.topic_state(request.topic), [self.last.topic_state(name) for name in NAMES]
    self.last = cluster
    if before is None or before.num_partitions > 2 or request.requested_state.configs.get("retention.ms") == "1":
        raise PolicyViolation(f"{before} {states}")
""".replace("NAMES", repr(NAMES))
"""Looks at topics late, also at those of clusters that it was shown before."""
DELETING = """
def validate_delete_topic(self, request, cluster):
    if cluster.topic_state(request.topic).internal or request.created_ms % 2:
        raise PolicyViolation(f"created at {request.created_ms}")

def validate_delete_records(self, request, cluster):
    return len(cluster.topics()) if request.client_id else None
"""


@given(st.integers(0, 1_000_000), st.booleans(), st.sampled_from([KEEPING, DELETING]))
@settings(max_examples=50)
def test_a_class_is_asked_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_windowed: bool, body: str
) -> None:
    """A class sees the same requests and topics, also those that it looks at later, and is compared
    and counted the same.
    """
    folder, chance = tmp_path_factory.mktemp("class"), Random(seed)
    candidate, events = in_python(folder, body), some_events(chance)
    assert_the_same(folder, events, candidate, is_windowed=is_windowed)


def settled_by(folder: Path, events: list[AuditEvent], rules: str) -> list[str | None]:
    """What the rules say of each request; None where it is left to the judge."""
    with in_rules(folder, rules).sandboxed() as sandbox:
        prefilter = prefilter_of(sandbox)
        assert isinstance(prefilter, Prefilter)
        [table] = tables_of([written(folder / "events.parquet", events)], prefilter.columns)
        numbers = prefilter.sift(table, Encoded(table), asked(table)).opinions.tolist()
        return [None if number == UNKNOWN else prefilter.opinions[number].message or "" for number in numbers[2:]]


def test_what_is_settled(tmp_path: Path) -> None:
    """A rule is certain of what its columns tell: how many partitions there were, and who asks."""
    history = History().create("t", 1).grow("t", 2).grow("t", 8).delete("t")
    doubling = "[[rule]]\nname = 'd'\noperations = ['alter']\ncondition = 'after.num_partitions <= 2 * before.num_partitions'\nmessage_expression = '\"now \" + string(before.num_partitions)'"
    assert settled_by(tmp_path, history.events, doubling) == ["", "", "now 2", ""]
    protected = "[[protected_topics]]\ntopics = ['t']\noperations = ['delete']"
    assert settled_by(tmp_path, history.events, protected)[-1] == "t is protected: User:alice may not delete it."
    limited = "[[partitions]]\nmax = 1"
    assert settled_by(tmp_path, history.events, limited)[1:3] == [f"{n} partitions are more than 1." for n in (2, 8)]
    spanning = "[[rule]]\nname = 's'\ncondition = 'cluster.topic_count < 9'"
    assert settled_by(tmp_path, history.events, spanning) == [None] * 4


def test_a_topic_that_the_policy_saw_otherwise(tmp_path: Path) -> None:
    """A change of the same topic that was under way and then undone counts as the policy saw it."""
    history = History().create("t", 2).grow("t", 3, assumed=(NamedState(topic="t", state=a_state(9)),))
    rules = in_rules(
        tmp_path,
        "[[rule]]\nname = 'r'\noperations = ['alter']\ncondition = 'before.num_partitions < after.num_partitions'",
    )
    sifted = said_of(tmp_path, history.events, rules, ALWAYS, is_sifted=True)
    assert [each.rule for each in sifted[0]] == ["r"]
    assert said_of(tmp_path, history.events, rules, ALWAYS, is_sifted=False) == sifted


def test_partitions_that_a_gateway_may_not_have_seen(tmp_path: Path) -> None:
    """A topic that seems to have the partitions already is judged by its growth at a gateway, not
    at a controller; a change of its configs is judged by them at neither.
    """
    history = History().create("t", 3)
    for upstream in (None, "behind"):
        history.grow("t", 3, upstream_cluster_id=upstream).adjust("t", {"x": "1"}, upstream_cluster_id=upstream)
    rules = "[[partitions]]\nmax = 2"
    refusal = "3 partitions are more than 2."
    assert settled_by(tmp_path, history.events, rules) == [refusal, "", "", refusal, ""]
    sifted = said_of(tmp_path, history.events, in_rules(tmp_path, rules), ALWAYS, is_sifted=True)
    assert said_of(tmp_path, history.events, in_rules(tmp_path, rules), ALWAYS, is_sifted=False) == sifted


def test_a_partition_without_replicas(tmp_path: Path) -> None:
    """A partition that is to have no replicas has fewer than any limit, in columns as for the
    judge.
    """
    *events, altered = History().create("t", 1).alter("t", {}).events
    assert isinstance(altered, Decision) and altered.requested is not None
    events.append(replace(altered, requested=replace(altered.requested, replicas=((),))))
    rules = in_rules(tmp_path, "[[replication]]\nmin = 1")
    sifted = said_of(tmp_path, events, rules, ALWAYS, is_sifted=True)
    assert [each.candidate.message for each in sifted[0]] == ["0 replicas are fewer than 1."]
    assert said_of(tmp_path, events, rules, ALWAYS, is_sifted=False) == sifted
