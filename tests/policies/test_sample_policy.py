"""The sample in `config/`, loaded as its users load it."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from minicontroller.policies import PolicyViolation, TopicManagementPolicy, TopicState
from minicontroller.policies.loading import POLICY_KEY, build_policy
from minicontroller.policies.states import NO_CONFIGS, topic_state
from tests.policies.asking import THREE_TIMES_THREE, alter, cluster, create, delete, delete_records, reassign

REPOSITORY = Path(__file__).parents[2]
PLATFORM = "User:platform"
TOPIC = "sales.orders.placed"
DAY_MS = 86_400_000


@pytest.fixture(name="policy")
def _policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicManagementPolicy]:
    path_before = list(sys.path)
    monkeypatch.chdir(REPOSITORY)
    policy = build_policy({POLICY_KEY: "config/policy.py:PlatformPolicy"})
    assert policy is not None
    yield policy
    policy.close()
    sys.path[:] = path_before
    sys.modules.pop("policy", None)  # a test imports the sample as its neighbour does


def known(
    configs: Mapping[str, str] = NO_CONFIGS, replicas: tuple[tuple[int, ...], ...] = THREE_TIMES_THREE
) -> TopicState:
    return topic_state(replicas, configs)


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "compact", "retention.ms": "-1"},
        {"cleanup.policy": " delete, compact ", "retention.ms": str(7 * DAY_MS)},
        {"retention.ms": str(30 * DAY_MS), "min.insync.replicas": "2"},
        {"max.message.bytes": "1"},
    ],
)
def test_good_topics(policy: TopicManagementPolicy, configs: dict[str, str]) -> None:
    """What the rules are for passes them."""
    policy.validate_create_topic(create(configs=configs), cluster())


@pytest.mark.parametrize(
    "topic", [TOPIC, "a.b.c", "web-2.clicks.app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"]
)
def test_good_names(policy: TopicManagementPolicy, topic: str) -> None:
    """Names are team.domain.name, with room for what Kafka Streams appends."""
    policy.validate_create_topic(create(topic), cluster())


@pytest.mark.parametrize(
    "topic", ["orders", "sales.orders", "Sales.orders.placed", "sales.orders.a_b", "a.b.c.d", "a..c", "1.b.c"]
)
def test_bad_names(policy: TopicManagementPolicy, topic: str) -> None:
    """Another name is answered with the pattern in words and an example."""
    with pytest.raises(
        PolicyViolation, match=f"the name {topic} is not team.domain.name, such as sales.orders.placed, with"
    ):
        policy.validate_create_topic(create(topic), cluster())


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        (
            {"retention.ms": "-1"},
            "retention.ms -1 keeps records for ever: at most 2592000000 here, or compact the topic.",
        ),
        ({"retention.ms": "1000"}, "retention.ms 1000 is not within 3600000 and 2592000000."),
        ({"retention.ms": str(31 * DAY_MS)}, "retention.ms 2678400000 is not within 3600000 and 2592000000."),
        ({"cleanup.policy": ""}, "cleanup.policy '' is none of delete, compact, compact+delete."),
        (
            {"min.insync.replicas": "3"},
            "min.insync.replicas 3 with replication factor 3 stops producers whenever one broker restarts.",
        ),
    ],
)
def test_bad_configs(policy: TopicManagementPolicy, configs: dict[str, str], text: str) -> None:
    """Configs are refused when a topic is created and when it is altered to them, with the bounds
    in the message.
    """
    with pytest.raises(PolicyViolation) as created:
        policy.validate_create_topic(create(configs=configs), cluster())
    with pytest.raises(PolicyViolation) as altered:
        policy.validate_alter_topic(alter(configs=configs, operations={}), cluster({TOPIC: known()}))
    assert str(created.value) == str(altered.value) == text


def test_partitions(policy: TopicManagementPolicy) -> None:
    """The limit on partitions holds for new topics and for growing ones."""
    policy.validate_create_topic(create(replicas=[(1, 2, 3)] * 50), cluster())
    with pytest.raises(PolicyViolation, match="51 partitions are more than 50"):
        policy.validate_create_topic(create(replicas=[(1, 2, 3)] * 51), cluster())
    with pytest.raises(PolicyViolation, match="51 partitions are more than 50"):
        policy.validate_alter_topic(alter(replicas=[(1, 2, 3)] * 51), cluster({TOPIC: known()}))


def test_compacted_topics_do_not_grow(policy: TopicManagementPolicy) -> None:
    """More partitions of a compacted topic would leave old values of moved keys behind."""
    compacted = {"cleanup.policy": "compact"}
    with pytest.raises(PolicyViolation, match="a compacted topic keeps its number of partitions"):
        policy.validate_alter_topic(
            alter(replicas=[*THREE_TIMES_THREE, (1, 2, 3)], configs=compacted), cluster({TOPIC: known(compacted)})
        )
    policy.validate_alter_topic(alter(replicas=[*THREE_TIMES_THREE, (1, 2, 3)]), cluster({TOPIC: known()}))


@pytest.mark.parametrize(("brokers", "least"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_replication(policy: TopicManagementPolicy, brokers: int, least: int) -> None:
    """Three replicas, or as many as there are brokers."""
    replicas = tuple(range(1, brokers + 1))
    policy.validate_create_topic(create(replicas=[replicas[:least]]), cluster(size=brokers))
    if least > 1:
        with pytest.raises(PolicyViolation, match=f"replication factor {least - 1} is less than {least}"):
            policy.validate_create_topic(create(replicas=[replicas[: least - 1]]), cluster(size=brokers))


def test_replicas_may_not_be_taken_away(policy: TopicManagementPolicy) -> None:
    """A reassignment to fewer replicas is judged as a creation with so few."""
    before = cluster({TOPIC: known()})
    policy.validate_alter_topic(alter(replicas=[(3, 2, 1), (2, 3, 1), (3, 1, 2)]), before)
    with pytest.raises(PolicyViolation, match="replication factor 2 is less than 3"):
        policy.validate_alter_topic(alter(replicas=[(1, 2, 3), (2, 3), (3, 1, 2)]), before)


def test_all_faults_at_once(policy: TopicManagementPolicy) -> None:
    """A request is mended once, not fault by fault."""
    with pytest.raises(PolicyViolation) as refused:
        policy.validate_create_topic(create("orders", [(1,)] * 60, configs={"retention.ms": "5"}), cluster())
    assert str(refused.value) == (
        "the name orders is not team.domain.name, such as sales.orders.placed, with team and domain in lower case; 60 partitions are more than 50; "
        "replication factor 1 is less than 3, which lets a broker fail without loss; "
        "retention.ms 5 is not within 3600000 and 2592000000."
    )


def test_older_topics_may_change_in_other_ways(policy: TopicManagementPolicy) -> None:
    """An alteration is judged by what it changes: a topic that is older than the rules keeps
    working.
    """
    old = {"retention.ms": "-1", "min.insync.replicas": "1"}
    before = cluster({"legacy": known(old, ((1,),) * 60)})
    changed = {**old, "max.message.bytes": "5"}
    policy.validate_alter_topic(
        alter("legacy", [(1,)] * 60, configs=changed, operations={"max.message.bytes": "5"}), before
    )
    with pytest.raises(PolicyViolation, match=r"^61 partitions are more than 50\.$"):
        policy.validate_alter_topic(alter("legacy", [(1,)] * 61, configs=old), before)


@pytest.mark.parametrize("topic", ["platform.auth.keys", "audit.all.events", "__consumer_offsets"])
@pytest.mark.parametrize("principal", ["User:alice", None])
def test_protected_topics(policy: TopicManagementPolicy, topic: str, principal: str | None) -> None:
    """Protected topics, Kafka's own among them, are changed by platform principals only."""
    before = cluster({topic: known()})

    def ask_all(who: str | None) -> Iterator[Callable[[], None]]:
        yield lambda: policy.validate_alter_topic(alter(topic, principal=who), before)
        yield lambda: policy.validate_delete_topic(delete(topic, who), before)
        yield lambda: policy.validate_delete_records(delete_records(topic, who), before)

    for allowed in ask_all(PLATFORM):
        allowed()
    for refused in ask_all(principal):
        with pytest.raises(PolicyViolation, match=f"{topic} is protected: .* by the platform team only, not by"):
            refused()


def test_reassignments(policy: TopicManagementPolicy) -> None:
    """A partition keeps enough replicas wherever it moves, and a cancelled reassignment brings back
    what was there.
    """
    rows = ((1, 2, 3), (2, 3))
    before = cluster({"sales.orders.placed": known({}, (*rows[:1], (2, 3, 4)))}, 4)
    policy.validate_alter_topic(reassign(replicas=rows, reassignments={0: (4, 2, 3), 1: None}), before)
    with pytest.raises(PolicyViolation, match=r"replic"):
        policy.validate_alter_topic(reassign(replicas=rows, reassignments={0: (4,), 1: None}), before)


def test_other_topics_belong_to_their_teams(policy: TopicManagementPolicy) -> None:
    """Deletions are free where nothing is protected."""
    policy.validate_delete_topic(delete(), cluster())
    policy.validate_delete_records(delete_records(), cluster())


def test_internal_topics_come_as_kafka_needs_them(policy: TopicManagementPolicy) -> None:
    """The rules for teams do not stop the cluster from creating its own topics."""
    request = create("__consumer_offsets", [(1,)] * 60, internal=True, automatic=True, configs={"cleanup.policy": ""})
    policy.validate_create_topic(request, cluster())
    with pytest.raises(PolicyViolation, match="protected"):
        policy.validate_create_topic(msgspec.structs.replace(request, automatic=False), cluster())


def test_a_team_derives_from_it(policy: TopicManagementPolicy, tmp_path: Path) -> None:
    """The numbers are changed in a file beside it, as its first lines say."""
    (tmp_path / "policy.py").write_bytes((REPOSITORY / "config/policy.py").read_bytes())
    derived = """
        from policy import PlatformPolicy

        class OurPolicy(PlatformPolicy):
            max_partitions = 24
            platform_principals = frozenset({"User:kafka-ops"})
    """
    (tmp_path / "ours.py").write_text(dedent(derived))
    ours = build_policy({POLICY_KEY: f"{tmp_path}/ours.py:OurPolicy"})
    assert ours is not None
    ours.validate_delete_topic(delete("audit.all.events", "User:kafka-ops"), cluster())
    with pytest.raises(PolicyViolation, match="25 partitions are more than 24"):
        ours.validate_create_topic(create(replicas=[(1, 2, 3)] * 25), cluster())
    policy.validate_create_topic(create(replicas=[(1, 2, 3)] * 25), cluster())
