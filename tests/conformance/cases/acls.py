"""Requests about ACLs to a cluster without an authorizer: SECURITY_DISABLED, whatever they name,
and the end of the connection for what Kafka cannot read.
"""

from typing import Any

from tests.conformance.case import Body, Case, each_version


def acl(**fields: Any) -> Body:
    return {
        "resource_type": 2, "resource_name": "acls-t", "principal": "User:alice", "host": "*", "operation": 3,
        "permission_type": 3, **fields,
    }  # fmt: skip


def asked(**fields: Any) -> Body:
    return {
        "resource_type_filter": 1, "resource_name_filter": None, "principal_filter": None, "host_filter": None,
        "operation": 1, "permission_type": 1, **fields,
    }  # fmt: skip


UNKNOWN = ("operation", "permission_type")

CASES = [
    *each_version("all", "DescribeAcls", asked()),
    *each_version("unknown numbers", "DescribeAcls", asked(operation=99, permission_type=-1)),
    *[case for field in UNKNOWN for case in each_version(f"{field} 0", "DescribeAcls", asked(**{field: 0}))],
    *each_version("two, and one that is none", "CreateAcls", {"creations": [acl(), acl(resource_name="")]}),
    *each_version("none", "CreateAcls", {"creations": []}),
    *[case for field in UNKNOWN for case in each_version(f"{field} 0", "CreateAcls", {"creations": [acl(**{field: 0})]})],
    *each_version("two", "DeleteAcls", {"filters": [asked(), asked(operation=99)]}),
    *each_version("none", "DeleteAcls", {"filters": []}),
    *[case for field in UNKNOWN for case in each_version(f"{field} 0", "DeleteAcls", {"filters": [asked(**{field: 0})]})],
    Case("pattern type 0", "DescribeAcls", 3, asked(pattern_type_filter=0)),
    Case("pattern type 0", "CreateAcls", 3, {"creations": [acl(resource_pattern_type=0)]}),
]  # fmt: skip
