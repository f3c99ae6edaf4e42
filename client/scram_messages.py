"""Makes requests about SCRAM users, and results of their responses; pure but for fresh salts.

A password leaves this module only salted and iterated, as Kafka's own clients send it.
"""

import secrets
from collections.abc import Mapping, Sequence

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ..protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from ..protocol.schema import WireStruct
from ..security.scram_credentials import MECHANISM_NUMBERS, SALT_BYTES, salted_password
from .errors import AdminError
from .model import Results, ScramCredentialInfo, ScramDeletion, ScramUpsertion, result_of

NUMBERS = {name: number for number, name in MECHANISM_NUMBERS.items()}


def question(users: Sequence[str]) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in users] or None)


def described(answer: WireStruct) -> Results[str, tuple[ScramCredentialInfo, ...]]:
    """Return the credentials of each user. Raises AdminError if the request was refused."""
    assert isinstance(answer, DescribeUserScramCredentialsResponse)
    if answer.error_code != ErrorCode.NONE:
        raise AdminError(answer.error_code, answer.error_message)
    return {
        row.user: result_of(
            row.error_code,
            row.error_message,
            tuple(
                ScramCredentialInfo(MECHANISM_NUMBERS.get(info.mechanism, str(info.mechanism)), info.iterations)
                for info in row.credential_infos
            ),
        )
        for row in answer.results
    }


def alteration(
    alterations: Mapping[str, Sequence[ScramUpsertion | ScramDeletion]], users: Sequence[str]
) -> AlterUserScramCredentialsRequest:
    wanted = [(user, each) for user in users for each in alterations[user]]
    return AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=user, mechanism=NUMBERS[each.mechanism])
            for user, each in wanted
            if isinstance(each, ScramDeletion)
        ],
        upsertions=[_upsertion(user, each) for user, each in wanted if isinstance(each, ScramUpsertion)],
    )


def altered(answer: WireStruct) -> Results[str, None]:
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    return {row.user: result_of(row.error_code, row.error_message, None) for row in answer.results}


def _upsertion(user: str, wanted: ScramUpsertion) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(SALT_BYTES)
    return ScramCredentialUpsertion(
        name=user,
        mechanism=NUMBERS[wanted.mechanism],
        iterations=wanted.iterations,
        salt=salt,
        salted_password=salted_password(wanted.mechanism, wanted.password.encode(), salt, wanted.iterations),
    )
