"""A node's view of the delegation tokens: which token has an HMAC, and what a client that logs in
by a token has to prove.

Rule: a token is valid from the moment when this node knows of it until it expires or this node
knows that it was removed. HMACs are secrets, and are never logged.
"""

import hmac
import logging
from collections import Counter

from ...clock import now_ms
from ...cluster.cache import ImageChanges
from ...cluster.entities import TokenInformation
from ...cluster.entity_paths import TOKENS
from ...cluster.image import Image
from ...security.delegation_tokens import TokenKey, token_password
from ...security.principal import USER
from ...security.scram_credentials import ScramCredential, TokenCredential, derived_credential

log = logging.getLogger("minicontroller.security")

MAX_CHARACTERS = 8 * 1024 * 1024
"""The most characters in the tokens that one principal has created: some 20,000 usual ones. Whoever
may log in may create tokens, and ZooKeeper and every node keep them in memory.
"""
MAX_CHARACTERS_OF_TOKEN = 64 * 1024
"""The most characters in one token, because many may be created at the same time."""
SIZE_OF_TOKEN = 250
"""The size of what a token has besides principals."""


class DelegationTokens:
    """The delegation tokens that a node knows. Without a key it knows none."""

    def __init__(self, key: TokenKey | None) -> None:
        self._key = key
        self._tokens: dict[str, TokenInformation] = {}
        self._hmacs: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        """The ids of the tokens by HMAC."""
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        """The credentials by token and mechanism. Each is made when it is needed first, because
        that takes some milliseconds.
        """
        self._other_key_is_known = False
        self._characters: Counter[str] = Counter()
        """How many characters the tokens have that a principal has created, by principal."""

    @property
    def key(self) -> TokenKey | None:
        return self._key

    def publish(self, before: Image, after: Image, changes: ImageChanges) -> None:
        if self._key is None or after.tokens is before.tokens:
            return
        for path in changes.entities:
            if not path.startswith(TOKENS):
                continue
            token_id = path.removeprefix(TOKENS)
            token = after.tokens.get(token_id)
            if token is None:
                self._forget(token_id)
                continue
            self._count(self._tokens.get(token_id), -1)
            self._count(token, 1)
            self._tokens[token_id] = token
            if token_id not in self._hmacs:
                found = self._hmacs[token_id] = self._key.hmac(token_id)
                self._ids[found] = token_id

    def _count(self, token: TokenInformation | None, sign: int) -> None:
        if token is not None:
            self._characters[token.requester] += sign * _size(token)

    def _forget(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            self._count(token, -1)
            if not self._characters[token.requester]:
                del self._characters[token.requester]
            del self._ids[self._hmacs.pop(token_id)]
            for mechanism in [name for each, name in self._credentials if each == token_id]:
                del self._credentials[token_id, mechanism]

    def all(self) -> list[tuple[TokenInformation, bytes]]:
        """Return all tokens with their HMACs, those that have expired included."""
        return [(token, self._hmacs[token_id]) for token_id, token in self._tokens.items()]

    def have_room_for(self, token: TokenInformation) -> bool:
        """Return whether the principal that creates a token may have one more of this size."""
        size = _size(token)
        return size <= MAX_CHARACTERS_OF_TOKEN and self._characters[token.requester] + size <= MAX_CHARACTERS

    def with_hmac(self, token_hmac: bytes) -> TokenInformation | None:
        token_id = self._ids.get(token_hmac)
        return None if token_id is None else self._tokens[token_id]

    def credential(self, token_id: str, mechanism: str) -> TokenCredential | None:
        """Return what a client that logs in by this token has to prove, or None if nobody can: the
        token is unknown or has expired. Kafka makes a user of any owner; here an owner that is no
        user, such as a group, does not become the user of the same name.
        """
        token = self._tokens.get(token_id)
        kind, _, name = ("", "", "") if token is None else token.owner.partition(":")
        if token is None or kind != USER or not name or token.has_expired(now_ms()):
            return None
        credential = self._credentials.get((token_id, mechanism))
        if credential is None:
            credential = derived_credential(mechanism, token_password(self._hmacs[token_id]))
            self._credentials[token_id, mechanism] = credential
        return TokenCredential(credential, name, token.expires_ms)

    def warn_of_impersonation(self, *, has_authorizer: bool) -> None:
        """Warn if every user may create tokens for every other one."""
        if self._key is not None and not has_authorizer:
            log.warning(
                "delegation.token.secret.key is set and authorizer.class.name is not: every user who logs in may "
                "create tokens with which to log in as any other user, as in Kafka without an authorizer"
            )

    def compare_keys(self, token_id: str, token_hmac: bytes) -> None:
        """Warn once if the controller has made the HMAC of a new token with another key than this
        node has.
        """
        ours = b"" if self._key is None else self._key.hmac(token_id)
        if not self._other_key_is_known and not hmac.compare_digest(ours, token_hmac):
            self._other_key_is_known = True
            log.warning(
                "the active controller has another delegation.token.secret.key than this node%s: nobody can log in "
                "here by the tokens that it creates",
                ", which has none" if self._key is None else "",
            )


def _size(token: TokenInformation) -> int:
    return SIZE_OF_TOKEN + len(token.owner) + len(token.requester) + sum(map(len, token.renewers))
