"""The znode with the secret by which minicontroller nodes trust each other.

It is not one of Kafka's, whose brokers and tools ignore unknown znodes at the root of the tree.

Rule: an error message contains nothing that was read from the znode.
"""

from binascii import a2b_base64, b2a_base64

import msgspec

from .content import MalformedZnodeError, write

MEMBERSHIP = "/minicontroller/membership"
LEAST_SECRET_BYTES = 16


class MembershipZnode(msgspec.Struct):
    version: int
    secret: str


READER = msgspec.json.Decoder(MembershipZnode)


def encode_membership(secret: bytes) -> bytes:
    return write(MembershipZnode(1, b2a_base64(secret, newline=False).decode()))


def decode_membership(data: bytes | None) -> bytes:
    """Decode the secret. Raises MalformedZnodeError."""
    try:
        shared = READER.decode(data or b"")
        secret = a2b_base64(shared.secret.encode(), strict_mode=True) if shared.version == 1 else b""
    except (msgspec.DecodeError, ValueError, RecursionError):
        secret = b""
    if len(secret) < LEAST_SECRET_BYTES:
        raise MalformedZnodeError(f"{MEMBERSHIP} does not hold a secret as this version writes it")
    return secret
