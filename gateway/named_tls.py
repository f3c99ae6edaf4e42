"""TLS at a listener that tells by which name a client calls it (SNI).

Rule: a client that calls by a name that is none of the gateway's is told so by an alert, and shown
no certificate.
"""

import ssl
from collections.abc import Callable

from ..network.tls import CalledEnd
from ..process.settings.node_config import NodeConfig
from ..security.caller import TlsOfListener


class NamedTls:
    """The TLS of another listener, which notes the name."""

    def __init__(self, tls: TlsOfListener, refuses: Callable[[str | None], bool]) -> None:
        """`refuses` decides on the name, None where a client calls by none."""
        self._tls = tls
        self._refuses = refuses
        self._context: ssl.SSLContext | None = None

    def server_context(self) -> ssl.SSLContext:
        context = self._tls.server_context()
        if context is not self._context:
            context.sslobject_class = CalledEnd
            context.sni_callback = self._on_name
            self._context = context
        return context

    def client_context(self) -> ssl.SSLContext:
        return self._tls.client_context()

    def check(self, config: NodeConfig) -> None:
        self._tls.check(config)

    def seconds_left(self) -> float:
        return self._tls.seconds_left()

    async def follow(self, current: Callable[[], NodeConfig]) -> None:
        await self._tls.follow(current)

    def principal_of(self, certificate: bytes) -> str:
        return self._tls.principal_of(certificate)

    def _on_name(self, end: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        if self._refuses(name):
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        assert isinstance(end, CalledEnd)
        end.called = name
        return None
