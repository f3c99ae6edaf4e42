"""`python -m benchmarks.acls`: what a decision among ten thousand ACLs costs, and a change of them.

Rule: every kind of question is asked of a user with a few ACLs of thousands, under the ACLs of all
the others, and the answers are checked while nothing is timed.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from minicontroller.protocol.acls import (
    ANYBODY,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.security.acls import AclIndex

TEAMS = 1000
ROUNDS = 7
USER, HOST = "User:team-7", "10.0.0.9"
TOPIC = AclResourceType.TOPIC
READ = 1 << AclOperation.READ


def entry(
    principal: str, operation: AclOperation = AclOperation.READ, permission: PermissionType = PermissionType.ALLOW
) -> AccessControlEntry:
    return AccessControlEntry(principal, WILDCARD, operation, permission)


def ten_thousand() -> AclIndex:
    """A thousand teams with a prefix of their own and eight topics of others; one topic that all
    may read, and a few that nobody may alter.
    """
    index = AclIndex()
    for team in range(TEAMS):
        index.set_resource(
            ResourcePattern(TOPIC, f"team-{team}.", PatternType.PREFIXED),
            [entry(f"User:team-{team}", each) for each in (AclOperation.READ, AclOperation.WRITE)],
        )
        for topic in range(7):
            index.set_resource(
                ResourcePattern(TOPIC, f"team-{team}.shared-{topic}"), [entry(f"User:team-{(team + topic) % TEAMS}")]
            )
    index.set_resource(ResourcePattern(TOPIC, "announcements"), [entry(f"User:team-{n}") for n in range(TEAMS)])
    index.set_resource(ResourcePattern(TOPIC, WILDCARD), [entry(ANYBODY, AclOperation.ALTER, PermissionType.DENY)])
    assert sum(map(len, index.resources.values())) > 10_000
    return index


def questions(index: AclIndex) -> dict[str, tuple[Callable[[], object], int]]:
    """Return the functions to be timed by name, each with the number of decisions that it makes."""
    own = [f"team-7.topic-{n}" for n in range(1000)]
    others = [f"team-{n}.topic-{n}" for n in range(1000)]
    assert all(bits & READ for bits in index.allowed_to(USER, HOST, TOPIC, own))
    assert sum(bool(bits & READ) for bits in index.allowed_to(USER, HOST, TOPIC, others)) == 1
    change = ResourcePattern(TOPIC, "team-7.shared-0")
    two: Sequence[Sequence[AccessControlEntry]] = ([entry("User:a")], [entry("User:b")])

    def changed() -> None:
        for entries in two:
            index.set_resource(change, entries)

    def forgotten(names: list[str]) -> Callable[[], object]:
        def ask() -> object:
            index.set_resource(change, two[0])
            index.set_resource(change, two[1])  # so that no decision is remembered
            return index.allowed_to(USER, HOST, TOPIC, names)

        return ask

    return {
        "a topic that a prefix allows, for the first time": (forgotten(own), len(own)),
        "a topic of others, for the first time": (forgotten(others), len(others)),
        "a topic that was asked about before": (lambda: index.allowed_to(USER, HOST, TOPIC, own), len(own)),
        "a change of one resource's ACLs": (changed, len(two)),
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    index = ten_thousand()
    for name, (ask, decisions) in questions(index).items():
        rounds = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            ask()
            rounds.append((time.perf_counter() - began) / decisions)
        print(f"{name:50} {statistics.median(rounds) * 1e6:8.2f} us")


if __name__ == "__main__":
    main()
