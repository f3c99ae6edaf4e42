"""The levels of this process's loggers in Kafka's words, as DescribeConfigs of a BROKER_LOGGER
tells them.

Rule: a logger's level is the one that holds for it, its own or what it inherits; Kafka has no word
for "inherited".
"""

import logging
from collections.abc import Mapping

ROOT = "root"
"""Kafka's name of the logger from which all others inherit."""

NAMES = ((logging.CRITICAL, "FATAL"), (logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logging.INFO, "INFO"))
"""What is below is DEBUG, and what is below that TRACE."""


def levels() -> dict[str, str]:
    """Return the level of every logger that exists, by name, the root first."""
    known = logging.root.manager.loggerDict
    loggers = {name: logger for name, logger in sorted(known.items()) if isinstance(logger, logging.Logger)}
    return {ROOT: level_name(logging.root.level)} | {
        name: level_name(logger.getEffectiveLevel()) for name, logger in loggers.items()
    }


def levels_after(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the level that each of these loggers will have; one that is changed to None inherits
    its level.
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
"""What a client may set."""
