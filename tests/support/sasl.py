"""Logins by SASL on a raw connection, and tokens that nobody signed."""

import base64
import json
import time

import msgspec

from minicontroller.security.credentials import Credentials, Tokens
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


class UnsignedCredentials(msgspec.Struct, frozen=True):
    """A token of OAUTHBEARER that nobody signed: Kafka takes it only where nothing else is
    configured.
    """

    username: str
    mechanism: str = "OAUTHBEARER"
    basis: object = None

    def exchange(self) -> Tokens:
        now = int(time.time())
        claims = {"sub": self.username, "iat": now, "exp": now + 600}
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        yield f"n,,\x01auth=Bearer {NOBODY_SIGNED}.{payload}.\x01\x01".encode()
