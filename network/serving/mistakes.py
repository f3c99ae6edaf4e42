"""Finds the mistakes in a node's configuration that its parts find while they are made.

Rule: every part is tried, whatever another one has found, and nothing of it stays. The node's parts
make the same checks when they are made; this module makes all of them before the first.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ...admin.policy.loading import rule_files
from ...admin.policy.rule_files import check_rule_files
from ...admin.recording.log import audit_settings
from ...cluster.errors import ConfigurationError
from ...policies.authorizer_loading import AUTHORIZER_KEY, authorizer_class
from ...policies.class_lookup import named_class
from ...policies.load_errors import PolicyLoadError
from ...policies.loading import ALTER_KEY, CREATE_KEY, POLICY_KEY, is_rule_file
from ...process.settings.node_config import NodeConfig
from ...process.settings.zookeeper_rules import MEMORY
from ...security.listeners import checks_of_listeners
from ...security.zookeeper_access import zookeeper_access
from ..http.listener import parse_address
from ..http.protection import HttpProtection


def mistakes_of(config: NodeConfig) -> Iterator[str]:
    told = set()
    for check in _checks(config):
        try:
            check()
        except (ConfigurationError, PolicyLoadError) as error:
            if str(error) not in told:
                told.add(str(error))
                yield str(error)


def _checks(config: NodeConfig) -> Iterator[Callable[[], object]]:
    yield from checks_of_listeners(config)
    if config.string("zookeeper.connect") != MEMORY:
        yield partial(zookeeper_access, config)
    if config.string(AUTHORIZER_KEY).strip():
        yield partial(authorizer_class, config.string(AUTHORIZER_KEY).strip())
    for key in (POLICY_KEY, CREATE_KEY, ALTER_KEY):
        spec = config.string(key).strip()
        if spec and not (key == POLICY_KEY and is_rule_file(spec)):
            yield partial(named_class, key, spec)
    files: list[Path] = list(rule_files(config))
    if files:
        yield partial(check_rule_files, files)
    yield partial(audit_settings, config)
    if config.string("http.listen"):
        yield partial(parse_address, config.string("http.listen"))
        yield partial(HttpProtection, config)
