"""TLS by Kafka's own client keys (`ssl.*`), which `controller/security/tls_settings.py` reads for
clients and listeners alike.

Rule: what Kafka's clients would silently do without is told with the place in the client's file.
"""

import ssl

from ..controller.security.tls_options import PROTOCOLS
from ..controller.security.tls_settings import ENABLED, NAME_CHECK, TlsFault, make_client_context, words
from .properties import ClientProperties


def client_context(properties: ClientProperties) -> ssl.SSLContext:
    """Make the TLS context of a client. Raises ConfigurationError."""

    def text(key: str) -> str:
        if key == NAME_CHECK and key not in properties.entries:
            return "https"
        if key == ENABLED:
            return _enabled(properties)
        return properties.text(key)

    try:
        return make_client_context(text, properties.content)
    except TlsFault as fault:
        raise properties.fault(fault.key, str(fault)) from None


def _enabled(properties: ClientProperties) -> str:
    """Return the versions that are spoken here of those that are enabled: a client's file may be
    older than its server.
    """
    names = words(properties.text(ENABLED))
    spoken = [name for name in names if name in PROTOCOLS]
    if names and not spoken:
        raise properties.fault(ENABLED, "allows neither TLSv1.2 nor TLSv1.3, and older versions are not supported")
    return ",".join(spoken)
