"""ACLs that are described, created and deleted by who may do that."""

from typing import Any

from tests.conformance.case import Case
from tests.conformance.cases.acl_requests import (
    ADMIN,
    ALL,
    ANY,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DENY,
    DESCRIBE,
    EVERYTHING,
    GROUPS,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    THE_CLUSTER,
    TOPICS,
    USER,
    WRITE,
    acl,
    by,
    created,
    described,
    removed,
)

OTHERS = [
    acl(READ, name="acl-a", principal="User:bob"),
    acl(WRITE, name="acl-a", principal="User:bob"),
    acl(READ, name="acl-", pattern=PREFIXED, principal="User:bob"),
    acl(READ, name="*", principal="User:carol"),
    acl(DESCRIBE, GROUPS, "acl-a", principal="User:*", permission=DENY),
    acl(CREATE, CLUSTER, THE_CLUSTER, principal="Group:admins"),
    acl(READ, name="acl-a", principal="User:CN=a,O=b c"),
    acl(11, USER, "bob", principal="User:carol"),
    acl(13, USER, "bob", principal="User:carol"),
]


def old_filter(**parts: Any) -> dict[str, Any]:
    found = {**EVERYTHING, **parts}
    del found["pattern_type_filter"]
    return found


CASES = by(
    ADMIN,
    [
        *created("in version 0", acl(READ, name="acl-v0"), version=0),
        *created("in version 1", acl(READ, name="acl-v1"), version=1),
        *created("in version 2", acl(READ, name="acl-v2"), version=2),
        *created("many", *OTHERS),
        *created("again", OTHERS[0]),
        *created("none"),
        *created("wrong cluster", acl(READ, CLUSTER, "other")),
        *created("empty name", acl(READ, name="")),
        *created("slash", acl(READ, name="a/b"), acl(READ, name="acl-b")),
        *created("blank principal", acl(READ, name="acl-c", principal="")),
        *created("no type in principal", acl(READ, name="acl-c", principal="bob")),
        *created("empty host", acl(READ, name="acl-c", host="")),
        *created("strange host", acl(READ, name="acl-c", host="no host at all")),
        *created("any operation", acl(1, name="acl-c")),
        *created("any permission", acl(READ, name="acl-c", permission=1)),
        *created("any type", acl(READ, ANY, "acl-c")),
        *created("match", acl(READ, name="acl-c", pattern=MATCH)),
        *created("any pattern", acl(READ, name="acl-c", pattern=1)),
        *created("operation of another resource", acl(CLUSTER_ACTION, name="acl-d")),
        *created("unknown operation", acl(99, name="acl-c")),
        *created("unknown type", acl(READ, 99, "acl-c")),
        *created("unknown pattern", acl(READ, name="acl-c", pattern=99)),
        *created("unknown permission", acl(READ, name="acl-c", permission=99)),
        *created("operation zero", acl(0, name="acl-c")),
        *created("type zero", acl(READ, 0, "acl-c")),
        *created("long name", acl(READ, name="n" * 300)),
        *created("name of many kinds", acl(READ, name="a b\u00e9:\u4e2d")),
        *described("everything"),
        *[
            Case("describe everything", "DescribeAcls", version, EVERYTHING if version else old_filter())
            for version in range(3)
        ],
        *described("topics", resource_type_filter=TOPICS),
        *described("a name", resource_name_filter="acl-a"),
        *described("literal", resource_name_filter="acl-a", pattern_type_filter=LITERAL),
        *described("prefixed", resource_name_filter="acl-", pattern_type_filter=PREFIXED),
        *described("match", resource_type_filter=TOPICS, resource_name_filter="acl-a", pattern_type_filter=MATCH),
        *described("match of nothing", resource_type_filter=TOPICS, resource_name_filter="zzz", pattern_type_filter=MATCH),
        *described("match of a wildcard", resource_name_filter="*", pattern_type_filter=MATCH),
        *described("a principal", principal_filter="User:bob"),
        *described("everybody", principal_filter="User:*"),
        *described("a host", host_filter="*"),
        *described("another host", host_filter="1.2.3.4"),
        *described("an operation", operation=READ),
        *described("operation all", operation=ALL),
        *described("denials", permission_type=DENY),
        *described("unknown operation", operation=99),
        *described("operation zero", operation=0),
        *described("unknown type", resource_type_filter=99),
        *described("bad principal", principal_filter="bob"),
        *described("empty name", resource_name_filter=""),
        *removed("one", {**EVERYTHING, "resource_name_filter": "acl-v0"}),
        *[
            Case("delete a name", "DeleteAcls", version, {"filters": [EVERYTHING_V if version else old_filter(resource_name_filter="acl-v1")]})
            for version, EVERYTHING_V in ((version, {**EVERYTHING, "resource_name_filter": "acl-v2"}) for version in range(3))
        ],
        *removed("nothing", {**EVERYTHING, "resource_name_filter": "zzz"}),
        *removed(
            "twice", {**EVERYTHING, "principal_filter": "User:bob", "operation": WRITE}, {**EVERYTHING, "principal_filter": "User:bob"}
        ),
        *removed("operation zero", {**EVERYTHING, "operation": 0}),
        *removed("unknown operation", {**EVERYTHING, "operation": 99}),
        *removed("no filters"),
        *removed("by match", {**EVERYTHING, "resource_type_filter": TOPICS, "resource_name_filter": "acl-zzz", "pattern_type_filter": MATCH}),
        *described("what is left"),
        *removed("everything", EVERYTHING),
        *described("nothing"),
    ],
)  # fmt: skip
