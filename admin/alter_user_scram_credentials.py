"""AlterUserScramCredentials (51) sets and removes the credentials with which users log in by SCRAM.

Clients send passwords salted and iterated; only the two keys that follow from them are kept, in the
user's configs beside its quotas. The checks, their order and their texts are Kafka's
(ZkAdminManager.alterUserScramCredentials): one that fails refuses all that the request asks for the
same user. Kafka's server errors for what cannot be kept are UNACCEPTABLE_CREDENTIAL here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ..cluster.entities import NO_ENTITY_CONFIGS, refuse_unreadable
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..cluster.znodes import layout
from ..cluster.znodes.entity_names import is_node_name, sanitized, user_path
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ..security.scram_credentials import (
    MAX_SALT_BYTES,
    MECHANISM_NUMBERS,
    MIN_ITERATIONS,
    MOST_STORED_ITERATIONS,
    credential_of_salted,
    credential_text,
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
OfUser = tuple[str, Sequence[Alteration]]
"""A user, and what a request asks for it."""


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


def requested_change(asked: OfUser) -> Change:
    user, alterations = asked
    return Change(user, "user", *audited_operations(alterations))


def with_credentials(image: Image, asked: OfUser) -> tuple[str, dict[str, str]]:
    """Return the path of a user's configs, and all of them after the alterations. Raises
    Refusal.
    """
    user, alterations = asked
    path = user_path(user)
    before = image.configs.get(path, NO_ENTITY_CONFIGS)
    refuse_unreadable(f"{layout.CONFIG}/{path}", before.version)
    for alteration in reversed(alterations):  # of several mistakes Kafka tells the last
        _check(user, alteration)
    if max(Counter(alteration.mechanism for alteration in alterations).values()) > 1:
        raise Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    if not is_node_name(sanitized(user)):
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "ZooKeeper can hold no user of this name.")
    after = dict(before.configs)
    for alteration in alterations:
        mechanism = MECHANISM_NUMBERS[alteration.mechanism]
        if isinstance(alteration, ScramCredentialUpsertion):
            after[mechanism] = _stored(mechanism, alteration)
        elif after.pop(mechanism, None) is None:
            raise Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return f"{layout.CONFIG}/{path}", after


def _check(user: str, alteration: Alteration) -> None:
    """Raise Refusal for an alteration that is invalid whatever the user has."""
    if not user:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if alteration.mechanism not in MECHANISM_NUMBERS:
        raise Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(alteration, ScramCredentialDeletion):
        return
    if alteration.iterations < MIN_ITERATIONS:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if alteration.iterations > MOST_STORED_ITERATIONS:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not alteration.salted_password:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is empty.")
    if len(alteration.salt) > MAX_SALT_BYTES:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salt has more than {MAX_SALT_BYTES} bytes.")


def _stored(mechanism: str, upsertion: ScramCredentialUpsertion) -> str:
    return credential_text(
        credential_of_salted(mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations)
    )


def _requested(request: AlterUserScramCredentialsRequest) -> Iterator[Change]:
    return map(requested_change, by_user(request).items())


def _user(alteration: Alteration) -> Fields:
    return {"user": alteration.name}


SPEC = Spec(
    key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    at_controller=True,
    permissions=(ALTER_CLUSTER,),
    rows=Rows("results", AlterUserScramCredentialsResult, {"deletions": _user, "upsertions": _user}, distinct=True),
    changes=Changes("alter_user_scram_credentials", _requested),
)
