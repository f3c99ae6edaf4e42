"""AlterUserScramCredentials (51) sets and removes the credentials with which users log in by SCRAM.

Clients send passwords salted and iterated; only the two keys that follow from them are kept, in the
user's configs beside its quotas. The checks, their order and their texts are Kafka's
(ZkAdminManager.alterUserScramCredentials): one that fails refuses all that the request asks for the
same user. Kafka's server errors for what cannot be kept are UNACCEPTABLE_CREDENTIAL here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ..errors import Refusal
from ..requests.changes import RequestedChange
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Changes, Fields, Rows, Spec
from ..security.scram_credentials import (
    MAX_SALT_BYTES,
    MECHANISM_NUMBERS,
    MIN_ITERATIONS,
    MOST_STORED_ITERATIONS,
    credential_of_salted,
    credential_text,
)
from ..znodes import layout
from ..znodes.entity_names import is_node_name, sanitized, user_path
from .entity_changes import EntityEdit, change_entities
from .node import Node

ALTER_CLUSTER = Permission(
    AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for every user that the request names"
)
UNKNOWN = "unknown"
"""Stands in the audit log for a mechanism that does not exist."""

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion
Configs = Mapping[str, str]


async def handle(
    node: Node, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    if not context.may(ALTER_CLUSTER):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    by_user = _by_user(request)
    edits = [_edit(user, alterations) for user, alterations in by_user.items()]
    changes = await change_entities(node, context, request, edits)
    results = [
        AlterUserScramCredentialsResult(
            user=user, error_code=change.code, error_message="" if change.refusal is None else change.message
        )
        for user, change in zip(by_user, changes, strict=True)
    ]
    return AlterUserScramCredentialsResponse(results=sorted(results, key=lambda result: result.error_code == 0))


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[Alteration]]:
    """Return what a request asks for each user, deletions first."""
    by_user: dict[str, list[Alteration]] = {}
    alterations: list[Alteration] = [*request.deletions, *request.upsertions]
    for alteration in alterations:
        by_user.setdefault(alteration.name, []).append(alteration)
    return by_user


def _edit(user: str, alterations: Sequence[Alteration]) -> EntityEdit:
    operations, kinds = _audited(alterations)
    return EntityEdit(
        kind="user",
        name=user,
        path=f"{layout.CONFIG}/{user_path(user)}" if is_node_name(sanitized(user)) else "",
        edit=partial(_edited, user, alterations),
        operations=operations,
        operation_kinds=kinds,
    )


def _edited(user: str, alterations: Sequence[Alteration], configs: Configs | None) -> Configs:
    """Return a user's configs after the alterations. Raises Refusal."""
    for alteration in reversed(alterations):  # of several mistakes Kafka tells the last
        _check(user, alteration)
    if max(Counter(alteration.mechanism for alteration in alterations).values()) > 1:
        raise Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    if configs is None:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "ZooKeeper can hold no user of this name.")
    after = dict(configs)
    for alteration in alterations:
        mechanism = MECHANISM_NUMBERS[alteration.mechanism]
        if isinstance(alteration, ScramCredentialUpsertion):
            after[mechanism] = _stored(mechanism, alteration)
        elif after.pop(mechanism, None) is None:
            raise Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return after


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


def _audited(alterations: Sequence[Alteration]) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the operands, of which none is a secret, and the kinds of operation by mechanism."""
    operations: dict[str, str | None] = {}
    kinds: dict[str, str] = {}
    for alteration in alterations:
        mechanism = MECHANISM_NUMBERS.get(alteration.mechanism, UNKNOWN)
        is_set = isinstance(alteration, ScramCredentialUpsertion)
        operations[mechanism] = "" if is_set else None
        kinds[mechanism] = "set" if is_set else "delete"
    return operations, kinds


def _requested(request: AlterUserScramCredentialsRequest) -> Iterator[RequestedChange]:
    for user, alterations in _by_user(request).items():
        yield RequestedChange(user, "user", *_audited(alterations))


def _user(alteration: Alteration) -> Fields:
    return {"user": alteration.name}


API = Spec(
    key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    handler=handle,
    at_controller=True,
    permissions=(ALTER_CLUSTER,),
    rows=Rows("results", AlterUserScramCredentialsResult, {"deletions": _user, "upsertions": _user}, distinct=True),
    changes=Changes("alter_user_scram_credentials", _requested),
)
