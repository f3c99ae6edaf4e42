"""Validates changes to the configs of one broker, or to the defaults of all brokers.

Rule: the functions are pure and use Kafka's error codes and messages. They also refuse changes that
this program cannot make: a running node does not change how clients log in, and passwords cannot be
stored in ZooKeeper because there is no password encoder. The node itself checks its listeners.
"""

from collections.abc import Collection, Iterator, Mapping

from ...cluster.errors import Refusal
from ...policies.configs.values import KeyType
from ...process.settings.dynamic_keys import check_values, is_fixed_at_start, is_of_one_broker, is_read_only
from ...process.settings.in_force import INVALID_DYNAMIC, faults_together
from ...process.settings.keys import SECURITY_KEYS_OF_A_LISTENER, key_named
from ...process.settings.node_config import NodeConfig
from ...process.settings.refused_keys import faults_of_keys
from ...protocol.error_codes import ErrorCode

MAX_CONFIGS = 2_000
"""The most configs that one resource may have, which is more than there are keys. The limit is
needed because brokers accept unknown keys, and each use of a broker's configs reads all of them.
"""
THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Kafka lets one change at most double or halve these thread counts."""


def validate_broker_configs(configs: Mapping[str, str], node: NodeConfig, *, per_broker: bool) -> None:
    """Validate the complete configs that a broker would have after a change. They belong to `node`,
    or to all brokers if not `per_broker`. `node` holds the values in force before the change.

    Raises Refusal.
    """
    if len(configs) > MAX_CONFIGS:
        text = f"{len(configs)} configs of one resource would be there, {MAX_CONFIGS} are allowed."
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    _refuse("Cannot update these configs dynamically", [name for name in configs if is_read_only(name)])
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        [name for name in configs if name in SECURITY_KEYS_OF_A_LISTENER],
    )
    check_values(configs)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name in configs if is_of_one_broker(name)],
        )
    _refuse(
        "These configs can be changed only in the file of the node, which then has to be started again",
        [name for name in configs if is_fixed_at_start(name)],
    )
    for _, sentence in faults_of_keys(configs):
        raise Refusal(ErrorCode.INVALID_REQUEST, sentence)
    _check_passwords(configs, node, per_broker=per_broker)
    altered = node.with_dynamic(
        configs if per_broker else node.dynamic_broker, node.dynamic_default if per_broker else configs
    )
    for _, reason in faults_together(altered):
        raise Refusal(ErrorCode.INVALID_REQUEST, reason)
    _check_threads(node, altered)
    if altered.integer("log.cleaner.threads") < 1 <= node.integer("log.cleaner.threads"):
        raise _invalid_dynamic("Log cleaner threads should be at least 1")


def _check_threads(node: NodeConfig, altered: NodeConfig) -> None:
    for name in THREAD_COUNTS:
        current, wanted = node.integer(name), altered.integer(name)
        prefix = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
        if wanted < current // 2:
            raise _invalid_dynamic(f"{prefix} be at least half the current value {current}")
        if wanted > current * 2:
            raise _invalid_dynamic(f"{prefix} not be greater than double the current value {current}")


def _invalid_dynamic(problem: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, INVALID_DYNAMIC.format(problem))


def _check_passwords(configs: Mapping[str, str], node: NodeConfig, *, per_broker: bool) -> None:
    resource = f"ConfigResource(type=BROKER, name='{node.text('broker.id') if per_broker else ''}')"
    for name in _passwords(configs):
        if node.optional_string("password.encoder.secret") is None:
            reason = "Password encoder secret not configured"
        else:
            reason = f"{name} is a password, which this node takes from its file only"
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Invalid config value for resource {resource}: {reason}")


def _passwords(configs: Mapping[str, str]) -> Iterator[str]:
    for name in configs:
        key = key_named(name)
        if key is not None and key.type is KeyType.PASSWORD:
            yield name


def _refuse(reason: str, names: Collection[str]) -> None:
    """Refuse these names in the form of Kafka, which people and programs search for."""
    if names:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{reason}: Set({', '.join(sorted(names))})")
