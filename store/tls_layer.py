"""TLS between a socket that does not block and the two threads that share it.

Rule: a `TlsLayer` does no input or output, and its owner calls it by one thread at a time, because
OpenSSL cannot read and write for two threads at once. What arrives is given to `decrypt`; what is
to be sent is what `encrypt` and `outgoing` return, in this order.
"""

import errno
import ssl

TO_BE_CHECKED = {
    "CERTIFICATE_VERIFY_FAILED": "zookeeper.ssl.truststore.location names whom to trust",
    "WRONG_VERSION_NUMBER": "the server does not speak TLS at this port: it has a secureClientPort",
    "RECORD_LAYER_FAILURE": "the server does not speak TLS at this port: it has a secureClientPort",
    "TLSV1_ALERT_PROTOCOL_VERSION": "zookeeper.ssl.enabled.protocols has no version that the server speaks",
    "UNSUPPORTED_PROTOCOL": "zookeeper.ssl.enabled.protocols has no version that the server speaks",
    "NO_PROTOCOLS_AVAILABLE": "zookeeper.ssl.enabled.protocols has no version that is spoken here",
    **dict.fromkeys(
        (
            "SSLV3_ALERT_BAD_CERTIFICATE",
            "SSLV3_ALERT_CERTIFICATE_EXPIRED",
            "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
            "SSLV3_ALERT_HANDSHAKE_FAILURE",
            "TLSV13_ALERT_CERTIFICATE_REQUIRED",
            "TLSV1_ALERT_UNKNOWN_CA",
        ),
        "the server wants a certificate that it trusts: zookeeper.ssl.keystore.location names ours",
    ),
}
"""Advice on each error, by OpenSSL's name of it."""
WRONG_NAME = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH."""


class TlsLayer:
    """The client's end of a TLS connection to `host`, which the certificate must name if the
    context checks names.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.ended = False
        """The server has ended the connection in good order."""

    def handshake(self, received: bytes) -> bool:
        """Go on with the handshake and return whether it is done. Raises OSError."""
        self._incoming.write(received)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise explained(error) from None
        return True

    def outgoing(self) -> bytes:
        return self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def decrypt(self, received: bytes) -> bytes:
        """Return what the server has said so far; empty also at its end. Raises OSError."""
        self._incoming.write(received)
        parts = []
        try:
            while part := self._tls.read(1 << 16):
                parts.append(part)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            raise explained(error) from None
        return b"".join(parts)


def explained(error: ssl.SSLError) -> OSError:
    """Return the error as one of the connection, with a text that says what to check."""
    reason = error.reason or "no reason is given"
    if isinstance(error, ssl.SSLCertVerificationError):
        told = error.verify_message.rstrip(".")
        if error.verify_code in WRONG_NAME:
            text = f"the server's certificate is another host's: {told}"
        else:
            text = f"the server's certificate is not trusted: {told}; {TO_BE_CHECKED['CERTIFICATE_VERIFY_FAILED']}"
    else:
        words = reason.replace("_", " ").lower()
        advice = TO_BE_CHECKED.get(reason)
        text = f"TLS fails: {words}{'' if advice is None else f'; {advice}'}"
    return OSError(errno.EPROTO, text)
