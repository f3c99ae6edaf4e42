"""Makes the logins of a gateway as its configuration has them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from ...client.network import Network
from ...network.failures import ConnectionFailures
from ...security.caller import Caller, Listener
from ...security.mechanisms import LoginSources
from ..apis import APIS, WITHOUT_DELEGATION_TOKENS
from ..treatment import Service
from .controllers import Controllers
from .forwarding import Forwarding
from .login import Login
from .own import OwnLogins
from .passing import PassedLogins
from .settings import IdentitySettings
from .user_files import ScramUsers, UpstreamUsers


class Logins(Protocol):
    """The logins of all clients of a gateway."""

    def at(self, listener: Listener) -> Listener: ...
    def of(self, caller: Caller) -> Login: ...


class Identity:
    """The logins of clients, and what has to run for them."""

    def __init__(
        self, settings: IdentitySettings, nursery: trio.Nursery, failures: ConnectionFailures, delay: float
    ) -> None:
        """Read the files of users; connections to controllers are tasks of the nursery. `delay` is
        how long the answer to a failed login is held, in seconds. Raises ConfigurationError.
        Blocks.
        """
        scram = ScramUsers(settings.scram_file) if settings.is_own and settings.scram_file is not None else None
        self.sources = LoginSources() if scram is None else LoginSources(scram.credential)
        self.service = Service(
            WITHOUT_DELEGATION_TOKENS if settings.is_own else APIS,
            authenticates=settings.is_own,
            forwards=settings.controllers is not None,
        )
        self.forwarding: Forwarding | None = None
        """Has the controller answer requests under clients' names, if that is configured."""
        if settings.controllers is not None:
            self.forwarding = Forwarding(Controllers(Network(nursery, settings.controllers)))
        self._tasks: list[Callable[[], Awaitable[None]]] = [self.sources.run]
        if scram is not None:
            self._tasks.append(scram.follow)
        self.logins: Logins = (
            self._own(settings, failures, delay)
            if settings.is_own
            else PassedLogins(settings.subject_claim, must_log_in=settings.brokers_ask)
        )

    @property
    def tasks(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """What runs while the gateway serves."""
        return self._tasks

    def _own(self, settings: IdentitySettings, failures: ConnectionFailures, delay: float) -> OwnLogins:
        users = None
        if settings.credentials_file is not None:
            users = UpstreamUsers(settings.credentials_file, settings.scram_upstream)
            self._tasks.append(users.follow)
        upstream = None if users is None else users.of
        return OwnLogins(upstream, failures, delay, forwards=self.service.forwards)
