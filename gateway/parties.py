"""The parties of a client's connection as its channel sees them: the broker, who reviews requests,
and who knows the client's login.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ..network.peer_login import Ask
from ..network.transport import Transport
from ..protocol.api_keys import ApiKey
from ..security.caller import Caller
from ..security.credentials import Credentials
from .frames import FrameReader, FrameWriter
from .requests import RequestHead

Change = Callable[[bytes], Awaitable[bytes]]
"""Changes a response, given without its size, and returns it with its size."""
Move = Callable[[FrameReader, FrameWriter], Awaitable[None]]
"""Moves the response that was begun to the client, in whatever form the client gets it."""

AskForClient = Callable[[ApiKey, int, Any], Awaitable[Any]]
"""Has the cluster answer a request of the gateway itself as if the client had sent it. Raises
ProtocolError.
"""


class Review(Protocol):
    """The review of one request."""

    @property
    def frame(self) -> bytes:
        """The frame that goes to the broker; empty if nothing does."""

    @property
    def version(self) -> int:
        """The version of the API in which it goes there."""

    async def inquire(self, ask: AskForClient) -> None:
        """Ask the cluster what is left to know before the frame goes on. Raises ProtocolError."""

    async def answer(self, frame: bytes | None) -> bytes:
        """Return the response to the client, its size included, given the broker's response without
        its size; None if nothing went there. Raises MalformedMessage.
        """

    def abandon(self) -> None:
        """Note that the connection ended. It means nothing for a request that was answered."""


class Broker(Protocol):
    """The other end of a client's connection: one broker, or any of them."""

    async def connect(self, client: Transport) -> Transport:
        """Connect a client to it, as soon as its address is known. Raises Disconnected."""

    async def log_in(self, ask: Ask, credentials: Credentials) -> float:
        """Log in on a connection to it, and return for how many seconds that holds. Raises
        Disconnected.
        """

    def move_of(self, head: RequestHead) -> Move | None:
        """Return what moves the response to a request; None if it passes as it is."""

    def answer_of(self, head: RequestHead) -> bytes | None:
        """Return the response of the gateway itself, or None to have the broker answer."""

    def may_review(self, head: RequestHead) -> bool:
        """Whether requests of an API may be reviewed as a whole before the broker gets them."""

    def change_of(self, head: RequestHead) -> Change | None:
        """Return what changes the response to a request as a whole; None if nothing does."""

    def passes(self, frame: bytes) -> bool:
        """Whether a request that may be reviewed needs no review. Raises ProtocolError."""

    async def review(self, caller: Caller, frame: bytes) -> Review | None:
        """Review a request, given as its frame without the size; return None if it changes nothing
        after all. Raises ProtocolError.
        """


class Login(Protocol):
    """The logins on a client's connection, which tell who the caller is."""

    @property
    def is_over(self) -> bool:
        """Whether no more requests of the client are read."""

    @property
    def credentials(self) -> Credentials | None:
        """The credentials with which the connection to the broker logs in before anything else goes
        there; None if it does not, or not yet.
        """

    async def answer_of(self, head: RequestHead, frames: FrameReader) -> bytes | None:
        """Take and answer a request that is part of a login at the gateway; return None, and take
        nothing, for any other. Raises ProtocolError for one that may not be sent now.
        """

    def check(self) -> None:
        """Raise ProtocolError if the client has to log in before it is answered, and has not. All
        requests before were answered.
        """

    def may_forward(self, head: RequestHead) -> bool:
        """Whether requests of an API may go to the controller under the client's name."""

    def forwards(self, frame: bytes) -> bool:
        """Whether a request that may go to the controller does. Raises ProtocolError."""

    async def forward(self, frame: bytes) -> bytes:
        """Have the active controller answer a request, given without its size, and return the
        response with its size. Raises ProtocolError.
        """

    async def move_of(self, head: RequestHead, frames: FrameReader) -> Move | None:
        """Return what moves the response to a request that is part of a login at the broker,
        without taking it; None for any other. Raises ProtocolError, Disconnected.
        """
