"""What a connection has to know of its client's login."""

from enum import Enum

import msgspec

from ...protocol.errors import ProtocolError
from ...security.credentials import Credentials
from ..frames import Move
from ..requests import RequestHead


class Stage(Enum):
    """How far a client has logged in, as the gateway knows it."""

    ABSENT = "absent"
    UNDER_WAY = "under way"
    DONE = "done"
    """Also where no login is asked for."""


class LoginState(msgspec.Struct, frozen=True):
    stage: Stage
    refusal: str | None = None
    """Why a client that has logged in is not served."""


ABSENT, UNDER_WAY, DONE = map(LoginState, Stage)


class Login:
    """The logins on one connection: where they pass, or where the gateway itself answers them."""

    @property
    def state(self) -> LoginState:
        return DONE

    @property
    def is_over(self) -> bool:
        """Whether no more requests of the client are read."""
        return False

    @property
    def credentials(self) -> Credentials | None:
        """The credentials with which the connection to the broker logs in before anything else goes
        there; None if it does not, or not yet.
        """
        return None

    async def answer(self, head: RequestHead, _frame: bytes) -> bytes:
        """Answer a request of a login at the gateway. Raises ProtocolError."""
        raise ProtocolError(f"no login takes the request {head.api_key}")

    def watch(self, _head: RequestHead, _frame: bytes) -> Move | None:
        """Look at a request of a login at the broker, and return what moves its response to the
        client; None to let it pass. Raises ProtocolError.
        """
        return None
