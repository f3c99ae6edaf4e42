"""Who we are where we connect: the client's half of SASL (KIP-43), a mechanism each.

Rule: an exchange is a generator. It yields the tokens that are sent and is sent those that come
back; when it ends, both ends have shown what the mechanism asks of them. It raises `ProtocolError`
for an answer that must not be believed.
"""

import secrets
from collections.abc import Generator
from typing import Protocol

import msgspec

NONCE_BYTES = 24

Tokens = Generator[bytes, bytes, None]


class Credentials(Protocol):
    """How this node authenticates at others: a mechanism and an identity, and an exchange for each
    connection.
    """

    @property
    def mechanism(self) -> str: ...

    @property
    def username(self) -> str: ...

    @property
    def basis(self) -> object:
        """What the proof rests on: a connection that was authenticated on another basis is not used
        any more.
        """

    def exchange(self) -> Tokens: ...


class PlainCredentials(msgspec.Struct, frozen=True):
    """A user and password for SASL PLAIN (RFC 4616), which sends the password in one token."""

    username: str
    password: str
    mechanism: str = "PLAIN"
    basis: object = None

    def exchange(self) -> Tokens:
        yield f"\0{self.username}\0{self.password}".encode()

    def __repr__(self) -> str:
        return f"PlainCredentials({self.username!r})"


class ScramCredentials(msgspec.Struct, frozen=True):
    """A user and password for SCRAM; `mechanism` is one of `scram.HASHES`."""

    username: str
    password: str
    mechanism: str
    basis: object = None

    def exchange(self) -> Tokens:
        from .scram import HASHES, ScramClient

        client = ScramClient(HASHES[self.mechanism], self.username, self.password, secrets.token_urlsafe(NONCE_BYTES))
        challenge = yield client.first()
        client.verify((yield client.final(challenge)))

    def __repr__(self) -> str:
        return f"ScramCredentials({self.username!r}, {self.mechanism!r})"
