"""The tokens with which a node logs in to other nodes by OAUTHBEARER, and when they are replaced
(KIP-768).

A node does not check who signed its own token: the nodes to which it is shown do. It reads from it
only whose it is and how long it counts. No error repeats any part of a token or of an answer.
"""

import base64
import binascii
from typing import Any

import msgspec

from .bearer_message import SIGNS
from .signed_tokens import JAVA_SPACES, LAST_SECOND, MAX_TOKEN_CHARACTERS

MAX_SUBJECT_CHARACTERS = 1000
TOKEN_ERRORS = frozenset(
    {
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""The errors of a token endpoint (RFC 6749). Other texts of its answer are not repeated."""
OK = (200, 201)


class LoginTokenError(Exception):
    """There is no token to log in with. The message is a phrase for the log."""


class LoginToken(msgspec.Struct, frozen=True):
    """A token, whose it says that it is, and its times in seconds since 1970."""

    text: str
    subject: str
    expires: float
    issued: float | None

    def __repr__(self) -> str:
        return f"LoginToken of {self.subject!r}"


class RefreshRules(msgspec.Struct, frozen=True):
    """When a token is replaced: `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60
    buffer_seconds: float = 300


def read_login_token(text: str, subject_claim: str, now: float) -> LoginToken:
    """Read a token that counts now. Raises LoginTokenError."""
    text = text.strip()
    parts = text.split(".", 3)
    if len(text) > MAX_TOKEN_CHARACTERS:
        raise LoginTokenError("the token is too long")
    if len(parts) != 3 or not all(parts) or not SIGNS.issuperset(text):
        raise LoginTokenError("there is no signed token")
    claims = _claims(parts[1])
    subject, expires, issued = claims.get(subject_claim), _time(claims.get("exp")), _time(claims.get("iat"))
    name = subject.strip(JAVA_SPACES) if isinstance(subject, str) and len(subject) <= MAX_SUBJECT_CHARACTERS else ""
    if not name:
        raise LoginTokenError(f"the token names nobody in its claim {subject_claim}")
    if expires is None:
        raise LoginTokenError("the token does not say when it expires")
    if expires <= now:
        raise LoginTokenError("the token has expired")
    return LoginToken(text, name, expires, issued)


def token_of_answer(status: int, body: bytes) -> str:
    """Return the token in the answer of a token endpoint. Raises LoginTokenError."""
    try:
        answer = msgspec.json.decode(body, type=_EndpointAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = _EndpointAnswer()
    if status not in OK:
        error = f" and the error {answer.error}" if answer.error in TOKEN_ERRORS else ""
        raise LoginTokenError(f"the answer has the status {status}{error}")
    if not answer.access_token:
        raise LoginTokenError("the answer has no access_token")
    return answer.access_token


def seconds_until_refresh(token: LoginToken, rules: RefreshRules, now: float, share: float) -> float:
    """Return after how many seconds a token is replaced; `share`, from 0 to 1, is that of the
    jitter.

    A token that was old when it came is not asked for again and again: at least a tenth of what is
    left of it, and a second, go by.
    """
    left = token.expires - now
    begin = now if token.issued is None else min(token.issued, now)
    wanted = begin + (token.expires - begin) * (rules.window_factor + rules.window_jitter * share)
    if rules.min_period_seconds + rules.buffer_seconds <= left:
        wanted = max(min(wanted, token.expires - rules.buffer_seconds), now + rules.min_period_seconds)
    return max(wanted - now, left / 10, 1.0)


class _EndpointAnswer(msgspec.Struct):
    access_token: str = ""
    error: str = ""


def _claims(part: str) -> dict[str, Any]:
    try:
        content = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(content, type=dict[str, Any])
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise LoginTokenError("there is no signed token") from None


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LAST_SECOND <= value <= LAST_SECOND:
        return None
    return value
