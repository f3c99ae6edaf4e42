"""Logins by SASL on a raw connection, and tokens that nobody signed."""

import base64
import json

from minicontroller.controller.security.credentials import Credentials
from tests.support.wire import Wire

NOBODY_SIGNED = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")


def log_in(wire: Wire, credentials: Credentials) -> int:
    """Log in on a connection, and return the code of the last answer."""
    answer = wire.ask("SaslHandshake", 1, {"mechanism": credentials.mechanism})
    if answer["error_code"]:
        return int(answer["error_code"])
    exchange = credentials.exchange()
    token = next(exchange)
    while True:
        answer = wire.ask("SaslAuthenticate", 2, {"auth_bytes": token})
        if answer["error_code"]:
            return int(answer["error_code"])
        try:
            token = exchange.send(bytes.fromhex(answer["auth_bytes"]))
        except StopIteration:
            return 0


def unsigned_token(claims: dict[str, object]) -> bytes:
    """The first message of OAUTHBEARER with a token that Kafka takes only where nothing else is
    configured.
    """
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"n,,\x01auth=Bearer {NOBODY_SIGNED}.{payload}.\x01\x01".encode()
