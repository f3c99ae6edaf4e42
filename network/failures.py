"""The mistakes that clients of a node make on their connections: they are counted for the metrics,
and logged without flooding the log.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..process.observe.logs import ClientWarnings
from ..protocol.errors import ProtocolError
from ..security.caller import Caller, about_caller
from .handshake_errors import HandshakeError

log = logging.getLogger("minicontroller.connection")

NOT_OFFERED = "none"
"""Stands for the mechanism where a client asked for one that its listener does not offer."""


class ConnectionFailures:
    """Counts and logs the connections of a node that end for what their clients did."""

    def __init__(self) -> None:
        self.protocol_errors = 0
        self.failed_authentications: Counter[str] = Counter()
        """By mechanism; one that the listener does not offer counts as `NOT_OFFERED`."""
        self.failed_handshakes: Counter[str] = Counter()
        """By kind, of those in `handshake_errors.py`."""
        self._warnings = ClientWarnings()

    def failed_handshake(self, caller: Caller, error: HandshakeError) -> None:
        self.failed_handshakes[error.kind] += 1
        self._warnings.say(log, "TLS handshake of %s failed: %s", caller, error, extra=about_caller(caller))

    def protocol_error(self, caller: Caller, error: ProtocolError, extra: Mapping[str, Any]) -> None:
        self.protocol_errors += 1
        self._warnings.say(log, "closing %s: %s", caller, error, extra=extra)

    def failed_authentication(self, caller: Caller) -> None:
        sasl = caller.sasl
        assert sasl is not None
        mechanism = sasl.attempted or NOT_OFFERED
        self.failed_authentications[mechanism] += 1
        self._warnings.say(
            log,
            "authentication of %s failed, by mechanism %s: %s",
            caller,
            mechanism,
            sasl.failure or "the exchange was not finished",
            extra=about_caller(caller),
        )
