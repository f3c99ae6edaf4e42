"""TLS by Kafka's own client keys (`ssl.*`), which `security/tls_settings.py` reads for
clients and listeners alike.

Rule: what Kafka's clients would silently do without is a mistake that names the place
in the client's file.
"""

import ssl
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ..cluster.errors import Mistakes
from ..security.tls_options import PROTOCOLS
from ..security.tls_settings import (
    ENABLED,
    NAME_CHECK,
    Read,
    Text,
    TlsFault,
    make_client_context,
    own_key_store,
    trusted_certificates,
    words,
)
from .properties import ClientProperties

T = TypeVar("T")


def client_context(properties: ClientProperties) -> ssl.SSLContext:
    """Make the TLS context of a client. Raises ConfigurationError with the mistakes of both
    stores.
    """

    def text(key: str) -> str:
        if key == NAME_CHECK and key not in properties.entries:
            return "https"
        if key == ENABLED:
            return _enabled(properties)
        return properties.text(key)

    def placed(part: Callable[[Text, Read], T]) -> T:
        try:
            return part(text, properties.content)
        except TlsFault as fault:
            raise properties.fault(fault.key, str(fault)) from None

    mistakes = Mistakes()
    for part in (trusted_certificates, own_key_store):  # which know nothing of each other
        mistakes.read(partial(placed, part), None)
    mistakes.end()
    return placed(make_client_context)


def _enabled(properties: ClientProperties) -> str:
    """Return the versions that are spoken here of those that are enabled: a client's file may be
    older than its server.
    """
    names = words(properties.text(ENABLED))
    spoken = [name for name in names if name in PROTOCOLS]
    if names and not spoken:
        raise properties.fault(ENABLED, "allows neither TLSv1.2 nor TLSv1.3, and older versions are not supported")
    return ",".join(spoken)
