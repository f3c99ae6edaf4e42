"""The controller's image as a policy sees it."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from minicontroller.admin.policy.cluster_view import TopicStates, requested, view
from minicontroller.cluster.entities import Broker, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.policies import ClusterState, TopicManagementPolicy, TopicState
from minicontroller.policies.topic_counts import counts_of
from tests.handlers.ruling import creating, ruling, wanted
from tests.policies.asking import THREE_TIMES_THREE


def topic(name: str, *, marked: bool = False, configs: dict[str, str] | None = None) -> Topic:
    partitions = tuple(Partition(replicas) for replicas in THREE_TIMES_THREE)
    return Topic(name, name.encode().ljust(16), partitions, Map(configs or {}), marked)


IMAGE = (
    Image()
    .with_topics(
        (topic("orders", configs={"retention.ms": "1"}), topic("gone", marked=True), topic("__consumer_offsets"))
    )
    .with_brokers(Broker(broker) for broker in (1, 2, 3, 4))
)


def test_a_topic_shows_as_it_is() -> None:
    """Counts, replicas, configs and flags come from the image (K201-2)."""
    state = view(IMAGE, TopicStates()).topic_state("orders")
    assert state is not None
    assert (state.num_partitions, state.replication_factor) == (3, 3)
    assert state.replica_assignments == dict(enumerate(THREE_TIMES_THREE))
    assert dict(state.configs) == {"retention.ms": "1"}
    assert (state.marked_for_deletion, state.internal) == (False, False)


def test_flags_and_filters() -> None:
    """Internal and marked topics are known by name, and listed on demand only (K201-3)."""
    cluster = view(IMAGE, TopicStates())
    assert cluster.topics() == {"orders"}
    assert cluster.topics(include_internal=True) == {"orders", "__consumer_offsets"}
    assert cluster.topics(include_marked_for_deletion=True) == {"orders", "gone"}
    gone, offsets = cluster.topic_state("gone"), cluster.topic_state("__consumer_offsets")
    assert gone is not None
    assert gone.marked_for_deletion
    assert offsets is not None
    assert offsets.internal
    assert cluster.topic_state("absent") is None
    assert cluster.cluster_size == 4


def test_pending_elements_show() -> None:
    """A policy sees what the earlier elements of its batch did, because their image is what it is
    shown (K201-3).
    """
    states = TopicStates()
    before = view(IMAGE, states)
    assert before.topic_state("orders") is not None
    pending = IMAGE.with_topics((topic("orders", configs={"retention.ms": "2"}), topic("new")), ("gone",))
    after = view(pending, states)
    changed, unchanged = after.topic_state("orders"), before.topic_state("orders")
    assert changed is not None
    assert dict(changed.configs) == {"retention.ms": "2"}
    assert after.topics(include_marked_for_deletion=True) == {"orders", "new"}
    assert unchanged is not None
    assert dict(unchanged.configs) == {"retention.ms": "1"}  # who still looks at the older view sees the older state


def test_a_state_is_made_once_for_a_version_of_a_topic() -> None:
    """Repeated judgements reuse the states of unchanged topics."""
    states = TopicStates()
    first = view(IMAGE, states).topic_state("orders")
    elsewhere = IMAGE.with_topics((topic("other"),))
    assert view(elsewhere, states).topic_state("orders") is first


def test_deleted_topics_do_not_gather() -> None:
    """However many topics come and go, what is remembered stays in proportion to what is there."""
    states = TopicStates()
    for number in range(3000):
        view(Image().with_topics((topic(f"t{number}"),)), states).topic_state(f"t{number}")
    assert len(states) <= 1003


def test_requested_state_says_who_chose_the_replicas() -> None:
    """The requested state is the whole topic, with a word about where its replicas come from
    (K201-2).
    """
    state = requested(topic("orders", configs={"a": "b"}), generated_replica_assignments=True)
    assert state.generated_replica_assignments
    assert not requested(topic("orders")).generated_replica_assignments
    assert state.replica_assignments == dict(enumerate(THREE_TIMES_THREE))
    assert isinstance(state, TopicState)


def accepts(cluster: ClusterState) -> ClusterState:
    """Type-checked: the view is what a policy's signature asks for."""
    return cluster


def test_the_view_is_a_cluster_state() -> None:
    """The static type that policies declare is what they get."""
    cluster = view(IMAGE, TopicStates())
    assert accepts(cluster) is cluster


NAMES = ("a", "a.b", "a.c", "b", "__consumer_offsets")
QUOTA = """
[[quota]]
name = "few"
owned = "team.*"
max_topics = 2
max_partitions = 5
"""


def sized(name: str, partitions: int, marked: bool) -> Topic:
    return Topic(name, bytes(16), (Partition((1,)),) * partitions, marked_for_deletion=marked)


Change = Topic | tuple[list[Topic], list[str]]

topics = st.builds(sized, st.sampled_from(NAMES), st.integers(0, 3), st.booleans())
changes = st.lists(topics | st.tuples(st.lists(topics, max_size=3), st.lists(st.sampled_from(NAMES), max_size=3)))


@given(changes, changes)
def test_what_a_policy_counts_is_kept(before: list[Change], after: list[Change]) -> None:
    """After any changes, the kept counts are those of the topics that a policy sees."""
    image = Image()
    for number, change in enumerate((*before, None, *after)):
        if change is None:
            assert counts_of(view(image, TopicStates())) is None
            image = image.with_counts()
        elif isinstance(change, Topic):
            image = image.with_topic(change)
        else:
            image = image.with_topics(*change).with_brokers([Broker(number)])
        if image.counts is None:
            continue
        cluster = view(image, TopicStates())
        counts = counts_of(cluster)
        assert counts is not None
        seen = {name: len(image.topics[name].partitions) for name in cluster.topics()}
        assert (counts.topics, dict(counts.beginning(""))) == (len(seen), seen)


async def test_a_controller_with_rules_keeps_counts(tmp_path: Path) -> None:
    """A quota is asked of what the image counted, elements of the same request included; deleted
    topics are room again.
    """
    (tmp_path / "rules.toml").write_text(QUOTA)
    settings = {"policy.rules.files": f"{tmp_path}/rules.toml"}
    async with ruling(settings, policy=TopicManagementPolicy()) as world:
        rows = (await world.ask(creating(*(wanted(f"team.{number}", 2, 1) for number in range(3))), 7)).topics
        assert [row.error_message for row in rows] == [None, None, "User:ANONYMOUS has 2 of 2 topics already."]
        (other,) = (await world.ask(creating(wanted("other", 9, 1)), 7)).topics
        assert other.error_code == 0
        counts = world.image.counts
        assert counts is not None and dict(counts.beginning("")) == {"other": 9, "team.0": 2, "team.1": 2}
    async with ruling(policy=TopicManagementPolicy()) as world:
        assert world.image.counts is None
