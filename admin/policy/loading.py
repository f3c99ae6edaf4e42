"""Loads the policy and the rule files that a node's configuration names."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ...policies.configs.values import KeyType
from ...policies.loading import POLICY_KEY, is_rule_file, names_class
from ...process.settings.keys import KEYS
from ...process.settings.node_config import NodeConfig
from .process import PolicyProcess
from .rule_files import RuleFiles
from .runner import PolicyRunner


def rule_files(config: NodeConfig) -> Sequence[Path]:
    """Return the configured rule files in order, without duplicates."""
    named = config.string(POLICY_KEY).strip()
    names = [*([named] if is_rule_file(named) else []), *config.strings("policy.rules.files")]
    return [Path(name) for name in dict.fromkeys(names)]


@asynccontextmanager
async def loaded_policy(config: NodeConfig) -> AsyncIterator[tuple[PolicyRunner | None, RuleFiles | None]]:
    """Load the configured policy and its rule files; yields None if none is configured. The policy
    is closed at the end of the block. Raises PolicyLoadError.
    """
    policy = await load_policy(config)
    try:
        yield policy, load_rules(config, policy)
    finally:
        if policy is not None:
            policy.kill()  # if the node has not closed it


async def load_policy(config: NodeConfig) -> PolicyRunner | None:
    if not names_class(config.static):
        return PolicyRunner() if rule_files(config) else None
    secrets = {name for name, key in KEYS.items() if key.type is KeyType.PASSWORD}
    process = PolicyProcess(config.static, timeout_ms=config.integer("policy.timeout.ms"), secrets=secrets)
    await process.start()
    return PolicyRunner(process)


def load_rules(config: NodeConfig, policy: PolicyRunner | None) -> RuleFiles | None:
    """Apply the rules of the configured files, and return the `RuleFiles` that reloads changed
    files, or None if there are none. Raises PolicyLoadError.
    """
    if policy is None or not rule_files(config):
        return None
    rules = RuleFiles(rule_files(config), policy, interval_ms=config.integer("policy.rules.reload.interval.ms"))
    rules.load()
    return rules
