"""Settings of nodes that log in to each other by OAUTHBEARER over TLS, each with its own token."""

import json
import time
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.certificates import Authority

LOGIN = "org.apache.kafka.common.security.oauthbearer"
OF_NODES = "listener.name.internal.oauthbearer.sasl"


def settings(folder: Path, authority: Authority, keys: Path, number: int) -> dict[str, str]:
    """Those of one node. Its JAAS text is only needed by Kafka."""
    return {
        "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:SASL_SSL",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.internal.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OF_NODES}.jaas.config": f"{LOGIN}.OAuthBearerLoginModule required;",
        f"{OF_NODES}.server.callback.handler.class": f"{LOGIN}.OAuthBearerValidatorCallbackHandler",
        f"{OF_NODES}.login.callback.handler.class": f"{LOGIN}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.token.endpoint.url": (folder / f"token-{number}").as_uri(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(f"node-{number}", "127.0.0.1")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }


class Issuer:
    """Signs the tokens of nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.issued: list[str] = []
        self._key = RSAKey.generate_key(2048, {"kid": "k1"})
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}))

    def issue(self, number: int, seconds: float) -> None:
        """A token in the file of a node, for so long."""
        now = time.time()
        claims = {"sub": f"node-{number}", "iat": now - 10, "exp": now + seconds}
        self.issued.append(jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self._key, algorithms=["RS256"]))
        (self.folder / f"token-{number}").write_text(self.issued[-1])
