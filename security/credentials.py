"""How this program authenticates where it connects: the client's side of SASL (KIP-43), one class
for each mechanism.

An exchange is a generator. It yields the tokens to send, and receives those of the server. It
returns when both ends have authenticated as the mechanism demands, and raises `ProtocolError` for
an answer that must not be trusted.
"""

import secrets
from collections.abc import Generator
from typing import Protocol

import msgspec

NONCE_BYTES = 24

Tokens = Generator[bytes, bytes, None]


class Credentials(Protocol):
    """A mechanism and an identity, which begin an exchange on each connection."""

    @property
    def mechanism(self) -> str: ...

    @property
    def username(self) -> str: ...

    @property
    def basis(self) -> object:
        """A value that changes when these credentials do. A connection that authenticated with
        another value is not used any more.
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
    """A user and password for SCRAM; `mechanism` is one of `scram_credentials.HASHES`."""

    username: str
    password: str
    mechanism: str
    basis: object = None
    by_token: bool = False
    """Whether the name and password are the id and HMAC of a delegation token (KIP-48)."""

    def exchange(self) -> Tokens:
        from .scram import ScramClient
        from .scram_credentials import HASHES

        nonce = secrets.token_urlsafe(NONCE_BYTES)
        client = ScramClient(HASHES[self.mechanism], self.username, self.password, nonce, by_token=self.by_token)
        challenge = yield client.first()
        client.verify((yield client.final(challenge)))

    def __repr__(self) -> str:
        return f"ScramCredentials({self.username!r}, {self.mechanism!r})"
