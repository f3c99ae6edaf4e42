"""Replaces what is random in the answers about delegation tokens and logins: ids, HMACs, times,
nonces, salts and signatures.
"""

import base64
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.conformance.case import Case, TokenHmacOf
from tests.conformance.logins import CHALLENGE, CLIENT_NONCE, Token

MINUTE_MS = 60_000
NEVER = -1
"""Stands for a time where there is none."""
SIGNATURE = re.compile(r"v=([A-Za-z0-9+/=]+)")


def without_secrets(answer: dict[str, Any], case: Case, tokens: Mapping[str, Token]) -> dict[str, Any]:
    names = {token.token_id: f"id of {name}" for name, token in tokens.items()}
    names |= {token.hmac: f"HMAC of {name}" for name, token in tokens.items()}
    hmac = case.body.get("hmac")
    expiry_ms = answer.get("expiry_timestamp_ms", NEVER)
    if isinstance(hmac, TokenHmacOf) and expiry_ms != NEVER:
        minutes = minutes_after(tokens[hmac.token].issued_ms, expiry_ms) if expiry_ms > 0 else "before 1970"
        return {**answer, "expiry_timestamp_ms": minutes}
    normal: dict[str, Any] = named(answer, names)
    return normal


def named(part: Any, names: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [named(each, names) for each in part]
    if isinstance(part, dict):
        return {key: READ.get(key, partial(named, names=names))(value) for key, value in timed(part)}
    return names.get(part, part) if isinstance(part, str) else part


def timed(struct: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The fields of a struct, with the times of a token as minutes after it was issued, and the
    length of a session in minutes.
    """
    if struct.get("session_lifetime_ms"):
        struct = {**struct, "session_lifetime_ms": f"{round(struct['session_lifetime_ms'] / MINUTE_MS)} minutes"}
    issued = struct.get("issue_timestamp_ms", struct.get("issue_timestamp", -1))
    if issued <= 0:
        return list(struct.items())
    return [(key, minutes_after(issued, value) if "timestamp" in key else value) for key, value in struct.items()]


def minutes_after(issued_ms: int, at_ms: int) -> str:
    return f"{round((at_ms - issued_ms) / MINUTE_MS)} minutes after it was issued"


def token_text(auth_bytes: str) -> str:
    """A server's message in a SASL exchange, given in hex."""
    said = bytes.fromhex(auth_bytes).decode(errors="replace")
    if challenge := CHALLENGE.fullmatch(said):
        nonce, _, iterations = challenge.groups()
        begins = "of the client" if nonce.startswith(CLIENT_NONCE) and nonce != CLIENT_NONCE else nonce
        return f"a challenge with {iterations} iterations and a nonce that continues the one {begins}"
    if signature := SIGNATURE.fullmatch(said):
        return f"a signature of {len(base64.b64decode(signature[1]))} bytes"
    return said


READ: dict[str, Callable[[Any], Any]] = {"auth_bytes": token_text, "mechanisms": sorted}
