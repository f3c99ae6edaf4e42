"""A node's index of ACLs and its credentials, by which it decides who may connect and what they may
do.

Rule: `NodeSecurity` is called in the time slice in which an image comes into force, and looks only
at what has changed. Values may be secrets, and are never logged.
"""

import logging
from collections.abc import Mapping

from ...cluster.cache import ImageChanges
from ...cluster.entities import NO_ACL_ENTRIES, NO_ENTITY_CONFIGS, UNREADABLE
from ...cluster.entity_paths import CONFIGS
from ...cluster.image import Image
from ...cluster.znodes.acls import pattern_at
from ...cluster.znodes.entity_names import USER, USERS, client_entity_at, user_path
from ...process.settings.node_config import NodeConfig
from ...protocol.acls import ResourcePattern
from ...security.acls import NOBODY, AclIndex
from ...security.delegation_tokens import token_key
from ...security.scram_credentials import HASHES, ScramCredential, parse_credential
from .delegation_tokens import DelegationTokens
from .shared_secret import SharedSecret

log = logging.getLogger("minicontroller.security")

USER_CONFIGS = f"{CONFIGS}{USERS}/"


class NodeSecurity:
    """The index of the ACLs, and the credentials of users, tokens and nodes."""

    def __init__(self, config: NodeConfig) -> None:
        self.acl_index = AclIndex(allow_everyone=config.boolean("allow.everyone.if.no.acl.found"))
        """Unreadable ACLs deny everything."""
        self.tokens = DelegationTokens(token_key(config))
        self.secret = SharedSecret()
        self._credentials: dict[str, dict[str, ScramCredential]] = {}
        """The SCRAM credentials by mechanism, by path below `/config`."""

    def publish(self, before: Image, after: Image, changes: ImageChanges) -> None:
        self.tokens.publish(before, after, changes)
        for path in changes.entities:
            if path.startswith(USER_CONFIGS):
                self._take_credentials(path.removeprefix(CONFIGS), before, after)
            elif (pattern := pattern_at(path)) is not None:
                self._take_acls(pattern, before, after)

    def _take_acls(self, pattern: ResourcePattern, before: Image, after: Image) -> None:
        found = after.acls.get(pattern, NO_ACL_ENTRIES)
        if found != before.acls.get(pattern, NO_ACL_ENTRIES):
            self.acl_index.set_resource(pattern, NOBODY if found.version == UNREADABLE else found.entries)

    def _take_credentials(self, path: str, before: Image, after: Image) -> None:
        found = after.configs.get(path, NO_ENTITY_CONFIGS)
        if found == before.configs.get(path, NO_ENTITY_CONFIGS):
            return
        self._credentials.pop(path, None)
        credentials = _scram_credentials(path, found.configs)
        if credentials:
            self._credentials[path] = credentials

    def scram_credential(self, user: str, mechanism: str) -> ScramCredential | None:
        return self.scram_credentials(user).get(mechanism)

    def scram_credentials(self, user: str) -> Mapping[str, ScramCredential]:
        return self._credentials.get(user_path(user), {})

    def scram_users(self) -> dict[str, Mapping[str, ScramCredential]]:
        """Return the credentials by mechanism of all users that have some."""
        users = {path: client_entity_at(path) or {} for path in self._credentials}
        return {
            user: self._credentials[path]
            for path, names in users.items()
            if len(names) == 1 and (user := names.get(USER)) is not None
        }


def _scram_credentials(path: str, configs: Mapping[str, str]) -> dict[str, ScramCredential]:
    """Parse the credentials among the configs of an entity. An unreadable one is logged, without
    its text, and is none.
    """
    found = {}
    for mechanism in HASHES:
        if mechanism in configs:
            try:
                found[mechanism] = parse_credential(configs[mechanism])
            except ValueError as error:
                log.warning("the %s credential of /config/%s cannot be used: %s", mechanism, path, error)
    return found
