"""Today's topics, each asked for anew: which of them the candidate would refuse."""

from pathlib import Path

from minicontroller.audit.event import RecordedState
from minicontroller.pipeline.backtest.existing import Existing, LogEnd, Refused, refused
from tests.audit.logs import a_state
from tests.pipeline.backtest.asking import at_most, in_python, in_rules

NOW = LogEnd("cluster", 3, 1_767_225_600_000)


def asked(candidate: object, **topics: RecordedState | Existing) -> list[Refused]:
    there = {
        name.replace("_", "."): state if isinstance(state, Existing) else Existing(name.replace("_", "."), state)
        for name, state in topics.items()
    }
    with candidate.sandboxed() as sandbox:  # type: ignore[attr-defined]
        return list(refused(sandbox, there, NOW))


def test_topics_that_would_be_refused_are_listed_in_order(tmp_path: Path) -> None:
    """Topics that would be refused are listed with what they are, and why."""
    found = asked(at_most(tmp_path, 5), b=a_state(9, configs={"retention.ms": "1"}), a=a_state(8), c=a_state(2))
    assert [(each.topic, each.partitions, each.candidate.rule, each.candidate.message) for each in found] == [
        ("a", 8, "partitions", "8 partitions are more than 5."),
        ("b", 9, "partitions", "9 partitions are more than 5."),
    ]
    assert found[1].configs == {"retention.ms": "1"}


def test_a_topic_is_asked_for_beside_all_others(tmp_path: Path) -> None:
    """A quota that is full refuses each of them, because each could be the one too many."""
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 'a.*'\nmax_topics = 2\n")
    assert [each.topic for each in asked(candidate, a_1=a_state(), a_2=a_state(), b=a_state())] == []
    assert [each.topic for each in asked(candidate, a_1=a_state(), a_2=a_state(), a_3=a_state())] == [
        "a.1",
        "a.2",
        "a.3",
    ]


def test_who_created_it_asks_for_it(tmp_path: Path) -> None:
    """Where the log tells; else it is nobody who is known. The time is that of the log's end, and
    the topic is not there yet.
    """
    candidate = in_python(
        tmp_path,
        """
        def validate_create_topic(self, request, cluster):
            state = request.requested_state
            seen = cluster.topic_state(request.topic), sorted(cluster.topics()), cluster.cluster_size, request.time_ms
            raise PolicyViolation(f"{request.principal} {seen} {state.generated_replica_assignments} {dict(state.replica_assignments)}")
        """,
    )
    found = asked(candidate, a=Existing("a", a_state(1), "User:alice"), b=a_state(1))
    assert [each.candidate.message for each in found] == [
        "User:alice (None, ['b'], 3, 1767225600000) True {0: (1,)}",
        "None (None, ['a'], 3, 1767225600000) True {0: (1,)}",
    ]


def test_what_is_being_deleted_is_not_asked_for(tmp_path: Path) -> None:
    """A topic that is being deleted is not judged; Kafka's own topics are judged as such."""
    marked, internal = a_state(9, marked_for_deletion=True), a_state(9, internal=True)
    candidate = in_python(
        tmp_path,
        """
        def validate_create_topic(self, request, cluster):
            if not request.requested_state.internal:
                raise PolicyViolation("no")
        """,
    )
    assert [each.topic for each in asked(candidate, a=marked, b=internal, c=a_state(9))] == ["c"]
