"""The key of a cluster's delegation tokens (KIP-48), and the HMACs that follow from it.

Every node and broker has the same key in its configuration and computes the HMAC of a token from
the token's id, so no HMAC is stored. A client proves that it knows the HMAC as it would prove a
password. No repr shows the key.
"""

import base64
import hmac

from ..process.settings.node_config import NodeConfig

KEY_NAMES = ("delegation.token.secret.key", "delegation.token.master.key")
"""The key's name, and its older name, which is read if the other is not set."""


class TokenKey:
    """The secret from which the HMACs of all delegation tokens are made."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._secret, token_id.encode(), "sha512")


def token_key(config: NodeConfig) -> TokenKey | None:
    secrets = (config.optional_string(name) for name in KEY_NAMES)
    secret = next((each for each in secrets if each is not None), "")
    return TokenKey(secret) if secret else None


def token_password(token_hmac: bytes) -> str:
    return base64.b64encode(token_hmac).decode()
