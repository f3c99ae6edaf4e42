"""AlterUserScramCredentials (51) sets and removes the credentials with which users log in by SCRAM.

Clients send passwords salted and iterated; only the two keys that follow from them are kept, in the
user's configs beside its quotas. The checks, their order and their texts are Kafka's
(ZkAdminManager.alterUserScramCredentials): one that fails refuses all that the request asks for the
same user. Kafka's server errors for what cannot be kept are UNACCEPTABLE_CREDENTIAL here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from ...admin.alter_user_scram_credentials import ALTER_CLUSTER, SPEC, Alteration, audited_operations, by_user
from ...admin.changes import Change
from ...cluster.errors import Refusal
from ...cluster.znodes import layout
from ...cluster.znodes.entity_names import is_node_name, sanitized, user_path
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ...security.scram_credentials import (
    MAX_SALT_BYTES,
    MECHANISM_NUMBERS,
    MIN_ITERATIONS,
    MOST_STORED_ITERATIONS,
    credential_of_salted,
    credential_text,
)
from .controller_port import ControllerPort
from .entity_changes import EntityEdit, change_entities

Configs = Mapping[str, str]


async def handle(
    port: ControllerPort, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    if not context.may(ALTER_CLUSTER):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    altered = by_user(request)
    edits = [_edit(user, alterations) for user, alterations in altered.items()]
    outcomes = await change_entities(port, context, request, edits)
    results = [
        AlterUserScramCredentialsResult(
            user=user, error_code=outcome.code, error_message="" if outcome.refusal is None else outcome.message
        )
        for user, outcome in zip(altered, outcomes, strict=True)
    ]
    return AlterUserScramCredentialsResponse(results=sorted(results, key=lambda result: result.error_code == 0))


def _edit(user: str, alterations: Sequence[Alteration]) -> EntityEdit:
    return EntityEdit(
        Change(user, "user", *audited_operations(alterations)),
        path=f"{layout.CONFIG}/{user_path(user)}" if is_node_name(sanitized(user)) else "",
        edit=partial(_edited, user, alterations),
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


API = served(SPEC, handle)
