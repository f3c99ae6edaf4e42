"""Converts the names and levels of this process's loggers to and from Kafka's for BROKER_LOGGER.

- The level of a logger is the effective one, its own or inherited, since Kafka has no name for
  "inherited".
- Kafka's names of loggers stand for ours, so that tools written for Kafka work. Policies and the
  audit log see our name: nobody changes a logger that a rule protects by its other name.
"""

import logging
from collections.abc import Iterable, Mapping

ROOT = "root"
"""Kafka's name of the logger from which all others inherit."""

NAMES = ((logging.CRITICAL, "FATAL"), (logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logging.INFO, "INFO"))
"""Python's levels and Kafka's names. A lower level than these is DEBUG or TRACE."""

KAFKA_LOGGERS = {
    "kafka": "minicontroller",
    "kafka.authorizer.logger": "minicontroller.authorizer",
    "kafka.controller": "minicontroller.controller",
    "kafka.controller.ControllerChannelManager": "minicontroller.propagation",
    "kafka.controller.KafkaController": "minicontroller.controller",
    "kafka.controller.RequestSendThread": "minicontroller.propagation",
    "kafka.controller.TopicDeletionManager": "minicontroller.controller",
    "kafka.controller.ZkPartitionStateMachine": "minicontroller.controller",
    "kafka.controller.ZkReplicaStateMachine": "minicontroller.controller",
    "kafka.coordinator.group.GroupCoordinator": "minicontroller.coordinators",
    "kafka.coordinator.transaction.TransactionCoordinator": "minicontroller.coordinators",
    "kafka.network.Processor": "minicontroller.connection",
    "kafka.network.RequestChannel$": "minicontroller.connection",
    "kafka.network.SocketServer": "minicontroller.server",
    "kafka.request.logger": "minicontroller.answer",
    "kafka.server.ClientQuotaManager": "minicontroller.quotas",
    "kafka.server.DynamicBrokerConfig": "minicontroller.config",
    "kafka.server.KafkaApis": "minicontroller.answer",
    "kafka.server.KafkaServer": "minicontroller.node",
    "kafka.zk.KafkaZkClient": "minicontroller.store",
    "kafka.zookeeper.ZooKeeperClient": "minicontroller.store",
    "org.apache.kafka": "minicontroller",
    "org.apache.kafka.clients.NetworkClient": "minicontroller.peer",
    "org.apache.kafka.common.network.Selector": "minicontroller.connection",
    "org.apache.zookeeper": "kazoo",
    "org.apache.zookeeper.ClientCnxn": "kazoo",
    "org.apache.zookeeper.ZooKeeper": "kazoo",
    "state.change.logger": "minicontroller.propagation",
}
"""Our logger by the name that Kafka 3.9 has for what does the same, in its code or in the
log4j.properties that come with it. None is called as the logger of policies.
"""


def logger_name(name: str) -> str | None:
    """Return our name of a logger that a client names in our or Kafka's way, or None if it does not
    exist.
    """
    ours = KAFKA_LOGGERS.get(name, name)
    return ours if name in KAFKA_LOGGERS or ours in levels() else None


def described_levels() -> dict[str, str]:
    """Return the level of every logger by each of its names, ours first."""
    effective = levels_of(KAFKA_LOGGERS.values())
    return levels() | {name: effective[ours] for name, ours in KAFKA_LOGGERS.items()}


def levels_of(names: Iterable[str]) -> dict[str, str]:
    """Return the levels of loggers by our names, also of those that nothing has used yet."""
    return {name: level_name(logging.getLogger(_python_name(name)).getEffectiveLevel()) for name in names}


def set_level(name: str, level: str | None) -> None:
    """Set the level of a logger that a client names; None lets it inherit its level."""
    logger = logging.getLogger(_python_name(KAFKA_LOGGERS.get(name, name)))
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])


def _python_name(name: str) -> str | None:
    return None if name == ROOT else name


def levels() -> dict[str, str]:
    """Return the level of every existing logger by name, with the root first."""
    known = logging.root.manager.loggerDict
    loggers = {name: logger for name, logger in sorted(known.items()) if isinstance(logger, logging.Logger)}
    return {ROOT: level_name(logging.root.level)} | {
        name: level_name(logger.getEffectiveLevel()) for name, logger in loggers.items()
    }


def levels_after(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the level that each of these loggers will have. A logger whose level is changed to
    None inherits its level.
    """
    known = logging.root.manager.loggerDict
    own = {name: logger.level for name, logger in known.items() if isinstance(logger, logging.Logger)}
    own[ROOT] = logging.root.level
    own |= {name: logging.NOTSET if level is None else LEVELS[level] for name, level in changes.items()}
    return {name: level_name(_inherited(own, name)) for name in changes}


def _inherited(own: Mapping[str, int], name: str) -> int:
    while name != ROOT:
        if level := own.get(name, logging.NOTSET):
            return level
        name = name.rpartition(".")[0] or ROOT
    return own[ROOT]


def level_name(level: int) -> str:
    for least, name in NAMES:
        if level >= least:
            return name
    return "DEBUG" if level >= logging.DEBUG else "TRACE"


LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG // 2,
}
"""The levels that a client may set, by Kafka's name."""
