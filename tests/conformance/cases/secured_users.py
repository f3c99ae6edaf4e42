"""SCRAM users, altered and described by who may do that."""

from tests.conformance.case import Case
from tests.conformance.cases.acl_requests import (
    ADMIN,
    by,
)


def scram(name: str, *, remove: list[tuple[str, int]] = [], put: list[tuple[str, int, int]] = []) -> Case:  # noqa: B006 - not changed
    return Case(
        f"alter users {name}",
        "AlterUserScramCredentials",
        0,
        {
            "deletions": [{"name": user, "mechanism": mechanism} for user, mechanism in remove],
            "upsertions": [
                {
                    "name": user,
                    "mechanism": mechanism,
                    "iterations": iterations,
                    "salt": b"0123456789abcdef",
                    "salted_password": b"p" * 32,
                }
                for user, mechanism, iterations in put
            ],
        },
    )


def scram_users(name: str, *users: str) -> Case:
    return Case(
        f"describe users {name}", "DescribeUserScramCredentials", 0, {"users": [{"name": user} for user in users]}
    )


CASES = by(
    ADMIN,
    [
        scram_users("of none", "u-alice"),
        scram("new", put=[("u-alice", 1, 4096), ("u-bob", 2, 8192)]),
        scram("second mechanism", put=[("u-alice", 2, 5000)]),
        scram("strange name", put=[("u a:b/c*", 1, 4096)]),
        scram("too few iterations", put=[("u-carol", 1, 4095)]),
        scram("too many iterations", put=[("u-carol", 1, 16385)]),
        scram("unknown mechanism", put=[("u-carol", 3, 4096)]),
        scram("mechanism zero", put=[("u-carol", 0, 4096)]),
        scram("empty name", put=[("", 1, 4096)]),
        scram("same twice", put=[("u-carol", 1, 4096), ("u-carol", 1, 4097)]),
        scram("put and removed", put=[("u-bob", 2, 4096)], remove=[("u-bob", 2)]),
        scram("two mechanisms at once", put=[("u-dave", 1, 4096), ("u-dave", 2, 4096)]),
        scram("removed that is not there", remove=[("u-zzz", 1)]),
        scram("removed empty", remove=[("", 1)]),
        scram("removed of an unknown mechanism", remove=[("u-alice", 9)]),
        scram("some wrong", put=[("u-erin", 1, 4096), ("u-frank", 1, 1)], remove=[("u-zzz", 2)]),
        scram("too few and too many", put=[("u-carol", 1, 4095), ("u-carol", 1, 16385)]),
        scram("too many and too few", put=[("u-carol", 1, 16385), ("u-carol", 1, 4095)]),
        scram("too few and right", put=[("u-carol", 1, 4095), ("u-carol", 2, 4096)]),
        scram("unknown and too few", put=[("u-carol", 3, 4096), ("u-carol", 1, 4095)]),
        scram("too few and removed of an unknown mechanism", put=[("u-carol", 1, 4095)], remove=[("u-carol", 9)]),
        scram("nothing"),
        scram_users("one", "u-alice"),
        scram_users("some", "u-alice", "u-bob", "u-zzz", "u a:b/c*"),
        scram_users("twice", "u-alice", "u-alice"),
        scram_users("empty", ""),
        scram_users("all"),
        scram("removed", remove=[("u-alice", 1), ("u-alice", 2)]),
        scram_users("removed", "u-alice"),
    ],
)
