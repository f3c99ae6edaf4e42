"""The znodes of delegation tokens, and the notifications that they have changed.

Rule: a token's HMAC is a secret that follows from its id and the key of the cluster; no znode holds
it.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ..entities import TokenInformation
from .content import Int, MalformedZnodeError, check_fit, read, write
from .entity_names import is_node_name, sanitized, unsanitized

ROOT = "/delegation_token/tokens"
CHANGES = "/delegation_token/token_changes"
CHANGE_PREFIX = f"{CHANGES}/token_change_"

PATHS = (ROOT, CHANGES)
"""The znodes that a broker of Kafka with a secret key creates with null data when it starts."""

Timestamp = Annotated[int, Meta(ge=-1, le=2**63 - 1)]


class TokenZnode(Struct, kw_only=True, rename="camel"):
    issue_timestamp: Timestamp
    renewers: tuple[str, ...] = ()
    token_requester: str = ""
    token_id: str
    owner: str
    expiry_timestamp: Timestamp
    max_timestamp: Timestamp
    version: Int


READER = msgspec.json.Decoder(TokenZnode)


def token_path(token_id: str) -> str:
    return f"{ROOT}/{token_id}"


def encode_token(token: TokenInformation) -> bytes:
    return write(
        TokenZnode(
            version=3,
            owner=sanitized(token.owner),
            token_requester=sanitized(token.requester),
            renewers=tuple(map(sanitized, token.renewers)),
            issue_timestamp=token.issued_ms,
            max_timestamp=token.max_ms,
            expiry_timestamp=token.expires_ms,
            token_id=token.token_id,
        )
    )


def decode_token(token_id: str, data: bytes | None, version: int) -> TokenInformation:
    """Decode the token in a znode of this name and version. Before Kafka 3.3 the requester was
    always the owner.
    """
    found = read("the delegation token", data, READER)
    if found.token_id != token_id:
        raise MalformedZnodeError("the znode holds another token than its name says")
    principals = [unsanitized(each) for each in (found.owner, found.token_requester or found.owner, *found.renewers)]
    check_fit("a principal of the delegation token", principals)
    if not all(":" in each for each in principals):
        raise MalformedZnodeError("a principal of the delegation token is not of the form Type:name")
    owner, requester, *renewers = principals
    return TokenInformation(
        token_id=token_id,
        owner=owner,
        requester=requester,
        renewers=tuple(renewers),
        issued_ms=found.issue_timestamp,
        expires_ms=found.expiry_timestamp,
        max_ms=found.max_timestamp,
        version=version,
    )


def encode_token_change(token_id: str) -> bytes:
    return token_id.encode()


def decode_token_change(data: bytes | None) -> str:
    try:
        token_id = (data or b"").decode()
    except UnicodeDecodeError as error:
        raise MalformedZnodeError(f"the notification is no text: {data!r:.80}") from error
    if not is_node_name(token_id):
        raise MalformedZnodeError(f"the notification names no token: {data!r:.80}")
    return token_id
