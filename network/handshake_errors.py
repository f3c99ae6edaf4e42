"""Explains why TLS fails, to either end: a kind to count, and a sentence that says what to check.

No text shows any part of a key or of a password.
"""

import ssl

import msgspec

from ..protocol.other_protocols import TLS, protocol_of
from .transport import Disconnected


class Explanation(msgspec.Struct, frozen=True):
    kind: str
    """One of `KINDS`."""
    sentence: str


class HandshakeError(Disconnected):
    def __init__(self, explanation: Explanation, *, was_told: bool = False) -> None:
        super().__init__(explanation.sentence)
        self.kind = explanation.kind
        self.was_told = was_told
        """Whether an alert on its way tells the other end."""


KINDS = (
    "not_tls",
    "no_common_version",
    "no_common_cipher",
    "no_certificate",
    "expired",
    "unknown_authority",
    "other_host",
    "refused_ours",
    "unnamed",
    "too_slow",
    "closed",
    "other",
)
"""The kinds of failed handshakes, as the metric counts them. With `refused_ours` the other end does
not accept our certificate; `unnamed` is a certificate that ssl.principal.mapping.rules name nobody
for.
"""
CLOSED = "the connection was closed"
NO_HANDSHAKE = "it ended the connection, as a listener does whose security protocol is not SSL or SASL_SSL"

NOT_TLS = frozenset(
    {
        "HTTPS_PROXY_REQUEST",
        "HTTP_REQUEST",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
        "UNKNOWN_PROTOCOL",
        "WRONG_VERSION_NUMBER",
    }
)
"""OpenSSL's names of errors, here and below."""
NO_COMMON_VERSION = frozenset(
    {
        "INAPPROPRIATE_FALLBACK",
        "NO_PROTOCOLS_AVAILABLE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "UNSUPPORTED_PROTOCOL",
        "VERSION_TOO_LOW",
    }
)
NO_COMMON_CIPHER = frozenset({"NO_CIPHERS_AVAILABLE", "NO_SHARED_CIPHER", "NO_SUITABLE_SIGNATURE_ALGORITHM"})
NO_CERTIFICATE = frozenset({"PEER_DID_NOT_RETURN_A_CERTIFICATE"})
ALERTS_ABOUT_A_CERTIFICATE = frozenset(
    {
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_REVOKED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "TLSV1_ALERT_UNKNOWN_CA",
    }
)
"""Alerts of the other end, which does not accept our certificate."""
NOT_YET_VALID, EXPIRED = 9, 10
"""X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED."""
OTHER_HOST = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH."""

OF_THE_CLIENT = {
    "not_tls": "it does not speak TLS, as a listener does whose security protocol is SSL or SASL_SSL",
    "no_common_version": "it speaks no version of TLS that is allowed here (ssl.enabled.protocols)",
    "no_common_cipher": "it has no cipher suite in common with this end (ssl.cipher.suites)",
    "refused_ours": "it wants a certificate of the client that it trusts ({words}): ssl.keystore.location names ours",
}
"""Explanations of a server's faults, as its client tells them."""
OF_THE_SERVER = {
    "not_tls": "what it sent is not TLS{but}: clients of this listener need security.protocol=SSL or SASL_SSL",
    "no_common_version": "it offers no version of TLS that this listener allows (ssl.enabled.protocols)",
    "no_common_cipher": "it has no cipher suite in common with this listener (ssl.cipher.suites, or the kind of our key)",
    "no_certificate": "it has shown no certificate, and this listener demands one (ssl.client.auth=required)",
    "refused_ours": "it does not accept the certificate of this listener ({words}): see the client's ssl.truststore.location",
}
"""Explanations of a client's faults, as its server tells them."""
GARBLED = "it began like TLS, and what followed is no handshake ({words})"


def explained_to_client(error: ssl.SSLError) -> Explanation:
    """Explain a failure to the end that has connected, where the other is a server."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _distrusted(error, "ssl.truststore.location names whom to trust")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return Explanation("closed", NO_HANDSHAKE)
    return _explained(error, OF_THE_CLIENT)


def explained_to_server(error: ssl.SSLError, first: bytes) -> Explanation:
    """Explain a failure to the end that was connected to, where the other is a client, whose first
    bytes tell what else it may speak.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return _distrusted(error, "ssl.truststore.location of this listener names whom to trust")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return Explanation("closed", CLOSED)
    other = protocol_of(first)
    if other == TLS:
        return _explained(error, {**OF_THE_SERVER, "not_tls": GARBLED})
    return _explained(error, OF_THE_SERVER, other)


def _explained(error: ssl.SSLError, sentences: dict[str, str], other: str | None = None) -> Explanation:
    reason = error.reason or "no reason is given"
    words = reason.replace("_", " ").lower()
    kind = _kind(reason)
    but = "" if other is None else f" but {other}"
    return Explanation(kind, sentences.get(kind, "TLS fails ({words})").format(words=words, but=but))


def _kind(reason: str) -> str:
    for kind, reasons in (
        ("not_tls", NOT_TLS),
        ("no_common_version", NO_COMMON_VERSION),
        ("no_common_cipher", NO_COMMON_CIPHER),
        ("no_certificate", NO_CERTIFICATE),
        ("refused_ours", ALERTS_ABOUT_A_CERTIFICATE),
    ):
        if reason in reasons:
            return kind
    return "other"


def _distrusted(error: ssl.SSLCertVerificationError, advice: str) -> Explanation:
    told = error.verify_message.rstrip(".")
    if error.verify_code == NOT_YET_VALID:
        return Explanation("expired", "its certificate is not valid yet, by this machine's clock")
    if error.verify_code == EXPIRED:
        return Explanation("expired", "its certificate has expired")
    if error.verify_code in OTHER_HOST:
        return Explanation(
            "other_host",
            f"its certificate is another host's ({told}): call it by a name that the certificate has, "
            "or leave names unchecked by an empty ssl.endpoint.identification.algorithm",
        )
    return Explanation("unknown_authority", f"its certificate is not trusted ({told}): {advice}")
