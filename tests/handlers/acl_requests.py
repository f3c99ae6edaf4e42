"""Requests about ACLs, and a cluster whose clients may make them."""

from collections.abc import Sequence
from typing import Any

from minicontroller.protocol.acls import AclOperation, AclResourceType, PatternType, PermissionType
from minicontroller.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from minicontroller.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from minicontroller.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import AclRules, Authorization
from tests.handlers.ruling import Ruling

ADMIN = "User:admin"
ACLS_DECIDE = Authorization(AclRules(AclIndex()), frozenset({ADMIN}))
"""An authorizer without any ACL, whose super user is ADMIN."""
NEWEST = 3

Row = tuple[int, str, int, str, str, int, int]
"""Type, name and pattern type of the resource; principal, host, operation, permission."""


def acl(name: str = "orders", /, **fields: Any) -> AclCreation:
    """An ACL that lets alice read a topic, unless it is said otherwise."""
    how = {
        "resource_type": AclResourceType.TOPIC,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": PermissionType.ALLOW,
    }
    return AclCreation(resource_name=name, **{**how, **fields})


ANYTHING = {
    "resource_type_filter": AclResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": PermissionType.ANY,
}


def matching(name: str | None = None, /, **fields: Any) -> DeleteAclsFilter:
    """A filter that matches every ACL, unless it is said otherwise."""
    return DeleteAclsFilter(**{**ANYTHING, "resource_name_filter": name, **fields})


def finding(name: str | None = None, /, **fields: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(**{**ANYTHING, "resource_name_filter": name, **fields})


async def create(
    cluster: Ruling, *rows: AclCreation, version: int = NEWEST, principal: str = ADMIN
) -> Sequence[tuple[int, str | None]]:
    """Return the code and message of each row."""
    answer: CreateAclsResponse = await cluster.ask(
        CreateAclsRequest(creations=list(rows)), version, principal=principal, authorization=ACLS_DECIDE
    )
    return [(row.error_code, row.error_message) for row in answer.results]


async def delete(cluster: Ruling, *filters: DeleteAclsFilter, version: int = NEWEST) -> Sequence[list[Row]]:
    """Return what each filter removed."""
    answer: DeleteAclsResponse = await cluster.ask(
        DeleteAclsRequest(filters=list(filters)), version, principal=ADMIN, authorization=ACLS_DECIDE
    )
    for result in answer.filter_results:
        assert (result.error_code, result.error_message) == (0, None)
        assert all((each.error_code, each.error_message) == (0, None) for each in result.matching_acls)
    return [
        [row(each.resource_type, each.resource_name, each.pattern_type, each) for each in result.matching_acls]
        for result in answer.filter_results
    ]


async def describe(cluster: Ruling, request: DescribeAclsRequest | None = None, *, version: int = NEWEST) -> list[Row]:
    answer: DescribeAclsResponse = await cluster.ask(
        request or finding(), version, principal=ADMIN, authorization=ACLS_DECIDE
    )
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        row(resource.resource_type, resource.resource_name, resource.pattern_type, each)
        for resource in answer.resources
        for each in resource.acls
    ]


def row_of(creation: AclCreation) -> Row:
    return row(creation.resource_type, creation.resource_name, creation.resource_pattern_type, creation)


def row(resource_type: int, name: str, pattern_type: int, entry: Any) -> Row:
    return (resource_type, name, pattern_type, entry.principal, entry.host, entry.operation, entry.permission_type)
