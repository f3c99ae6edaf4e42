"""Permissions: what a client needs for an API, and the questions about them that handlers share.

Rule: a handler asks only by the permissions that its `Spec` declares, so the table in
docs/security.md, which is made from the declarations, tells what is asked.
"""

import msgspec

from ..protocol.acls import AclOperation, AclResourceType


class Permission(msgspec.Struct, frozen=True):
    """An operation on a kind of resource, for which an API asks the authorizer."""

    operation: AclOperation
    resource_type: AclResourceType
    otherwise: str
    """The answer that a client without the permission gets: a part of a sentence for the docs."""

    @property
    def title(self) -> str:
        """The operation and the kind of resource in Kafka's words, such as `Describe on Topic`."""
        return f"{_pascal(self.operation.name)} on {_pascal(self.resource_type.name)}"


CLUSTER_ACTION = Permission(
    AclOperation.CLUSTER_ACTION,
    AclResourceType.CLUSTER,
    "CLUSTER_AUTHORIZATION_FAILED; nodes that have proved that they belong to the cluster need no ACL",
)
"""The permission of Kafka's brokers, for requests between nodes."""


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
