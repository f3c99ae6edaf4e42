"""Files that say something of users, a line for each, and are followed while the gateway runs.

Rule: a mistake is a sentence that names the file and the line, and never the value, which is a
secret. A file with mistakes changes nothing: what was read before holds.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import trio

from ...cluster.errors import ConfigurationError, Mistakes
from ...process.settings.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, JaasError, parse_jaas
from ...process.settings.properties import PropertiesError, Property, parse_properties
from ...process.settings.secret_files import is_open_to_all, sentence_of
from ...process.settings.watched_files import LOOK_SECONDS, Content, Contents, WatchedFiles
from ...security.credentials import Credentials, PlainCredentials, ScramCredentials
from ...security.scram_credentials import HASHES, ScramCredential, derived_credential

log = logging.getLogger("minicontroller.gateway")

MAX_FILE_BYTES = 4 * 1024 * 1024
ANYBODY = "*"
"""The line for users who have none of their own."""

Said = TypeVar("Said")


class UserFile(Generic[Said]):
    """A properties file whose keys are users."""

    def __init__(self, path: Path, read: Callable[[str, str], Said]) -> None:
        """Read the file. `read` makes something of a user and the value of their line, and raises
        ValueError with the rest of a sentence about the line. Raises ConfigurationError. Blocks.
        """
        self._read = read
        self._files = WatchedFiles([path], max_bytes=MAX_FILE_BYTES)
        self._users = _users(self._files.read()[0], read)
        _warn_of_readers(path)

    def of(self, user: str) -> Said | None:
        return self._users.get(user)

    async def follow(self) -> None:
        await self._files.follow(LOOK_SECONDS, self._use)

    async def _use(self, contents: Contents) -> None:
        try:
            self._users = await trio.to_thread.run_sync(
                _users, contents[0], self._read
            )  # passwords take long to derive
        except ConfigurationError as error:
            log.error("the gateway keeps the users that it has read before: %s", error)  # noqa: TRY400 - a mistake of a file
        else:
            log.info("read %s again, which names %d users", contents[0].path, len(self._users))
            _warn_of_readers(contents[0].path)


def _users(content: Content, read: Callable[[str, str], Said]) -> dict[str, Said]:
    """Return what a file says of each user. Raises ConfigurationError with all mistakes."""
    users: dict[str, Said] = {}
    mistakes = Mistakes()
    for user, entry in _entries(content).items():
        try:
            users[user] = read(user, entry.value)
        except ValueError as error:
            mistakes.note(f"{content.path}, line {entry.line}: {error}.")
    mistakes.end()
    return users


def _entries(content: Content) -> Mapping[str, Property]:
    if content.data is None:
        raise ConfigurationError(f"{content.path}: {content.fault}.")
    if len(content.data) > MAX_FILE_BYTES:
        raise ConfigurationError(f"{content.path}: has more than {MAX_FILE_BYTES} bytes.")
    try:
        return parse_properties(content.data.decode("utf-8"), str(content.path)).entries
    except UnicodeDecodeError:
        raise ConfigurationError(f"{content.path}: is not text in UTF-8.") from None
    except PropertiesError as error:
        raise ConfigurationError(str(error)) from None


def _warn_of_readers(path: Path) -> None:
    if is_open_to_all(path):
        log.warning("%s", sentence_of(str(path)))


class UpstreamUsers:
    """The credentials at the brokers by the names of users."""

    def __init__(self, path: Path, scram: str) -> None:
        """Read the file; `scram` is the mechanism of those who log in by SCRAM. Raises
        ConfigurationError. Blocks.
        """
        self._file = UserFile(path, partial(_credentials, scram))
        self.follow = self._file.follow

    def of(self, user: str) -> Credentials | None:
        return self._file.of(user) or self._file.of(ANYBODY)


def _credentials(scram: str, _user: str, text: str) -> Credentials:
    try:
        jaas = parse_jaas(text)
    except JaasError as error:
        raise ValueError(f"this is not a login module with a username and a password: {error}") from None
    if not jaas.username or not jaas.password:
        raise ValueError("the login module lacks a username or a password")
    if jaas.login_module == PLAIN_LOGIN_MODULE:
        return PlainCredentials(jaas.username, jaas.password)
    if jaas.login_module == SCRAM_LOGIN_MODULE:
        return ScramCredentials(jaas.username, jaas.password, scram)
    raise ValueError(f"the login module is neither {PLAIN_LOGIN_MODULE} nor {SCRAM_LOGIN_MODULE}")


class ScramUsers:
    """The users who log in at the gateway by SCRAM, with their passwords."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises ConfigurationError. Blocks."""
        self._derived: dict[str, tuple[str, dict[str, ScramCredential]]] = {}
        self._file = UserFile(path, self._credentials)
        self.follow = self._file.follow

    def credential(self, user: str, mechanism: str) -> ScramCredential | None:
        return (self._file.of(user) or {}).get(mechanism)

    def _credentials(self, user: str, password: str) -> dict[str, ScramCredential]:
        _ensure_password(user, password)
        known = self._derived.get(user)
        if known is None or known[0] != password:
            known = self._derived[user] = (password, {name: derived_credential(name, password) for name in HASHES})
        return known[1]


def _ensure_password(_user: str, password: str) -> None:
    if not password:
        raise ValueError("the password is empty")


def check_upstream_users(path: Path) -> None:
    """Raise ConfigurationError if the gateway could not use this file of credentials."""
    _check(path, partial(_credentials, ""))


def check_scram_users(path: Path) -> None:
    """Raise ConfigurationError if the gateway could not use this file of passwords, from which
    nothing is derived here.
    """
    _check(path, _ensure_password)


def _check(path: Path, read: Callable[[str, str], object]) -> None:
    _users(WatchedFiles([path], max_bytes=MAX_FILE_BYTES).read()[0], read)
