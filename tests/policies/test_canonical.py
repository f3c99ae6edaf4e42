"""One text for each value of a config."""

import pytest

from minicontroller.policies.configs.canonical import TYPES, canonical, canonical_configs
from minicontroller.policies.configs.values import InvalidValueError, render_value
from minicontroller.process.settings.keys import KEYS
from minicontroller.process.settings.topic_configs import TOPIC_KEYS


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("unclean.leader.election.enable", "TRUE", "true"),
        ("unclean.leader.election.enable", " true", "true"),
        ("unclean.leader.election.enable", "False\t", "false"),
        ("unclean.leader.election.enable", "yes", "yes"),
        ("cleanup.policy", " compact", "compact"),
        ("cleanup.policy", "compact,compact", "compact"),
        ("cleanup.policy", "delete , compact", "delete,compact"),
        ("cleanup.policy", "", ""),
        ("log.cleanup.policy", "delete,delete\n", "delete"),
        ("retention.ms", " 5", "5"),
        ("retention.ms", "+5", "5"),
        ("retention.ms", "005", "5"),
        ("retention.ms", "-01", "-1"),
        ("retention.ms", "\u0665", "5"),
        ("retention.ms", "9007199254740993", "9007199254740993"),
        ("retention.ms", "five", "five"),
        ("min.cleanable.dirty.ratio", ".50", "0.5"),
        ("min.cleanable.dirty.ratio", "5e-1", "0.5"),
        ("min.cleanable.dirty.ratio", "-0e9", "0.0"),
        ("compression.type", " gzip ", "gzip"),
        ("leader.replication.throttled.replicas", "0:1, 0:1,1:2", "0:1,1:2"),
        ("log.retention.hours", " 07", "7"),
        ("ssl.enabled.protocols", "TLSv1.3 , TLSv1.2", "TLSv1.3,TLSv1.2"),
        ("listener.name.internal.max.connections", " 07", "7"),
        ("ssl.key.password", " secret ", " secret "),
        ("nobody.knows", " x ", " x "),
        ("retention.ms", f"{'0' * 9_000}7", "7"),
    ],
)
def test_one_text_for_each_value(name: str, text: str, value: str) -> None:
    """Whatever Kafka takes for the same value has the same text, and what it would not take stays
    as it is.
    """
    assert canonical(name, text) == value
    assert canonical(name, value) == value


@pytest.mark.parametrize("name", sorted(TOPIC_KEYS))
def test_it_is_the_value_that_takes_effect(name: str) -> None:
    """A canonical text is what the node makes of the text, for every key of a topic, and its
    default is one.
    """
    key = TOPIC_KEYS[name].key
    for text in ("TRUE", " 7 ", "+7", "compact, delete", "gzip ", " 0:1", "0.70", "3.0", "CreateTime\n"):
        try:
            value = key.parse(text)
        except InvalidValueError:
            continue
        assert key.parse(canonical(name, text)) == value
        assert canonical(name, text) == render_value(value)


def test_types_are_those_of_the_node() -> None:
    """Policies and the node read one table."""
    assert {name: TYPES[name] for name in TOPIC_KEYS} == {name: each.key.type for name, each in TOPIC_KEYS.items()}
    assert all(KEYS[name].type == kind for name, kind in TYPES.items() if name in KEYS)


def test_what_is_canonical_is_not_copied() -> None:
    """A topic of which nothing would be otherwise costs nothing."""
    configs = {"retention.ms": "5", "cleanup.policy": "compact"}
    assert canonical_configs(configs) is configs
    assert canonical_configs({**configs, "preallocate": "TRUE"}) == {**configs, "preallocate": "true"}
