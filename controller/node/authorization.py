"""Makes a node's authorization from its configuration: the authorizer that decides, the super users
who are not asked about, and the log and the counts of denials.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...policies.authorizer import Action, Authorizer, Requester
from ...policies.authorizer_loading import AUTHORIZER_KEY, build_authorizer
from ...policies.configs.values import KeyType
from ...policies.load_errors import describe_exception
from ...process.observe.logs import CLIENT_LINES, RateLimitedLog, cut
from ...process.observe.metrics import AuthorizationMetrics
from ...process.settings.keys import KEYS
from ...process.settings.node_config import NodeConfig
from ...process.settings.node_rules import super_users
from ...protocol.acls import kafka_name
from ...security.acls import AclIndex
from ...security.authorizer import AclRules, Authorization, UserAuthorizer
from ...text import escaped

log = logging.getLogger("minicontroller.authorizer")


@asynccontextmanager
async def loaded_authorizer(config: NodeConfig) -> AsyncIterator[Authorizer | None]:
    """Load the authorizer that the configuration names by its class, if it names one of the user's.
    It is closed at the end of the block. Raises PolicyLoadError.
    """
    name = config.string(AUTHORIZER_KEY).strip()
    secrets = {key for key, declared in KEYS.items() if declared.type is KeyType.PASSWORD}
    authorizer = build_authorizer(name, config.static, secrets=secrets) if name else None
    try:
        yield authorizer
    finally:
        if authorizer is not None:
            try:
                authorizer.close()
            except Exception:
                log.exception("the authorizer raised an exception in close")


def authorization_of(
    config: NodeConfig, authorizer: Authorizer | None, acls: AclIndex, metrics: AuthorizationMetrics
) -> Authorization | None:
    """Return what decides about the requests of clients; None if everybody may do everything,
    because no authorizer is configured. `authorizer` is the user's own; without one ACLs decide.
    """
    if not config.string(AUTHORIZER_KEY).strip():
        return None
    watch = _Watch(metrics)
    decider = AclRules(acls) if authorizer is None else UserAuthorizer(authorizer, acls, watch.fault)
    return Authorization(decider, super_users(config.string("super.users")), watch.denied)


class _Watch:
    """Counts and logs denials, and the faults of an authorizer."""

    def __init__(self, metrics: AuthorizationMetrics) -> None:
        self._metrics = metrics
        self._denials = RateLimitedLog(log, CLIENT_LINES)
        self._faults = RateLimitedLog(log, CLIENT_LINES)

    def denied(self, requester: Requester, action: Action) -> None:
        self._metrics.denied[action.operation, action.resource_type] += 1
        if self._denials.leaves_out():
            return
        self._denials.say(
            logging.INFO,
            "%s from %s is denied %s on %s:LITERAL:%s for %s",
            cut(escaped(requester.principal)),
            requester.client_host,
            kafka_name(action.operation),
            kafka_name(action.resource_type),
            cut(escaped(action.resource_name)),
            requester.api,
        )

    def fault(self, requester: Requester, error: Exception) -> None:
        self._metrics.faults += 1
        self._faults.say(
            logging.ERROR, "the authorizer failed, so %s is denied: %s", requester.api, describe_exception(error)
        )
