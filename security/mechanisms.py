"""The SASL mechanisms of a listener, as the configuration names them.

A mechanism that is named is offered as Kafka offers it, or ends the start with a sentence: nothing
is left out silently, and nobody is let in by an unsigned token.
"""

import secrets
from collections.abc import Callable, Mapping
from functools import partial

import trio

from ..cluster.errors import ConfigurationError
from ..process.settings.jaas import LOGIN_MODULES, JaasConfig
from ..process.settings.node_config import NodeConfig
from .mechanism_keys import HANDLER_KEY, OAUTHBEARER, Task, key_of_mechanism
from .sasl import Mechanism, PlainExchange
from .scram_credentials import SALT_BYTES, FindToken, FindUser, ScramCredential, TokenCredential
from .scram_server import scram_mechanism

PLAIN = "PLAIN"
FIRST_TRY_SECONDS = 5.0
"""How long a node that starts waits for the token with which it logs in to other nodes."""


class LoginSources:
    """Finds the users for the mechanisms of a node: `run` follows them."""

    def __init__(
        self,
        find_user: FindUser = lambda _user, _mechanism: None,
        find_token: FindToken = lambda _token_id, _mechanism: None,
        secret: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        """`secret` returns the secret of the cluster, from which challenges of unknown users are
        made.
        """
        self._find_user, self._find_token, self._secret = find_user, find_token, secret
        self._own_secret = secrets.token_bytes(SALT_BYTES)
        self._tasks: list[Task] = []
        self._first_tries: list[trio.Event] = []

    def beside(self) -> "LoginSources":
        """Return sources with the same users, which follow tasks of their own."""
        return LoginSources(self._find_user, self._find_token, self._secret)

    def follow(self, task: Task, tried: trio.Event | None = None) -> None:
        """Let `run` run this task, too; it sets `tried` after its first attempt."""
        self._tasks.append(task)
        if tried is not None:
            self._first_tries.append(tried)

    async def wait_tried(self) -> None:
        """Wait for the first attempt of each task, but not for long: an address that does not
        answer must not hold up the start.
        """
        with trio.move_on_after(FIRST_TRY_SECONDS):
            for tried in self._first_tries:
                await tried.wait()

    def scram_credential(self, user: str, mechanism: str) -> ScramCredential | None:
        return self._find_user(user, mechanism)

    def token_credential(self, token_id: str, mechanism: str) -> TokenCredential | None:
        return self._find_token(token_id, mechanism)

    def decoy_key(self) -> bytes:
        """Return the key from which the challenges of unknown users are made."""
        return self._secret() or self._own_secret

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for task in self._tasks:
                nursery.start_soon(task)


def listener_mechanisms(config: NodeConfig, listener: str, sources: LoginSources) -> Mapping[str, Mechanism]:
    names = config.strings(config.of_listener(listener, "sasl.enabled.mechanisms"))
    return {name: listener_mechanism(config, listener, name, sources) for name in names}


def listener_mechanism(config: NodeConfig, listener: str, name: str, sources: LoginSources) -> Mechanism:
    if name not in LOGIN_MODULES:
        raise ConfigurationError(
            f"sasl.enabled.mechanisms: {name} is not offered by this version, which knows {', '.join(LOGIN_MODULES)}."
        )
    jaas = _jaas(config, listener, name)
    if name == OAUTHBEARER:
        from .oauthbearer import token_mechanism  # its library takes long to import

        return token_mechanism(config, listener, jaas, sources.follow)
    if name == PLAIN:
        return _plain(config, listener, jaas)
    _check_no_handler(config, listener, name)
    if jaas is not None and jaas.users:
        raise ConfigurationError(
            f"{key_of_mechanism(config, listener, 'sasl.jaas.config', name)} names users, who have to be in ZooKeeper "
            f"to log in by {name}: minicontroller users set makes them."
        )
    return scram_mechanism(name, sources, sources.decoy_key)


def _jaas(config: NodeConfig, listener: str, mechanism: str) -> JaasConfig | None:
    jaas = config.jaas(listener, mechanism)
    if jaas is not None and jaas.login_module != LOGIN_MODULES[mechanism]:
        raise ConfigurationError(
            f"{key_of_mechanism(config, listener, 'sasl.jaas.config', mechanism)} names another login module than that of "
            f"{mechanism}, {LOGIN_MODULES[mechanism]}."
        )
    return jaas


def _plain(config: NodeConfig, listener: str, jaas: JaasConfig | None) -> Mechanism:
    _check_no_handler(config, listener, PLAIN)
    if jaas is None:
        section = config.jaas_section(listener, PLAIN)
        missing = "is missing" if section is None else f"has no {LOGIN_MODULES[PLAIN]}"
        raise ConfigurationError(
            f"{key_of_mechanism(config, listener, 'sasl.jaas.config', PLAIN)} {missing}: "
            f"the listener {listener} authenticates by {PLAIN} and has nobody to let in."
        )
    return partial(PlainExchange, jaas.users)


def _check_no_handler(config: NodeConfig, listener: str, mechanism: str) -> None:
    name = f"listener.name.{listener.lower()}.{mechanism.lower()}.{HANDLER_KEY}"
    if config.optional_string(name):
        raise ConfigurationError(f"{name} is not served: sasl.jaas.config and ZooKeeper decide who may log in.")
