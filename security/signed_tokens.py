"""Checks signed tokens (JWT, RFC 7519) as Kafka's OAuthBearerValidatorCallbackHandler does
(KIP-768).

A token counts if one of the issuer's keys signed it, by an algorithm with a public key, for this
cluster and for now. The keys come from the configuration alone: what a token says about keys is not
followed, except which of the known ones it means. No error repeats any part of a token.
"""

import base64
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec
from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, JWKRegistry, OctKey, OKPKey, RSAKey

MAX_TOKEN_CHARACTERS = 64 * 1024
JAVA_SPACES = "".join(map(chr, range(0x21)))
"""The characters that Kafka takes off the ends of a text. Other spaces are part of a name: without
them it would be another user's.
"""
MAX_KEY_SET_BYTES = 1024 * 1024
MOST_KEYS = 1000
MOST_TRIED_KEYS = 20
"""How many keys are tried with a token that names none."""
MIN_RSA_BITS = 2048
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
"""Only algorithms whose keys can be public."""
UNSUPPORTED_HEADERS = frozenset({"crit", "b64"})
LAST_SECOND = 2**40
"""The latest expiry that is taken: later ones would not fit into the answer."""


class _Registry(jws.JWSRegistry):
    """The library's rules for a token, with room for a header that carries certificates."""

    max_header_length = 16 * 1024


REGISTRY = _Registry(algorithms=ALGORITHMS, strict_check_header=False)
PublicKey = RSAKey | ECKey | OKPKey


class InvalidTokenError(ValueError):
    """A token is not accepted. The message is the reason, for the log of the node."""


class KeySetError(ValueError):
    """A text is no JSON Web Key Set with usable keys."""


class TokenKeys(Protocol):
    """The issuer's keys, as they are now."""

    def named(self, key_id: str | None) -> Sequence[PublicKey]:
        """Return the keys with this id, or all keys for None. An unknown id may make the owner of
        the keys look for newer ones.
        """


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """The claims that a token has to make, by Kafka's keys."""

    audiences: frozenset[str] = frozenset()
    """`sasl.oauthbearer.expected.audience`; empty for any."""
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew_seconds: int = 30


class VerifiedToken(msgspec.Struct, frozen=True):
    subject: str
    expires_ms: int


def read_key_set(text: bytes) -> tuple[PublicKey, ...]:
    """Read a JSON Web Key Set (RFC 7517), leaving out keys that cannot check a signature. Raises
    KeySetError.
    """
    try:
        if len(text) > MAX_KEY_SET_BYTES:
            raise KeySetError(f"it has more than {MAX_KEY_SET_BYTES} bytes")
        keys = msgspec.json.decode(text, type=_KeySet).keys
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise KeySetError("it is no JSON Web Key Set") from None
    usable = tuple(key for each in keys[:MOST_KEYS] if (key := _public_key(each)) is not None)
    if not usable:
        raise KeySetError("it has no public key that can check a signature")
    return usable


def verified_token(token: str, keys: TokenKeys, rules: TokenRules, now: float) -> VerifiedToken:
    """Return what a token proves at this time, in seconds since 1970. Raises InvalidTokenError."""
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise InvalidTokenError("it is too long")
    claims = _claims(_signed_content(token, keys))
    expires = _time(claims, "exp", required=True)
    issued = _time(claims, "iat", required=True)
    begins = _time(claims, "nbf", required=False)
    if expires <= now:
        raise InvalidTokenError("it has expired")
    if expires <= issued or expires > LAST_SECOND:
        raise InvalidTokenError("its times contradict each other")
    if begins > now + rules.clock_skew_seconds:
        raise InvalidTokenError("it is not valid yet")
    _check_target(claims, rules)
    _check_scope(claims.get(rules.scope_claim))
    subject = claims.get(rules.subject_claim)
    name = subject.strip(JAVA_SPACES) if isinstance(subject, str) else ""
    if not name:
        raise InvalidTokenError("it names nobody")
    return VerifiedToken(name, int(expires * 1000))


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None


def _public_key(fields: Mapping[str, Any]) -> PublicKey | None:
    if fields.get("use", "sig") != "sig":
        return None
    try:
        with _without_warnings():
            key = JWKRegistry.import_key(dict(fields))
        if isinstance(key, OctKey) or key.is_private:  # shared or revealed: whoever reads it could sign
            return None
        if isinstance(key, RSAKey) and key.public_key.key_size < MIN_RSA_BITS:
            return None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return key


def _signed_content(token: str, keys: TokenKeys) -> bytes:
    header = _header(token)
    with _without_warnings():
        for key in keys.named(header.kid)[:MOST_TRIED_KEYS]:
            try:
                return jws.deserialize_compact(token, key, registry=REGISTRY).payload
            except (JoseError, ValueError, TypeError, KeyError, RecursionError):
                continue
    raise InvalidTokenError("no key that is known here signed it")


def _header(token: str) -> _Header:
    parts = token.split(".", 3)
    try:
        if len(parts) != 3 or not all(parts):
            raise InvalidTokenError("it is no signed token")
        _check_names(base64.urlsafe_b64decode(f"{parts[0]}==="))
        fields = jws.extract_compact(token.encode(), registry=REGISTRY).headers()
        header = msgspec.convert(fields, _Header)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError, msgspec.ValidationError):
        raise InvalidTokenError("it is no signed token") from None
    if header.alg not in ALGORITHMS or not UNSUPPORTED_HEADERS.isdisjoint(fields):
        raise InvalidTokenError("its algorithm is not accepted")
    return header


def _claims(content: bytes) -> Mapping[str, Any]:
    try:
        _check_names(content)
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise InvalidTokenError("it has no claims") from None


def _check_names(text: bytes) -> None:
    """Raise ValueError for JSON with a name that stands twice in one object, as Kafka's library
    does: whoever wrote it and whoever reads it could take different ones.
    """
    json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: Sequence[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name stands twice")


def _time(claims: Mapping[str, Any], name: str, *, required: bool) -> float:
    value = claims.get(name)
    if value is None and not required:
        return -math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= -LAST_SECOND:
        raise InvalidTokenError(f"its {name} is no time")
    return value


def _check_target(claims: Mapping[str, Any], rules: TokenRules) -> None:
    """Check that the token was issued by the expected issuer, for this cluster."""
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidTokenError("another issuer issued it")
    audience = claims.get("aud")
    named = set(_texts([audience] if isinstance(audience, str) else audience))
    if rules.audiences and not rules.audiences & named:
        raise InvalidTokenError("it was issued for somebody else")


def _check_scope(scope: object) -> None:
    """Check the form of a scope, whose contents decide nothing here."""
    if isinstance(scope, str):
        is_wrong = not scope.strip(JAVA_SPACES)
    else:
        words = [word.strip(JAVA_SPACES) for word in _texts(scope)]
        is_wrong = isinstance(scope, list) and (
            len(words) != len(scope) or len(set(words)) != len(words) or "" in words
        )
    if is_wrong:
        raise InvalidTokenError("its scope has no valid form")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence the library's warnings of short keys, which are left out, and of EdDSA as a name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        yield


def _texts(value: object) -> Iterable[str]:
    return (each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
