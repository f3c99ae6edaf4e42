"""Kafka's older policies see in the adapter what they see in Kafka (K201-9)."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.policies import AlterBrokerConfigsRequest, PolicyViolation
from minicontroller.policies.configs.canonical import canonical_configs, canonical_operands
from minicontroller.policies.legacy import AlterConfigMetadata, CreateTopicMetadata, LegacyPolicies
from minicontroller.policies.states import topic_state
from minicontroller.protocol.config_resources import ResourceType
from tests.policies.asking import THREE_TIMES_THREE, alter, cluster, create, delete, delete_records

CONFIGS = st.dictionaries(st.sampled_from(["retention.ms", "cleanup.policy", "segment.bytes"]), st.text(max_size=3))
OPERANDS = st.dictionaries(st.text(max_size=5), st.none() | st.text(max_size=3))
ROWS = st.integers(1, 3).flatmap(
    lambda factor: st.lists(
        st.permutations(range(5)).map(lambda brokers: tuple(brokers[:factor])), min_size=1, max_size=4
    )
)


class Create:
    def __init__(self) -> None:
        self.seen: list[CreateTopicMetadata] = []

    def validate(self, request_metadata: CreateTopicMetadata) -> None:
        self.seen.append(request_metadata)


class Alter:
    def __init__(self) -> None:
        self.seen: list[AlterConfigMetadata] = []

    def validate(self, request_metadata: AlterConfigMetadata) -> None:
        self.seen.append(request_metadata)


@given(ROWS, CONFIGS)
def test_created_by_counts(rows: list[tuple[int, ...]], configs: dict[str, str]) -> None:
    """Replicas that the controller chose show as resolved counts, and not as replicas."""
    policy = Create()
    LegacyPolicies(create=policy).validate_create_topic(create("t", rows, configs=configs), cluster())
    [seen] = policy.seen
    assert (seen.topic, seen.num_partitions, seen.replication_factor) == ("t", len(rows), len(rows[0]))
    assert seen.replicas_assignments is None
    assert seen.configs == canonical_configs(configs)


@given(ROWS, CONFIGS)
def test_created_with_replicas(rows: list[tuple[int, ...]], configs: dict[str, str]) -> None:
    """Replicas that the request named show as replicas, and not as counts."""
    policy = Create()
    LegacyPolicies(create=policy).validate_create_topic(create("t", rows, generated=False, configs=configs), cluster())
    [seen] = policy.seen
    assert (seen.num_partitions, seen.replication_factor) == (None, None)
    assert seen.replicas_assignments == dict(enumerate(rows))
    assert seen.configs == canonical_configs(configs)


@given(CONFIGS, CONFIGS, OPERANDS)
def test_changed_configs_show_as_the_request_names_them(
    before: dict[str, str], after: dict[str, str], operands: dict[str, str | None]
) -> None:
    """An old policy sees only the keys of the request, with their operands (None deletes), also if
    it changes nothing.
    """
    policy = Alter()
    known = cluster({"t": topic_state(THREE_TIMES_THREE, before)})
    LegacyPolicies(alter=policy).validate_alter_topic(alter("t", operations=operands, configs=after), known)
    [seen] = policy.seen
    assert (seen.resource.type, seen.resource.name) == (ResourceType.TOPIC, "t")
    assert seen.configs == canonical_operands(operands)


@given(CONFIGS, OPERANDS)
def test_results_show_where_they_are_asked_for(after: dict[str, str], operands: dict[str, str | None]) -> None:
    """As on KRaft: the keys of the request that the topic has afterwards, with its values."""
    policy = Alter()
    asked = alter("t", operations=operands, configs=after)
    LegacyPolicies(alter=policy, shows_results=True).validate_alter_topic(asked, cluster())
    [seen] = policy.seen
    assert seen.configs == {key: value for key, value in canonical_configs(after).items() if key in operands}


def test_other_alterations_are_not_asked_about() -> None:
    """More partitions or other replicas are no change of configs."""
    policy = Alter()
    known = cluster({"t": topic_state(THREE_TIMES_THREE, {"retention.ms": "1"})})
    LegacyPolicies(alter=policy).validate_alter_topic(alter("t", [(1,)] * 9, configs={"retention.ms": "1"}), known)
    assert policy.seen == []


@given(OPERANDS, st.sampled_from(["", "1"]))
def test_brokers_are_asked_about(operands: dict[str, str | None], broker: str) -> None:
    """In Kafka the policy for altered configs sees brokers too, and still does."""
    policy = Alter()
    request = AlterBrokerConfigsRequest(broker=broker, principal=None, config_operations=operands)
    LegacyPolicies(alter=policy).validate_alter_broker_configs(request, cluster())
    [seen] = policy.seen
    assert (seen.resource.type, seen.resource.name) == (ResourceType.BROKER, broker)
    assert seen.configs == operands


def test_each_kind_judges_its_own() -> None:
    """Either policy alone allows what belongs to the other, and both together judge both."""
    changed, known = alter("t", operations={"retention.ms": "1"}, configs={"retention.ms": "1"}), cluster()
    broker = AlterBrokerConfigsRequest(broker="1", principal=None, config_operations={})
    one, other = Create(), Alter()
    for policies in (LegacyPolicies(create=one), LegacyPolicies(alter=other), LegacyPolicies(one, other)):
        policies.validate_create_topic(create(), known)
        policies.validate_alter_topic(changed, known)
        policies.validate_alter_broker_configs(broker, known)
        policies.validate_delete_topic(delete(), known)
        policies.validate_delete_records(delete_records(), known)
    assert (len(one.seen), len(other.seen)) == (2, 4)
    assert LegacyPolicies(one, other).policy_name == "Create and Alter"
    assert LegacyPolicies(alter=other).policy_name == "Alter"


class Strict:
    def validate(self, request_metadata: CreateTopicMetadata | AlterConfigMetadata) -> None:
        raise PolicyViolation(f"not {type(request_metadata).__name__}")


def test_a_violation_passes_through() -> None:
    """What an older policy refuses is refused with its text (K201-6)."""
    both = LegacyPolicies(Strict(), Strict())
    with pytest.raises(PolicyViolation, match="not CreateTopicMetadata"):
        both.validate_create_topic(create(), cluster())
    with pytest.raises(PolicyViolation, match="not AlterConfigMetadata"):
        both.validate_alter_topic(alter(operations={"a": "b"}), cluster())


class Closing(Strict):
    def __init__(self, *, fails: bool = False) -> None:
        self.fails, self.configs, self.closed = fails, dict[str, str](), False

    def configure(self, configs: Mapping[str, str]) -> None:
        self.configs = dict(configs)

    def close(self) -> None:
        self.closed = True
        if self.fails:
            raise OSError("cannot close")


def test_both_are_configured_and_closed() -> None:
    """Where the older classes have configure and close, both are called; one that fails does not
    spare the other.
    """
    one, other = Closing(fails=True), Closing()
    both = LegacyPolicies(one, other)
    both.configure({"broker.id": "1"})
    with pytest.raises(OSError, match="cannot close"):
        both.close()
    assert one.configs == other.configs == {"broker.id": "1"}
    assert one.closed
    assert other.closed
    LegacyPolicies(Create(), Alter()).configure({})  # which have neither
    LegacyPolicies(Create(), Alter()).close()


def test_what_an_older_policy_sees_is_read_only() -> None:
    """The operands cannot be changed by the policy either."""
    operands: dict[str, str | None] = {"a": "b"}
    policy = Alter()
    request = AlterBrokerConfigsRequest(broker="1", principal=None, config_operations=operands)
    LegacyPolicies(alter=policy).validate_alter_broker_configs(request, cluster())
    with pytest.raises(TypeError):
        policy.seen[0].configs["a"] = "c"  # type: ignore[index]
