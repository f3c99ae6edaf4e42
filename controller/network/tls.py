"""TLS at the client's end of a connection: a `Transport` over trio's SSLStream, and explanations of
its failures.

Any error of the ssl library is raised as `Disconnected`, with a text that says what to check. No
text shows any part of a key.
"""

import ssl

import trio

from .transport import READ_BYTES, Disconnected

Broken = (trio.BrokenResourceError, trio.ClosedResourceError)

CLOSED = "the connection was closed"
NO_HANDSHAKE = "it ended the connection, as a listener does whose security protocol is not SSL or SASL_SSL"
NOT_TLS = "it does not speak TLS, as a listener does whose security protocol is SSL or SASL_SSL"
TOO_OLD = "it speaks no version of TLS that is allowed here (ssl.enabled.protocols)"
REASONS = {
    **dict.fromkeys(
        ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"), NOT_TLS
    ),
    **dict.fromkeys(("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE"), TOO_OLD),
}
"""Explanations by OpenSSL's name of the error."""
CLIENT_CERTIFICATE = frozenset(
    {
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "TLSV1_ALERT_UNKNOWN_CA",
    }
)
"""Alerts of a server that does not accept the client's certificate."""
WRONG_NAME = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH."""
OUT_OF_TIME = {9: "its certificate is not valid yet, by this machine's clock", 10: "its certificate has expired"}


class TlsTransport:
    """A transport over TLS, made by `start_tls`."""

    def __init__(self, stream: "trio.SSLStream[trio.SocketStream]") -> None:
        self._stream = stream

    async def receive(self, most: int = READ_BYTES, *, expected: bool = True) -> bytes:  # noqa: ARG002 - trio's stream decides
        try:
            return bytes(await self._stream.receive_some(most))
        except Broken as error:
            raise Disconnected(_why(error, CLOSED)) from error

    def send_nowait(self, _data: bytes) -> int:
        """Send nothing, because encryption may have to wait for the other end."""
        return 0

    async def send_rest(self, data: memoryview) -> None:
        try:
            await self._stream.send_all(data)
        except Broken as error:
            raise Disconnected(_why(error, CLOSED)) from error

    def close(self) -> None:
        """Close without TLS's close_notify, which would have to be waited for. A task that waits
        for the stream gets Disconnected.
        """
        self._stream.transport_stream.socket.close()


async def start_tls(stream: trio.SocketStream, context: ssl.SSLContext, host: str) -> TlsTransport:
    """Begin TLS on a stream, and take the stream over. The certificate must name `host` if the
    context checks names. Raises Disconnected.
    """
    try:
        secured = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
        await secured.do_handshake()
    except BaseException as error:
        stream.socket.close()
        if isinstance(error, Broken):
            raise Disconnected(_why(error, NO_HANDSHAKE)) from error
        if isinstance(error, ValueError):
            raise Disconnected("no certificate can name this host") from error
        raise
    return TlsTransport(secured)


def _why(error: Exception, ended: str) -> str:
    """Return why TLS failed. The cause of trio's error is OpenSSL's or the socket's; `ended` is the
    text for a connection that was only closed.
    """
    cause = error.__cause__
    if isinstance(error, trio.ClosedResourceError):
        return "closed from this end"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _distrust(cause)
    if not isinstance(cause, ssl.SSLError) or isinstance(cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return ended
    reason = cause.reason or "no reason is given"
    words = reason.replace("_", " ").lower()
    if reason in CLIENT_CERTIFICATE:
        return f"it wants a certificate of the client that it trusts ({words}): ssl.keystore.location names ours"
    return REASONS.get(reason) or f"TLS fails ({words})"


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    told = error.verify_message.rstrip(".")
    if error.verify_code in WRONG_NAME:
        return (
            f"its certificate is another host's ({told}): call it by a name that the certificate has, "
            "or leave names unchecked by an empty ssl.endpoint.identification.algorithm"
        )
    return OUT_OF_TIME.get(error.verify_code) or (
        f"its certificate is not trusted ({told}): ssl.truststore.location names whom to trust"
    )
