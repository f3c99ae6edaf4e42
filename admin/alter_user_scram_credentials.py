"""AlterUserScramCredentials (51) sets and removes the credentials with which users log in by
SCRAM.
"""

from collections.abc import Iterator, Sequence

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ..security.scram_credentials import (
    MECHANISM_NUMBERS,
)
from .changes import Change
from .permissions import Permission
from .spec import Changes, Fields, Rows, Spec

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for every user that the request names"
)
UNKNOWN = "unknown"
"""Stands in the audit log for a mechanism that does not exist."""
Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


def by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[Alteration]]:
    """Return what a request asks for each user, deletions first."""
    by_user: dict[str, list[Alteration]] = {}
    alterations: list[Alteration] = [*request.deletions, *request.upsertions]
    for alteration in alterations:
        by_user.setdefault(alteration.name, []).append(alteration)
    return by_user


def audited_operations(alterations: Sequence[Alteration]) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the operands, of which none is a secret, and the kinds of operation by mechanism."""
    operations: dict[str, str | None] = {}
    kinds: dict[str, str] = {}
    for alteration in alterations:
        mechanism = MECHANISM_NUMBERS.get(alteration.mechanism, UNKNOWN)
        is_set = isinstance(alteration, ScramCredentialUpsertion)
        operations[mechanism] = "" if is_set else None
        kinds[mechanism] = "set" if is_set else "delete"
    return operations, kinds


def _requested(request: AlterUserScramCredentialsRequest) -> Iterator[Change]:
    for user, alterations in by_user(request).items():
        yield Change(user, "user", *audited_operations(alterations))


def _user(alteration: Alteration) -> Fields:
    return {"user": alteration.name}


SPEC = Spec(
    key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    at_controller=True,
    permissions=(ALTER_CLUSTER,),
    rows=Rows("results", AlterUserScramCredentialsResult, {"deletions": _user, "upsertions": _user}, distinct=True),
    changes=Changes("alter_user_scram_credentials", _requested),
)
