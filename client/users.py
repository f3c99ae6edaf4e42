"""Users with passwords for SCRAM (KIP-554).

Rule: a password leaves this module only salted and iterated, as Kafka's own clients send it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import Results, check, result_of


class ScramCredentialInfo(msgspec.Struct, frozen=True):
    """A user's credential as a cluster shows it; the keys are never shown."""

    mechanism: str
    """`SCRAM-SHA-256` or `SCRAM-SHA-512`."""
    iterations: int


class ScramUpsertion(msgspec.Struct, frozen=True):
    """A password that a user is to have for a mechanism."""

    mechanism: str
    password: str
    iterations: int = 4096

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.mechanism!r}, iterations={self.iterations})"


class ScramDeletion(msgspec.Struct, frozen=True):
    """A mechanism by which a user is no longer to log in."""

    mechanism: str


class UserCalls(Calls):
    async def describe_user_scram_credentials(
        self, users: Sequence[str] = ()
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        """Return the mechanisms by which users log in, of all users if none is named (KIP-554).
        Raises AdminError.
        """
        from ..protocol.messages import describe_user_scram_credentials as messages
        from ..security.scram_credentials import MECHANISM_NUMBERS

        request = messages.DescribeUserScramCredentialsRequest(
            users=[messages.UserName(name=name) for name in users] or None
        )
        answer = await self._batches.ask_any(request, messages.DescribeUserScramCredentialsResponse)
        check(answer.error_code, answer.error_message)
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

    async def alter_user_scram_credentials(
        self, alterations: Mapping[str, Sequence[ScramUpsertion | ScramDeletion]]
    ) -> Results[str, None]:
        """Set and remove passwords, by user (KIP-554). All that is asked for one user is done, or
        nothing of it.
        """
        import secrets

        from ..protocol.messages import alter_user_scram_credentials as messages
        from ..security.scram_credentials import MECHANISM_NUMBERS, SALT_BYTES, salted_password

        numbers = {name: number for number, name in MECHANISM_NUMBERS.items()}

        def upsertion(user: str, wanted: ScramUpsertion) -> messages.ScramCredentialUpsertion:
            salt = secrets.token_bytes(SALT_BYTES)
            return messages.ScramCredentialUpsertion(
                name=user,
                mechanism=numbers[wanted.mechanism],
                iterations=wanted.iterations,
                salt=salt,
                salted_password=salted_password(wanted.mechanism, wanted.password.encode(), salt, wanted.iterations),
            )

        def request(users: Sequence[str], _version: int) -> WireStruct:
            wanted = [(user, each) for user in users for each in alterations[user]]
            return messages.AlterUserScramCredentialsRequest(
                deletions=[
                    messages.ScramCredentialDeletion(name=user, mechanism=numbers[each.mechanism])
                    for user, each in wanted
                    if isinstance(each, ScramDeletion)
                ],
                upsertions=[upsertion(user, each) for user, each in wanted if isinstance(each, ScramUpsertion)],
            )

        def read(answer: messages.AlterUserScramCredentialsResponse) -> Results[str, None]:
            return {row.user: result_of(row.error_code, row.error_message, None) for row in answer.results}

        return await self._batches.write(list(alterations), messages.AlterUserScramCredentialsResponse, request, read)
