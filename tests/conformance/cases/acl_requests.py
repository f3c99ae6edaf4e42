"""Requests about ACLs, and who sends what, on a cluster whose clients log in.

The cluster authenticates by SASL; `admin` is a super user, alice, bob and carol are not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.conformance.case import Case

ADMIN, ALICE, BOB, CAROL = "admin", "alice", "bob", "carol"
ANY, TOPICS, GROUPS, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 1, 2, 3, 4, 5, 6, 7
LITERAL, PREFIXED, MATCH = 3, 4, 2
DENY, ALLOW = 2, 3
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
THE_CLUSTER = "kafka-cluster"

ACL = Mapping[str, Any]
States = Sequence[tuple[str, list[dict[str, Any]]]]
"""States by name, with the ACLs that there are in each."""


def acl(
    operation: int,
    kind: int = TOPICS,
    name: str = "sec-mine",
    *,
    pattern: int = LITERAL,
    permission: int = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": principal,
        "host": host,
        "operation": operation,
        "permission_type": permission,
    }


def of_filter(each: ACL) -> dict[str, Any]:
    """The filter that finds exactly this ACL."""
    return {
        "resource_type_filter": each["resource_type"],
        "resource_name_filter": each["resource_name"],
        "pattern_type_filter": each["resource_pattern_type"],
        "principal_filter": each["principal"],
        "host_filter": each["host"],
        "operation": each["operation"],
        "permission_type": each["permission_type"],
    }


EVERYTHING = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


def by(user: str, cases: list[Case]) -> list[Case]:
    """Return these cases as a user asks them, who is named in their keys."""
    return [replace(case, name=f"{user}: {case.name}", user=user) for case in cases]


def described(name: str, **parts: Any) -> list[Case]:
    return [Case(f"describe {name}", "DescribeAcls", 3, {**EVERYTHING, **parts})]


def removed(name: str, *filters: Mapping[str, Any]) -> list[Case]:
    return [Case(f"delete {name}", "DeleteAcls", 3, {"filters": list(filters)})]


def created(name: str, *acls: Mapping[str, Any], version: int = 3) -> list[Case]:
    creations = [dict(each) for each in acls]
    if version == 0:
        for each in creations:
            del each["resource_pattern_type"]
    return [Case(f"create {name}", "CreateAcls", version, {"creations": creations})]


def in_states(states: States, asked: Callable[[str], list[Case]]) -> list[Case]:
    """Return ALICE's questions in each state of the ACLs, which are made for it and deleted."""
    return [
        case
        for state, acls in states
        for case in [
            *by(ADMIN, [Case(f"{state}, make", "CreateAcls", 3, {"creations": acls})]),
            *by(ALICE, asked(state)),
            *by(ADMIN, [Case(f"{state}, unmake", "DeleteAcls", 3, {"filters": [of_filter(each) for each in acls]})]),
        ]
    ]
