"""Kafka's words of access control lists (ACLs): resources, operations, permissions and their
numbers.

Rule: the members are Kafka's, with its names. A request may hold any other number: whoever reads
one compares, and converts only what is known to be a member.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

import msgspec

CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
WILDCARD = "*"
"""As the name of a literal resource, every resource of its type; as a host, every host."""
ANYBODY = "User:*"
"""The principal of an ACL that holds for every principal, of whatever type."""

NO_OPERATIONS = -(2**31)
"""The value of authorized operations, in answers, that were not requested."""


class AclOperation(IntEnum):
    """The operations on resources (Kafka's `AclOperation`)."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class AclResourceType(IntEnum):
    """The types of what ACLs protect (Kafka's `ResourceType`)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


def _bits(*operations: AclOperation) -> int:
    return sum(1 << each for each in operations)


SUPPORTED_OPERATIONS: Mapping[AclResourceType, int] = MappingProxyType(
    {
        AclResourceType.TOPIC: _bits(
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        ),
        AclResourceType.GROUP: _bits(AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE),
        AclResourceType.CLUSTER: _bits(
            AclOperation.CREATE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
        ),
        AclResourceType.TRANSACTIONAL_ID: _bits(AclOperation.WRITE, AclOperation.DESCRIBE),
        AclResourceType.DELEGATION_TOKEN: _bits(AclOperation.DESCRIBE),
        AclResourceType.USER: _bits(AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
    }
)
"""The operations that exist for each type of resource: bit n for the operation with the number n.
"""


class PatternType(IntEnum):
    """How the name of a resource pattern is read. ANY and MATCH stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Whether an ACL denies or allows (Kafka's `AclPermissionType`)."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(msgspec.Struct, frozen=True, order=True):
    """The resources of one type that an ACL is about: one, all (`*`), or those whose names begin
    with the pattern's name.
    """

    resource_type: AclResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class AccessControlEntry(msgspec.Struct, frozen=True, order=True):
    """Who may or may not do what to the resources of a pattern (Kafka's `AccessControlEntry`)."""

    principal: str
    """`User:alice`, or `User:*` for everybody."""
    host: str
    """An address as Java writes it, or `*` for every host."""
    operation: AclOperation
    permission_type: PermissionType


def kafka_name(member: IntEnum) -> str:
    """Return the name of a member as Kafka's tools and znodes write it: `DescribeConfigs`."""
    return "".join(word.capitalize() for word in member.name.split("_"))
